"""Derive traces: cut, drop idle time, filter, merge; synthesise a protocol."""
