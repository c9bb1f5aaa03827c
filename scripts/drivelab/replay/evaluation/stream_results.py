"""Summarise reads and writes of a replay by I/O stream and by process.

Streams: SNIA Real World Storage Workload PTS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.replay.evaluation.requests import Flags, Floats, Requests, mean, percentiles
from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.statistics.batch import READ, WRITE
from drivelab.trace.statistics.streams import follows, stream_name

SHOWN = 30
"""Number of most frequent streams, or processes, with a separate row; all others share one."""
OTHERS = "others"
UNKNOWN = "unknown"
"""Process of requests whose trace names none."""
COLUMNS = (
    "stream_kind", "stream", "requests", "bytes", "share_pct", "access_time_us", "p99_latency_us",
    "trace_access_time_us",
)  # fmt: skip
_FLOATS = ("share_pct", "access_time_us", "p99_latency_us", "trace_access_time_us")


def streams(requests: Requests) -> pd.DataFrame:
    """Return rows of COLUMNS: streams (`RND 4KiB W`), then processes.

    `stream_kind` is "stream" or "process"; within each, the most frequent come first.
    Only completed reads and writes count. Whether one is sequential follows from all planned ones, at their offsets on
    the replayed drive. `share_pct` is the share of requests.
    """
    used = requests.transfers & requests.completed
    length = requests.length_bytes[used]
    process = pd.Categorical(requests.frame["process"])
    names = [str(name) or UNKNOWN for name in process.categories]
    kinds = length << 2 | sequential(requests)[used].astype(np.int64) << 1 | requests.operation[used]
    served = (length, requests.latency_us[used], requests.trace_latency_us[used])
    rows = [*_rows("stream", kinds, lambda kind: stream_name(bool(kind & 2), kind >> 2, OPERATIONS[kind & 1]), *served)]
    rows += _rows("process", process.codes[used], names.__getitem__, *served)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(_FLOATS, np.float64))


def sequential(requests: Requests) -> Flags:
    """Return whether each read or write of data continues a recent one of its direction; see trace.statistics.streams.

    Shape (rows,).
    """
    operation, length = requests.operation, requests.length_bytes
    offset = requests.frame["offset_bytes"].to_numpy(np.int64)
    flags = np.zeros(len(requests), np.bool_)
    for direction in (READ, WRITE):
        rows = np.flatnonzero((operation == direction) & (length > 0))
        flags[rows] = follows(offset[rows], offset[rows] + length[rows])
    return flags


def _rows(
    stream_kind: str, kinds: npt.NDArray[np.integer[Any]], name_of: Callable[[int], str], length: npt.NDArray[np.int64],
    latency_us: Floats, trace_us: Floats,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield a row for each of the SHOWN most frequent kinds, and one for others; arrays have shape (n,)."""
    codes, values = pd.factorize(kinds)
    frequent = np.argsort(-np.bincount(codes, minlength=len(values)), kind="stable")
    rank = np.empty(len(values), np.int64)
    rank[frequent] = np.arange(len(values))
    ranks = np.minimum(rank, SHOWN)[codes]
    labels = [name_of(int(value)) for value in values[frequent[:SHOWN]]] + [OTHERS] * (len(values) > SHOWN)
    for number, label in enumerate(labels):
        rows = np.flatnonzero(ranks == number)
        ordered, then_us = np.sort(latency_us[rows]), trace_us[rows]
        yield {
            "stream_kind": stream_kind,
            "stream": label,
            "requests": len(rows),
            "bytes": int(length[rows].sum()),
            "share_pct": 100 * len(rows) / len(kinds),
            "access_time_us": mean(ordered),
            "p99_latency_us": percentiles(ordered, [99.0])[0],
            "trace_access_time_us": mean(then_us[~np.isnan(then_us)]),
        }
