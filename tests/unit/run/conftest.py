"""These tests make many small files."""

from in_memory import tmp_path

__all__ = ["tmp_path"]
