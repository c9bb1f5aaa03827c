"""Figures of latency."""
