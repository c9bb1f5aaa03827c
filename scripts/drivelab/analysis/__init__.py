"""Statistics: pure functions, numbers and DataFrames in, numbers and DataFrames out."""
