"""Typed Parquet tables: what recordings say, as columns with units in their names."""
