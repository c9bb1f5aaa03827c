"""Column types and common columns of the schemas; see `drivelab.tables.schemas` for conventions."""

from __future__ import annotations

import pyarrow as pa

_TYPES = {
    "str": pa.string(),
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float64(),
    "time": pa.timestamp("ms", tz="UTC"),
    "floats": pa.list_(pa.float64()),
    "strs": pa.list_(pa.string()),
}


def schema(*lines: str) -> pa.Schema:
    """Build a schema from lines `type: column column? …`; a question mark allows nulls."""
    fields = []
    for line in lines:
        kind, names = line.split(":")
        for name in names.split():
            fields.append(pa.field(name.rstrip("?"), _TYPES[kind], nullable=name.endswith("?")))
    return pa.schema(fields)


KEY_LINES = (
    "str: recording drive serial protocol measurement",  # recording: unique, "drive/measurement/digest-runN"
    "int32: run",
    "bool: reduced virtual",
    "str: clock",  # "wall" | "virtual"
)

PLACE_LINES = ("int32: step", "str: kind", "int32: round cell")
"""Step of the plan; "loop", "soak", "replay" or "fill"; round from 1; order in the round from 0."""

WORKLOAD_LINES = (
    "str: workload",  # "RND 4KiB 65/35" and unusual settings; the same in all tables
    "str: phase? phase_value?",  # name and value of a repeated step; value such as "5s" or "max"
    "int32: phase_pass?",  # from 1
)
"""The workload of a cell, and its turn of a repeated step; follows the place in the plan."""

SHAPE_LINES = ("str: pattern?", "int64: block_size_bytes?", "int32: read_share_pct? threads? queue_depth?")
"""The workload of a value as in table `cells`; null where it has none, or several: replays, scores, points."""

TELEMETRY_LINES = (
    # During a cell; null if the host does not report it.
    "float: temperature_min_c? temperature_mean_c? temperature_max_c?",
    "bool: throttled?",
    "float: load_pct? steal_pct? cpu_pct?",  # share of CPU time: of other programs, the hypervisor, all programs
    "float: waited_pct?",  # share of the time in which a process that could run waited for a CPU
    "float: cpu_frequency_mhz? power_w? energy_j? host_power_w?",  # power_w: of the drive
    "bool: tainted",
    "str: taint_reason?",  # "cause: description"; "; " separates several
)
