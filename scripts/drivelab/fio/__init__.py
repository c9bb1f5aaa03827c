"""fio: its job text, its run, its result."""
