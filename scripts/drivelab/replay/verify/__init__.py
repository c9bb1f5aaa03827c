"""Verify a replay: check what its reads returned and what its writes stored."""
