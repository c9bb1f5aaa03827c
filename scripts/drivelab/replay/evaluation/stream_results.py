"""Summarise reads and writes of a replay by I/O stream and by process.

Streams: SNIA Real World Storage Workload PTS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from drivelab.core.units import format_size
from drivelab.replay.evaluation.requests import (
    Codes,
    Flags,
    Floats,
    completed,
    latencies_us,
    mean,
    operation_codes,
    percentiles,
    trace_latencies_us,
    transfers,
)
from drivelab.trace.parquet_schema import BATCH_ROWS, OPERATIONS
from drivelab.trace.statistics.batch import Batch
from drivelab.trace.statistics.streams import Sequence

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


def streams(requests: pd.DataFrame) -> pd.DataFrame:
    """Return rows of COLUMNS: streams (`RND 4KiB W`), then processes.

    `stream_kind` is "stream" or "process"; within each, the most frequent come first.
    Only completed reads and writes count. Whether one is sequential follows from all planned ones, at their offsets on
    the replayed drive. `share_pct` is the share of requests. Columns: operation, offset_bytes, length_bytes, process,
    preflush, issue_ns, complete_ns, error, trace_latency_ns.
    """
    used = transfers(requests) & completed(requests)
    length = requests["length_bytes"].to_numpy(np.int64)[used]
    kind_ranks, kinds = _ranked(_kinds(length, sequential(requests)[used], operation_codes(requests)[used]))
    process = pd.Categorical(requests["process"])
    process_ranks, codes = _ranked(process.codes[used])
    names = [str(process.categories[code]) or UNKNOWN for code in codes]
    served = _Served(latencies_us(requests)[used], trace_latencies_us(requests)[used], length)
    rows = list(_rows("stream", kind_ranks, [_name(kind) for kind in kinds], served))
    rows += _rows("process", process_ranks, names, served)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(_FLOATS, np.float64))


def sequential(requests: pd.DataFrame) -> Flags:
    """Return whether each read or write continues a recent one of its direction.

    The rule is in trace.statistics.sequence.
    Shape (rows,). Columns: operation, offset_bytes, length_bytes.
    """
    codes, follow = operation_codes(requests), Sequence()
    offset, length = (requests[name].to_numpy(np.int64) for name in ("offset_bytes", "length_bytes"))
    flags = np.zeros(len(requests), np.bool_)
    for first in range(0, len(requests), BATCH_ROWS):
        part = slice(first, first + BATCH_ROWS)
        operation = pa.DictionaryArray.from_arrays(pa.array(codes[part]), list(OPERATIONS))
        arrays = {"queue_ns": pa.array(offset[part]), "offset_bytes": pa.array(offset[part]),
                  "length_bytes": pa.array(length[part]), "operation": operation}  # fmt: skip
        flags[part] = follow.sequential(Batch(pa.RecordBatch.from_pydict(arrays)))[0]
    return flags


class _Served:
    """Completed reads and writes; arrays of shape (n,)."""

    def __init__(self, latency_us: Floats, trace_us: Floats, length_bytes: npt.NDArray[np.int64]) -> None:
        self.latency_us, self.trace_us, self.length_bytes = latency_us, trace_us, length_bytes

    def facts(self, rows: npt.NDArray[np.intp]) -> dict[str, Any]:
        ordered, trace_us = np.sort(self.latency_us[rows]), self.trace_us[rows]
        return {
            "requests": len(rows),
            "bytes": int(self.length_bytes[rows].sum()),
            "share_pct": 100 * len(rows) / len(self.latency_us),
            "access_time_us": mean(ordered),
            "p99_latency_us": percentiles(ordered, [99.0])[0],
            "trace_access_time_us": mean(trace_us[~np.isnan(trace_us)]),
        }


def _kinds(length_bytes: npt.NDArray[np.int64], follows: Flags, operation: Codes) -> npt.NDArray[np.int64]:
    """Return one number for each stream; shape (n,)."""
    kinds = length_bytes << 1
    kinds |= follows
    kinds <<= 1
    kinds |= operation
    return kinds


def _name(kind: int) -> str:
    """Return the SNIA name of a stream, such as `RND 4KiB W`."""
    return f"{'SEQ' if kind & 2 else 'RND'} {format_size(kind >> 2)} {OPERATIONS[kind & 1][0].upper()}"


def _ranked(values: npt.NDArray[np.integer[Any]]) -> tuple[Codes, list[int]]:
    """Return the frequency rank of each value, SHOWN for all rarer ones.

    Also return the values, most frequent first.
    """
    codes, kinds = pd.factorize(values)
    frequent = np.argsort(-np.bincount(codes, minlength=len(kinds)), kind="stable")
    rank = np.empty(len(kinds), np.int64)
    rank[frequent] = np.arange(len(kinds))
    return np.minimum(rank, SHOWN).astype(np.int8)[codes], kinds[frequent].tolist()


def _rows(stream_kind: str, ranks: Codes, names: list[str], served: _Served) -> Iterator[dict[str, Any]]:
    """Yield a row for each of the SHOWN most frequent streams, and one for others.

    `names` are by rank.
    """
    labels = [*names[:SHOWN], OTHERS] if len(names) > SHOWN else names
    for rank, label in enumerate(labels):
        yield {"stream_kind": stream_kind, "stream": label, **served.facts(np.flatnonzero(ranks == rank))}
