"""Has Snakemake look at Slurm's jobs every second; else it looks ever more seldom, and tests would wait for that."""

import sys

if "--profile" in sys.orig_argv:
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

    RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)
