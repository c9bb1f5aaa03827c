"""Record temperature, throttling, wear, power and foreign load during cells."""
