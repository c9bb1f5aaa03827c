"""Count latencies and issue errors of a replay in fio's bins."""

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
    """Count requests per latency bin, in replay and trace: rows of COLUMNS.

    `source` is "replay" or "trace"; `latency_ns` is the middle of a bin of fio. Only requests that completed in the
    replay count, and for the trace only those with a known latency (replay_requests.trace_latencies_us).
    Columns: operation, preflush, issue_ns, complete_ns, error, trace_latency_ns.
    """
    codes, good = operation_codes(requests), completed(requests)
    bins_of: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for source, latencies in (("replay", latencies_us), ("trace", trace_latencies_us)):
        latency_us = latencies(requests)
        known = good & ~np.isnan(latency_us)
        for code in range(len(OPERATIONS)):
            bins_of[code, source] = _bins(latency_us[known & (codes == code)])
    rows = [(OPERATIONS[code], source, *item) for (code, source), bins in sorted(bins_of.items()) for item in bins]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def issue_error_bins(requests: pd.DataFrame) -> pd.DataFrame:
    """Return columns error_ns (middle of a bin of fio) and count, ascending.

    The result is empty without deadlines.
    A request issued before its deadline counts as 0; no engine should do that. Columns: deadline_ns, issue_ns.
    """
    return pd.DataFrame(_bins(issue_errors_us(requests)), columns=["error_ns", "count"])


def _bins(values_us: Floats) -> list[tuple[int, int]]:
    """Return (middle in ns, count) of each bin that is not empty, ascending."""
    counts: Counter[int] = Counter()
    for first in range(0, len(values_us), BATCH_ROWS):
        values_ns = np.rint(1000 * np.maximum(values_us[first : first + BATCH_ROWS], 0)).astype(np.int64)
        indices, per_bin = np.unique(bin_indices(values_ns), return_counts=True)
        counts.update(dict(zip(indices.tolist(), per_bin.tolist(), strict=True)))
    return [(bin_value(index), count) for index, count in sorted(counts.items())]
