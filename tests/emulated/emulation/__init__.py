"""Machines of QEMU's software emulation with drives in them, to try on what no virtual drive has."""
