"""Arrow schema of the runs of an application in a recording."""

from __future__ import annotations

import pyarrow as pa

from drivelab.tables.columns import KEY_LINES, TELEMETRY_LINES, schema

APPLICATION_RUNS = schema(
    # One row per run. If a replay replaces the application, columns that it cannot know are null.
    *KEY_LINES,
    "int32: step",
    "str: phase? phase_value?",
    "int32: phase_pass?",
    "str: application",
    "int32: repeat",  # from 1, cold runs included; `run` is the run of the whole measurement
    "bool: cold counted",
    "int32: asked_passes?",  # null: until the warm runs agree
    "float: duration_s",  # from the start of the command until all of its writes are on the drive
    "float: command_s? sync_s?",  # parts of duration_s: the command, then the sync of its file system
    "int32: exit_status?",
    "int64: read_ios write_ios read_bytes write_bytes",  # kernel counters of the drive
    "float: user_s? system_s?",  # CPU time of the command and its children
    "int64: max_rss_bytes?",
    "str: simulated_from?",  # the trace whose replay replaces the application; no application ran
    "bool: after_gap",  # the measurement was interrupted and resumed just before
    *TELEMETRY_LINES,
)

APPLICATION_TABLES: dict[str, pa.Schema] = {"application_runs": APPLICATION_RUNS}
