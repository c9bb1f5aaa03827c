"""Make Snakemake poll Slurm's jobs every second; by default it polls ever less often, which would slow the tests."""

import sys

if "--profile" in sys.orig_argv:
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

    RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)
