"""Generate the pages of docs/reference from the program itself, with `python -m drivelab.reference`."""
