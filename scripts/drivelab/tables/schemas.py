"""Arrow schemas of all tables, with one common version.

Units are part of the column names (`_us`, `_s`, `_ms`, `_ns`, `_bytes`, `_mib_s`, `_pct`); IOPS are I/Os per
second. Latency runs from submission to completion. A column marked with `?` may hold nulls for values that do not
exist, such as the mean read latency of a cell that only writes.
"""

from __future__ import annotations

import pyarrow as pa

from drivelab.tables.columns import KEY_LINES, PLACE_LINES, SHAPE_LINES, TELEMETRY_LINES, WORKLOAD_LINES, schema
from drivelab.tables.replay_schemas import LOAD_TABLES, REPLAY_TABLES
from drivelab.tables.result_schemas import APPLICATION_TABLES, RESULT_TABLES

VERSION = 15
"""Increase it with every schema change: drivelab rebuilds tables of another version instead of reading them."""

CELLS = schema(
    # One row per cell; for a soak, one per slice, with the slice number as round.
    *KEY_LINES,
    *PLACE_LINES,
    *WORKLOAD_LINES,
    "str: cell_label",  # unique in the recording: the workload, and what distinguishes the cell from others
    "str: pattern",  # "random" | "sequential"
    "int32: read_share_pct",
    "int64: block_size_bytes block_size_max_bytes?",  # max: largest size of a range
    "int32: threads queue_depth",  # queue_depth: per thread
    "int64: alignment_offset_bytes range_bytes?",
    "float: range_start range_share",  # of the capacity, even if the range is given in bytes
    "int32: segments?",
    "float: rate_iops? entropy?",  # entropy: share of random data; null: all
    "str: beside?",  # further workloads at the same time
    "bool: filled",  # the drive was conditioned with a fill
    "str: point? until?",  # "max" | "mid" | "min"; until: the stop rule of a loop, one of UNTIL
    "bool: cold",  # a cold round never counts
    "time: started",
    "float: elapsed_s runtime_s",  # elapsed_s: from the start of the measurement to the start of the cell
    "int64: read_ios write_ios",
    "float: iops read_iops write_iops",  # iops = reads + writes
    "float: bandwidth_mib_s read_bandwidth_mib_s write_bandwidth_mib_s",
    "float: mean_latency_us? min_latency_us? max_latency_us?",  # min: null for a slice
    "float: p50_latency_us? p90_latency_us? p99_latency_us? p999_latency_us? p9999_latency_us? p99999_latency_us?",
    "float: p999999_latency_us?",
    "float: read_mean_latency_us? write_mean_latency_us?",
    "strs: workloads?",  # names of simultaneous workloads; null for one workload. A value of each follows:
    "floats: workload_ios? workload_iops? workload_bandwidth_mib_s? workload_mean_latency_us? workload_max_latency_us?",
    "int64: bytes_written bytes_written_total",  # total: host writes since conditioning, this cell included
    "float: user_cpu_pct system_cpu_pct",
    "float: gap_ms?",  # harness gap before this cell; null for the first
    "float: pause_s? idle_ms?",  # pause: planned idle time after the cell; idle: time without I/O before it
    "bool: after_gap",  # the measurement was interrupted and resumed just before
    "str: ended_by?",  # "steady state" | "volume" | "time": what ended the slice's soak, if it has a steady-state rule
    "bool: in_window",  # the slice is in the window of a soak that ended in steady state
    *TELEMETRY_LINES,
    "str: power_source?",  # of power_w: "meter" | "drive"
    "float: busiest_cpus_pct? interrupt_cpus_pct?",  # of as many CPUs as threads, without others; part in interrupts
    "str: host_limit?",  # why the host may be the limit; null: no sign, or the question does not apply
    "str: directory",  # of fio's job, output and logs in the recording; slices of a soak share it
    "str: unsound?",  # why the cell is excluded: fault, see table exclusions, and details
)

LATENCY_BINS = schema(
    # fio's bins, 1/64 octave wide: latency_ns is the middle of a bin, at most the largest latency; count is the number
    # of I/Os in it.
    *KEY_LINES,
    *PLACE_LINES,
    *WORKLOAD_LINES,
    "str: pattern",
    "int32: read_share_pct",
    "int64: block_size_bytes",
    "str: direction",  # "read" | "write", or "trim" of a cell that only trims
    "int32: part?",  # number of one of several simultaneous workloads
    "int64: latency_ns count",
)

