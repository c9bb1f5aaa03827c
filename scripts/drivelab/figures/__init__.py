"""Figures from tables: DataFrames in, matplotlib Figures out; only `style.save` touches a file."""
