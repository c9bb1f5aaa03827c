"""Applications as benchmarks: time one on a fresh file system on the drive."""
