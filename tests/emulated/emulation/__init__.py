"""Machines in QEMU's software emulation, for drive features that virtual drives do not have."""
