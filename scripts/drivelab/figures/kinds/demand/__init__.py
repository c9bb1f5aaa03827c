"""Figures of sweeps over threads and queue depths."""
