"""Figures of soaks."""
