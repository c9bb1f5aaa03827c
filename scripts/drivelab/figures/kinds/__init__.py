"""One module for each figure, and helpers that a few of them share."""
