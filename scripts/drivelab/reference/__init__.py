"""Generate docs/reference from the program, with `python -m drivelab.reference`."""
