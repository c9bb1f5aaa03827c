"""What drives do while a study runs, second by second, read from the files of its results folder alone."""
