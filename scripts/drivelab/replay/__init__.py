"""Replay of traces: from requests to a schedule on a drive, and from the schedule to an engine's job."""
