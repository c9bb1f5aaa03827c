"""Record drive and host during cells: temperature, throttling, wear, power, and load by other processes."""
