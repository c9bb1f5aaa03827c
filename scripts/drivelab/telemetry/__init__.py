"""What happened to drive and host while cells ran: temperature, throttling, wear, power, and how busy others were."""
