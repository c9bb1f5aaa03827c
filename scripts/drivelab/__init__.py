"""Reproducible performance studies of SSDs and other drives."""

__version__ = "0.1.0"
