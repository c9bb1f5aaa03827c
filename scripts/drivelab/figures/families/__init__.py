"""Families of figures: what many kinds have in common."""
