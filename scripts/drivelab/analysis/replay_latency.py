"""Latencies and issue errors of a replay, counted in fio's bins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd

from drivelab.analysis.replay_fidelity import issue_errors_us
from drivelab.analysis.replay_requests import Floats, completed, latencies_us, operation_codes, trace_latencies_us
from drivelab.trace.schema import BATCH_ROWS, OPERATIONS
from drivelab.virtual.evidence import bin_indices, bin_value

COLUMNS = ("operation", "source", "latency_ns", "count")


def latency_bins(requests: pd.DataFrame) -> pd.DataFrame:
    """Rows of COLUMNS, ascending: how many requests took so long, in the replay and, the same ones, in the trace.

    `source` is "replay" or "trace", `latency_ns` the middle of a bin of fio. Requests that completed; the trace's are
    those whose latency it knows (replay_requests.trace_latencies_us). Columns: operation, preflush, issue_ns,
    complete_ns, error, trace_latency_ns.
    """
    codes, good = operation_codes(requests), completed(requests)
    found: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for source, latencies in (("replay", latencies_us), ("trace", trace_latencies_us)):
        latency_us = latencies(requests)
        known = good & ~np.isnan(latency_us)
        for code in range(len(OPERATIONS)):
            found[code, source] = _bins(latency_us[known & (codes == code)])
    rows = [(OPERATIONS[code], source, *one) for (code, source), bins in sorted(found.items()) for one in bins]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def issue_error_bins(requests: pd.DataFrame) -> pd.DataFrame:
    """Columns error_ns (middle of a bin of fio) and count, ascending; empty for schedules without deadlines.

    What was issued before its deadline, which no engine should do, counts as 0. Columns: deadline_ns, issue_ns.
    """
    return pd.DataFrame(_bins(issue_errors_us(requests)), columns=["error_ns", "count"])


def _bins(values_us: Floats) -> list[tuple[int, int]]:
    """Middle in ns and count of each bin that holds something, ascending."""
    counts: Counter[int] = Counter()
    for first in range(0, len(values_us), BATCH_ROWS):
        values_ns = np.rint(1000 * np.maximum(values_us[first : first + BATCH_ROWS], 0)).astype(np.int64)
        indices, found = np.unique(bin_indices(values_ns), return_counts=True)
        counts.update(dict(zip(indices.tolist(), found.tolist(), strict=True)))
    return [(bin_value(index), count) for index, count in sorted(counts.items())]