SERIES = schema(
    # One-second averages within a cell; time_s counts from the start of the cell.
    *KEY_LINES,
    *PLACE_LINES,
    *WORKLOAD_LINES,
    "float: time_s",
    "str: direction",
    "float: iops bandwidth_mib_s mean_latency_us?",
)

STEADY_STATE = schema(
    # One row per tracked variable of a loop; `values` are from the rounds of the window, in `unit`.
    *KEY_LINES,
    "int32: step",
    "str: variable metric unit",  # variable: "RND 4KiB 0/100"
    "bool: reached",  # by all tracked variables at once
    "int32: rounds window_start window_end",  # rounds: total number; the window counts from 1
    "floats: values",
    "float: average allowed_data_excursion measured_data_excursion",
    "float: allowed_slope_excursion measured_slope_excursion",
    "float: slope intercept",  # fit: slope * round + intercept
    "float: residual_drift_pct",
    "float: asymptote_pct?",  # fitted asymptote relative to the average; 0: the rounds approach none
)

TELEMETRY = schema(
    # One row per sample; sources with a lower sampling rate have nulls in between.
    *KEY_LINES,
    "time: time",
    "float: temperature_c? temperature_limit_c?",
    "float: drive_power_w? meter_power_w? host_power_w? processor_power_w? power_state?",
    "float: cpu_pct? load_pct? steal_pct? interrupts_per_s? cpu_frequency_mhz?",  # since an earlier sample
    "int64: bytes_written?",  # by the host, since the drive was attached
    "int64: smart_bytes_written? smart_bytes_read? media_errors?",  # over the drive's life, as all below
    "float: percentage_used_pct? available_spare_pct?",
    "float: array_missing? array_synced_pct?",  # members missing or not filled; progress of a rebuild or resync
    "int64: warning_temperature_min? critical_temperature_min?",
    "int64: thermal_1_transitions? thermal_1_s? thermal_2_transitions? thermal_2_s?",
)

DRIVES = schema(
    "str: drive serial model? firmware?",  # null: the kernel does not report it; several models and firmwares: A + B
    "str: kind? composition?",  # as in the drive sheet; of what it consists, from the top to its drives
    "int64: capacity_bytes?",  # null, as the next column: an imported result without it
    "int32: logical_block_bytes?",
    "str: transport? link? link_max? lba_format?",
    "str: controller?",  # host bus adapter of a drive that is not NVMe: kernel driver, PCI vendor and device
    "str: manufacturer?",  # by the PCI vendor of an NVMe drive, else by the OUI in the world wide name
    "bool: rotational?",  # a hard disk, by the kernel; null: unknown, as the next column
    "str: zoned?",  # "none", also of drive-managed SMR | "host-aware"
    "bool: virtual",
    "float: over_provisioning_pct?",
    "str: file_system? mkfs? mount_options?",  # of a platform that measures a file: type, version and arguments of mkfs
    "str: device",
)

HOSTS = schema(
    "str: host kernel cpu",
    "int32: cores?",
    "int64: memory_bytes?",
    "str: os fio drivelab python",
    "str: board? system? bios? memory_modules?",  # as the firmware tells; memory modules need root
    "float: base_clock_mhz? max_clock_mhz?",  # of the first CPU
    "float: package_power_limit_w?",  # long-term limit of all processor packages together
    "str: note?",  # what the user says that the host cannot tell, such as its cooler
)

TRACES = schema(
    "str: trace source application",
    "int64: requests reads writes flushes discards read_bytes write_bytes footprint_bytes",
    "int64: footprint_block_bytes",  # 4096; more for a very large footprint
    "float: duration_s",
    "bool: lossy",
    "int64: lost",
)

_TRACE_DEPTHS = "float: queue_depth_{0}? dispatch_depth_{0}?"
_TRACE_LATENCIES = "{0}_mean_us? {0}_p50_us? {0}_p99_us? {0}_p999_us? {0}_max_us?"

