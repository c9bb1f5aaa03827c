"""Live view of a running study's drives, second by second, from the files of its results folder alone."""
