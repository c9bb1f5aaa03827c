"""What a trace holds, as tables: counted in two passes, in memory that does not grow with the trace."""
