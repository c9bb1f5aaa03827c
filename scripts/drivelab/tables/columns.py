"""Types and lines that the schemas of the tables are made of; `drivelab.tables.schemas` says what they mean."""

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
    """Schema from lines `type: column column? …`; a question mark lets the column hold nulls."""
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
    "str: workload",  # "RND 4KiB 65/35", with what is out of the ordinary; alike in all tables
    "str: phase? phase_value?",  # of a step that is repeated: its name, and what it is repeated over, as "5s" or "max"
    "int32: phase_pass?",  # from 1
)
"""What a cell does, and for which turn of a repeated step; stands behind the place in the plan."""

TELEMETRY_LINES = (
    # Of the time around a cell; null where the host does not say.
    "float: temperature_min_c? temperature_mean_c? temperature_max_c?",
    "bool: throttled?",
    "float: load_pct? steal_pct? cpu_pct?",  # of all CPU time: by others, by the hypervisor, by all programs
    "float: cpu_frequency_mhz? power_w? energy_j? host_power_w?",  # power_w: of the drive
    "bool: tainted",
    "str: taint_reason?",  # "cause: words", several separated by "; "
)
