"""Typed Parquet tables of recordings, with units in the column names."""