TRACE_OVERVIEW = schema(
    # One row per trace; docs/trace_statistics.md defines each column. Shares refer to requests unless the name says
    # otherwise.
    "str: trace title? application? source? backend? format_imported? kernel? first_event?",
    "strs: marks notes",  # "lossy" | "incomplete" | "issue times" | "derived" | "imported" | "virtual"; notes: why
    "int64: capacity_bytes? time_resolution_ns lost malformed unmatched requests",
    "float: duration_s",
    "int64: read_bytes write_bytes low_bytes high_bytes",
    "int64: footprint_bytes read_footprint_bytes write_footprint_bytes footprint_block_bytes",
    "float: sequential_share_pct? sequential_bytes_share_pct? strict_sequential_share_pct?",
    "int64: length_step_bytes streams main_streams",
    "float: main_streams_share_pct?",
    "float: interarrival_mean_us? interarrival_p50_us? interarrival_p90_us? interarrival_p99_us? interarrival_max_us?",
    "float: interarrival_variation? bin_error_pct",
    *(_TRACE_DEPTHS.format(statistic) for statistic in ("mean", "p50", "p99", "max")),  # over time
    "float: idle_share_pct? idle_gap_share_pct? idle_gap_s",
    "str: idle_basis",  # "nothing in flight" | "long gaps between arrivals"
    "int64: merged? split requeued errors",
    "strs: error_codes",
    "int64: without_dispatch without_completion times_backwards",
)

TRACE_OPERATIONS = schema(
    # One row per operation, even if the trace does not contain it.
    "str: trace operation",
    "int64: requests bytes",
    "float: share_pct? mean_bytes? min_bytes? p50_bytes? p99_bytes? max_bytes?",
    "float: sequential_share_pct? strict_sequential_share_pct?",
    "int64: sync meta fua readahead preflush errors split requeued without_dispatch without_completion",
    *(f"float: {_TRACE_LATENCIES.format(phase)}" for phase in ("q2c", "q2d", "d2c")),
)

_INTERVAL = "float: begin_s end_s"
"""Seconds since the first request."""

TRACE_OVER_TIME = schema(
    "str: trace",
    _INTERVAL,
    "int64: requests reads writes flushes discards write_zeroes read_bytes write_bytes discard_bytes",
    "float: requests_per_s?",
    "int64: footprint_bytes working_set_bytes block_bytes",  # footprint: since the beginning
    *(_TRACE_DEPTHS.format(statistic) for statistic in ("mean", "max")),
)

TRACE_SIZES = schema("str: trace operation", "int64: length_bytes requests length_step_bytes")

TRACE_INTERARRIVAL = schema("str: trace", "int64: low_ns high_ns requests")  # bins with both ends inclusive

TRACE_BURSTINESS = schema(
    # Counts of requests in equal windows; dispersion is variance over mean: 1 for a Poisson process.
    "str: trace",
    "float: window_s",
    "int64: windows",
    "float: mean_requests variance dispersion",
)

TRACE_LATENCY = schema("str: trace operation phase", "int64: low_ns high_ns requests")  # phase: Q2C, Q2D, D2C

TRACE_HEAT = schema(
    # Non-empty cells of time and address; a request counts in the cell where it begins.
    "str: trace",
    _INTERVAL,
    "int64: low_bytes high_bytes reads writes read_bytes write_bytes",
)

TRACE_STREAMS = schema(
    "str: trace",
    "int64: rank",
    "str: stream operation",
    "int64: length_bytes",
    "bool: sequential",
    "int64: requests bytes",
    "float: share_pct cumulative_pct bytes_share_pct",
    "bool: main",  # one of the fewest streams that cover 80 % of reads and writes
    "int64: length_step_bytes",
)

TRACE_TABLES: dict[str, pa.Schema] = {
    "trace_overview": TRACE_OVERVIEW,
    "trace_operations": TRACE_OPERATIONS,
    "trace_over_time": TRACE_OVER_TIME,
    "trace_sizes": TRACE_SIZES,
    "trace_interarrival": TRACE_INTERARRIVAL,
    "trace_burstiness": TRACE_BURSTINESS,
    "trace_latency": TRACE_LATENCY,
    "trace_heat": TRACE_HEAT,
    "trace_streams": TRACE_STREAMS,
}
"""Tables of a trace; one file of each per trace."""

SCHEMAS: dict[str, pa.Schema] = {
    "cells": CELLS,
    "latency_bins": LATENCY_BINS,
    "series": SERIES,
    "steady_state": STEADY_STATE,
    **REPLAY_TABLES,
    **APPLICATION_TABLES,
    **LOAD_TABLES,
    "telemetry": TELEMETRY,
    **RESULT_TABLES,
    "drives": DRIVES,
    "hosts": HOSTS,
    "traces": TRACES,
    **TRACE_TABLES,
}

KEY = tuple(schema(*KEY_LINES).names)
"""Columns that identify the recording of a row."""
SHAPE = tuple(schema(*SHAPE_LINES).names)
"""Columns that describe the workload of a value."""
