"""Figures of loops."""
