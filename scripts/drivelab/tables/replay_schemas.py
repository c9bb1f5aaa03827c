"""Arrow schemas of the replays in a recording."""

from __future__ import annotations

import pyarrow as pa

from drivelab.tables.columns import KEY_LINES, TELEMETRY_LINES, WORKLOAD_LINES, schema

_RUN = ("int32: step", "str: phase?", "int32: phase_pass?", "str: trace", "int32: repeat")
"""One replay: step of the plan; phase and pass (from 1) of a step repeated by phase, such as a consistency test."""

REPLAYS = schema(
    # One row per trace and repeat.
    *KEY_LINES,
    *_RUN,
    "bool: warm counted",
    "str: engine timing_mode timing",  # mode: "original" | "scaled" | "asap" | "idle-capped"; timing: a description
    "str: mapping dependencies",  # mapping: the method; the table replay_mappings has its changes
    "str: state",  # of the engine at the end; "finished" if it completed all requests
    "bool: partial",
    "str: trace_marks?",  # "lossy": the trace is incomplete
    "strs: marks",  # limitations of the numbers, "word: sentence"
    "int64: requests planned_requests read_ios write_ios planned_read_ios planned_write_ios",
    "int64: flushes planned_flushes discards planned_discards write_zeroes planned_write_zeroes",
    "int32: asked_passes?",  # null: until the repeats agree
    "bool: alike_passes?",  # all passes of the phase are prepared in the same way
    "int64: errors",
    "int64: order_inversions?",
    "float: duration_s? trace_duration_s duration_ratio?",
    "str: duration_basis?",  # the durations that duration_ratio compares
    # Issue time minus deadline; null in mode "asap", which has no deadlines.
    "float: issue_error_p50_us? issue_error_p95_us? issue_error_p99_us? issue_error_max_us? within_50us_pct?",
    "int64: overlapping_requests? trace_overlapping_requests?",  # in flight with one that they conflict with
    "float: late_by_depth_pct? late_by_dependency_pct?",
    "int64: most_in_flight? trace_most_in_flight?",
    "float: mean_in_flight? trace_mean_in_flight?",  # while at least one is in flight
    "float: wakeup_p50_us? wakeup_p95_us? wakeup_p99_us?",  # wake-up delay of this host, measured before the run
    "int64: read_bytes write_bytes",
    "float: busy_s? bandwidth_mib_s?",  # bandwidth: bytes divided by busy time
    "float: access_time_us? score? read_access_time_us? write_access_time_us?",
    "float: p50_latency_us? p99_latency_us? p999_latency_us? p9999_latency_us? p99999_latency_us? max_latency_us?",
    # From when a request was due, not from its issue; null if deadlines depend on completions, or there are none.
    "float: response_time_us? p50_response_us? p99_response_us? p999_response_us? p9999_response_us?",
    "float: p99999_response_us? max_response_us?",
    "float: trace_access_time_us?",  # on the system where the trace was captured
    *TELEMETRY_LINES,
)

REPLAY_OPERATIONS = schema(
    *KEY_LINES,
    *_RUN,
    "bool: counted",
    "str: operation",
    "int64: planned_requests issued_requests completed_requests failed_requests",
    "int64: planned_bytes issued_bytes completed_bytes failed_bytes",
    "float: mean_latency_us? p50_latency_us? p99_latency_us? p999_latency_us? max_latency_us?",
    "float: trace_mean_latency_us?",
)

REPLAY_STREAMS = schema(
    *KEY_LINES,
    *_RUN,
    "bool: counted",
    "str: stream_kind stream",  # "stream": operation, size, random or sequential; "process"
    "int64: requests bytes",
    "float: share_pct access_time_us? p99_latency_us? trace_access_time_us?",
)

REPLAY_LATENCY = schema(
    # fio's bins; `source`: the replay, or the trace for the same requests.
    *KEY_LINES,
    *_RUN,
    "bool: counted",
    "str: operation source",
    "int64: latency_ns count",
)

REPLAY_ISSUE_ERRORS = schema(
    # Numbers of requests by issue time minus deadline, in fio's bins.
    *KEY_LINES,
    *_RUN,
    "bool: counted",
    "int64: error_ns count",
)

