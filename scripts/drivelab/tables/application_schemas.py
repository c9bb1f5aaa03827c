"""Arrow schema of what a recording says of the runs of an application."""

from __future__ import annotations

import pyarrow as pa

from drivelab.tables.columns import KEY_LINES, TELEMETRY_LINES, schema

APPLICATION_RUNS = schema(
    # One row per run. What a replay that stands in for the application cannot know is null.
    *KEY_LINES,
    "int32: step",
    "str: phase? phase_value?",
    "int32: phase_pass?",
    "str: application",
    "int32: repeat",  # from 1, cold ones included; `run` is that of the whole measurement
    "bool: cold counted",
    "int32: asked_passes?",  # null: until the warm runs agree
    "float: duration_s",  # from the start of the command until all that it wrote was on the drive
    "float: command_s? sync_s?",  # its parts: the command, and the sync of its file system after it
    "int32: exit_status?",
    "int64: read_ios write_ios read_bytes write_bytes",  # of the drive, by the kernel's counters
    "float: user_s? system_s?",  # CPU time of the command and its children
    "int64: max_rss_bytes?",
    "str: simulated_from?",  # the trace whose replay stands in for the application: nothing ran
    "bool: after_gap",  # the measurement was interrupted and resumed just before
    *TELEMETRY_LINES,
)

APPLICATION_TABLES: dict[str, pa.Schema] = {"application_runs": APPLICATION_RUNS}
