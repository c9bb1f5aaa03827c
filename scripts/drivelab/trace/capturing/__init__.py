"""Capture of traces, part by part: the tracer, its ring, the command, the device, the guardian, file systems."""