REPLAY_OVER_TIME = schema(
    # A hundred equal intervals. Planned requests count at their deadline, others at their issue. Mode "asap" has no
    # deadlines, so planned columns are null.
    *KEY_LINES,
    *_RUN,
    "bool: counted",
    "float: begin_s end_s",
    "int64: planned_requests? issued_requests? planned_bytes? issued_bytes?",  # bytes, IOPS, MiB/s: reads and writes
    "float: planned_iops? iops? planned_bandwidth_mib_s? bandwidth_mib_s?",
    "float: mean_latency_us? trace_mean_latency_us? issue_error_p50_us? issue_error_p99_us?",
    "float: planned_depth? depth?",  # mean in flight: in the trace, and in the replay
)

REPLAY_MAPPINGS = schema(
    # Changes that mapped a trace onto the drive, one row per trace and step
    *KEY_LINES,
    "int32: step",
    "str: trace method reason",
    "int64: capacity_bytes logical_block_bytes range_start_bytes range_bytes",
    "int64: requests_in_trace requests_merged requests_moved requests_resized requests_split requests_clipped",
    "int64: requests_dropped footprint_before_bytes footprint_after_bytes",
    "float: sequential_before_pct sequential_after_pct",
    "int64: retouched_before_bytes retouched_after_bytes",
)

REPLAY_PASSES = schema(
    # One row per pass over all traces of a step.
    *KEY_LINES,
    "int32: step",
    "str: phase?",
    "int32: phase_pass?",
    "int32: repeat",
    "bool: warm counted",
    "int32: traces",
    "str: trace_names",  # separated by ", "
    "str: timing_mode",
    "int32: asked_passes?",  # as in the table replays
    "bool: alike_passes?",
    "bool: partial",
    "int64: read_bytes write_bytes",
    "float: busy_s? bandwidth_mib_s?",  # all bytes divided by all busy time
    "float: access_time_us? score? duration_s?",  # access time: over all reads and writes of the pass
    "bool: tainted",
    "str: taint_reason?",
)

LOAD_RATES = schema(
    # One row per rate of a load step, from all of its measurements. Response times count from when a request was due.
    *KEY_LINES,
    "int32: step",
    *WORKLOAD_LINES,
    "str: arrivals",  # "poisson" | "constant" | "trace"
    "str: trace?",  # the trace whose bursts the arrivals have
    "float: percentile limit_us",
    "int32: rate measurements",  # rate: from 1, in the order of the search
    "float: rate_iops achieved_iops",  # offered; completed per second while requests were due
    "str: outcome",  # "passes" | "fails" | "undecided" | "host-limited"
    # After the warm-up. Effective: as many independent requests hold as much information.
    "int64: requests requests_beyond requests_unserved effective_requests",
    "float: response_us? low_us? high_us?",  # the percentile and its 95 % interval; null: infinite or not bounded
    "float: mean_response_us? p50_response_us? p90_response_us? p99_response_us? p999_response_us?",
    "float: p9999_response_us? p99999_response_us? max_response_us?",
    "float: late_issue_us depth_limited_pct",  # late_issue: the same percentile of the host's own delay; % of issued
    "int32: threads queue_depth most_in_flight",  # queue_depth: limit of the requests in flight
    "strs: doubts",  # "word: sentence"
    "bool: counted",
    "strs: directories",  # of the evidence in the recording
    *TELEMETRY_LINES,
)

REPLAY_TABLES: dict[str, pa.Schema] = {
    "replays": REPLAYS,
    "replay_operations": REPLAY_OPERATIONS,
    "replay_streams": REPLAY_STREAMS,
    "replay_latency": REPLAY_LATENCY,
    "replay_issue_errors": REPLAY_ISSUE_ERRORS,
    "replay_over_time": REPLAY_OVER_TIME,
    "replay_mappings": REPLAY_MAPPINGS,
    "replay_passes": REPLAY_PASSES,
}
"""Tables of the replays in a recording; empty if it has none."""
LOAD_TABLES: dict[str, pa.Schema] = {"load_rates": LOAD_RATES}
"""Tables of the load steps in a recording; empty if it has none."""
