"""Applications as a benchmark: how long one takes on a fresh file system on the drive under test."""
