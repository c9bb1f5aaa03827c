"""Trace replay: turn requests into a schedule, and run it with an engine."""
