"""Write fio's jobs, run fio and read its results."""
