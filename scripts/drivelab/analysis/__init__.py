"""Compute statistics with pure functions: numbers and DataFrames in and out."""
