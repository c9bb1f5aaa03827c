"""Arrow schemas of all tables, one version for the set.

Units are part of the column names (`_us`, `_s`, `_ms`, `_ns`, `_bytes`, `_mib_s`, `_pct`); IOPS are I/Os per
second. Latency runs from submission to completion. A column marked with `?` below may hold nulls: there
is no such value, as the mean latency of the reads of a cell that only writes.
"""

from __future__ import annotations

import pyarrow as pa

VERSION = 2
"""Raise it with every change to a schema: tables of another version are not read, they are made anew."""

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


def _schema(*lines: str) -> pa.Schema:
    """Schema from lines `type: column column? …`; a question mark lets the column hold nulls."""
    fields = []
    for line in lines:
        kind, names = line.split(":")
        for name in names.split():
            fields.append(pa.field(name.rstrip("?"), _TYPES[kind], nullable=name.endswith("?")))
    return pa.schema(fields)


_KEY = (
    "str: recording drive serial protocol measurement",  # recording: unique, "drive/measurement/digest-runN"
    "int32: run",
    "bool: reduced virtual",
    "str: clock",  # "wall" | "virtual"
)

_PLACE = ("int32: step", "str: kind", "int32: round cell")
"""Step of the plan; "loop", "soak", "replay" or "fill"; round from 1; order in the round from 0."""

_TELEMETRY = (
    # Of the time around a cell; null where the host does not say.
    "float: temperature_min_c? temperature_mean_c? temperature_max_c?",
    "bool: throttled?",
    "float: load_pct? steal_pct? cpu_pct?",  # of all CPU time: by others, by the hypervisor, by all programs
    "float: cpu_frequency_mhz? power_w? energy_j? host_power_w?",  # power_w: of the drive
    "bool: tainted",
    "str: taint_reason?",  # "cause: words", several separated by "; "
)

CELLS = _schema(
    # One row per cell; of a soak, one per slice, with the slice's number as round.
    *_KEY,
    *_PLACE,
    "str: pattern",  # "random" | "sequential"
    "int32: read_share_pct",
    "int64: block_size_bytes",
    "int32: threads queue_depth",  # queue_depth: per thread
    "time: started",
    "float: elapsed_s runtime_s",  # elapsed_s: from the start of the measurement to the start of the cell
    "int64: read_ios write_ios",
    "float: iops read_iops write_iops",  # iops = reads + writes
    "float: bandwidth_mib_s read_bandwidth_mib_s write_bandwidth_mib_s",
    "float: mean_latency_us? max_latency_us?",
    "float: p50_latency_us? p99_latency_us? p999_latency_us? p9999_latency_us? p99999_latency_us?",
    "float: read_mean_latency_us? write_mean_latency_us?",
    "int64: bytes_written bytes_written_total",  # total: by the host since the end of conditioning, inclusive
    "float: user_cpu_pct system_cpu_pct",
    "float: gap_ms?",  # harness gap before this cell; null for the first
    "bool: after_gap",  # the measurement was interrupted and resumed just before
    *_TELEMETRY,
)

LATENCY_BINS = _schema(
    # fio's bins: latency_ns is the middle of a bin, count the I/Os in it; bins are 1/64 of an octave wide.
    *_KEY,
    *_PLACE,
    "str: pattern",
    "int32: read_share_pct",
    "int64: block_size_bytes",
    "str: direction",  # "read" | "write"
    "int64: latency_ns count",
)

SERIES = _schema(
    # One-second averages within a cell; time_s counts from the start of the cell.
    *_KEY,
    *_PLACE,
    "float: time_s",
    "str: direction",
    "float: iops bandwidth_mib_s mean_latency_us?",
)

STEADY_STATE = _schema(
    # One row per tracked variable of a loop; `values` are those of the window's rounds, in `unit`.
    *_KEY,
    "int32: step",
    "str: variable metric unit",  # variable: "RND 4KiB 0/100"
    "bool: reached",  # by all tracked variables at once
    "int32: rounds window_start window_end",  # rounds: all; the ends count from 1
    "floats: values",
    "float: average allowed_data_excursion measured_data_excursion",
    "float: allowed_slope_excursion measured_slope_excursion",
    "float: slope intercept",  # fit: slope * round + intercept
    "float: residual_drift_pct",
)

REPLAYS = _schema(
    *_KEY,
    "str: trace",
    "int32: repeat",
    "bool: warm counted",
    "str: engine timing",
    "float: duration_s trace_duration_s duration_ratio",
    "int64: read_ios write_ios planned_read_ios planned_write_ios",
    "float: bandwidth_mib_s mean_latency_us p99_latency_us max_latency_us",
    "str: dropped",  # what the engine did not replay; empty when it replayed all
    *_TELEMETRY,
)

TELEMETRY = _schema(
    # One row per sample; a source that is read more seldom has nulls in between.
    *_KEY,
    "time: time",
    "float: temperature_c? temperature_limit_c?",
    "float: drive_power_w? meter_power_w? host_power_w? processor_power_w? power_state?",
    "float: cpu_pct? load_pct? steal_pct? interrupts_per_s? cpu_frequency_mhz?",  # since an earlier sample
    "int64: bytes_written?",  # by the host, since the drive was attached
    "int64: smart_bytes_written? smart_bytes_read? media_errors?",  # over the drive's life, as all below
    "float: percentage_used_pct? available_spare_pct?",
    "int64: warning_temperature_min? critical_temperature_min?",
    "int64: thermal_1_transitions? thermal_1_s? thermal_2_transitions? thermal_2_s?",
)

SUMMARY = _schema(
    "str: drive measurement protocol cell_label metric",
    "str: kind",  # "speed" | "time" | "score"
    "str: unit",
    "float: value",
    "int32: n",  # recordings, or warm runs, that `value` stands on
    "float: rse_pct?",
    "float: spread_low spread_high",
    "str: statistic",  # "window average" | "median of warm runs" | "post-saturation average"
    "str: verdict",
    "str: taint_reason?",  # of the cells that the value stands on
    "bool: reduced virtual",
    "str: clock",
    "strs: recordings",
)

DELTAS = _schema(
    "str: measurement protocol cell_label metric kind unit basis comparison",
    "float: basis_value comparison_value",
    "float: delta_pct",  # positive: the comparison is better
    "bool: certain reduced virtual",  # reduced, virtual: one of the two at least
    "str: clock",  # "wall" | "virtual" | "wall and virtual"
    "str: note",
)

DRIVES = _schema(
    "str: drive serial model? firmware?",  # null: the kernel does not say
    "int64: capacity_bytes",
    "int32: logical_block_bytes",
    "str: transport? link? link_max? lba_format?",
    "bool: virtual",
    "float: over_provisioning_pct?",
    "str: device",
)

HOSTS = _schema("str: host kernel cpu", "int32: cores", "int64: memory_bytes", "str: os fio drivelab python")

TRACES = _schema(
    "str: trace source application",
    "int64: requests reads writes flushes discards read_bytes write_bytes footprint_bytes",
    "float: duration_s",
    "bool: lossy",
    "int64: lost",
)

SCHEMAS: dict[str, pa.Schema] = {
    "cells": CELLS,
    "latency_bins": LATENCY_BINS,
    "series": SERIES,
    "steady_state": STEADY_STATE,
    "replays": REPLAYS,
    "telemetry": TELEMETRY,
    "summary": SUMMARY,
    "deltas": DELTAS,
    "drives": DRIVES,
    "hosts": HOSTS,
    "traces": TRACES,
}

KEY = tuple(_schema(*_KEY).names)
"""Columns that say which recording a row is of."""
