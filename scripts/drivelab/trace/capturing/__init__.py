"""Parts of trace capture: tracer, ring, command, device, guardian, mounts."""
