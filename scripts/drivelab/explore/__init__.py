"""Explore finished results: queries, and comparisons that no study planned."""
