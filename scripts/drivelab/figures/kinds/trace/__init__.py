"""Figures of traces."""
