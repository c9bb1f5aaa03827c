"""Figures of replays and applications."""
