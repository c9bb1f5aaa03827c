"""Asking questions of finished results: queries, and comparisons that no study had in mind."""
