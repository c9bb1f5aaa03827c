"""Figures over several drives."""
