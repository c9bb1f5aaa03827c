"""What a trace holds, in one row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.errors import UserError
from drivelab.trace.schema import OPERATIONS, TraceFile, open_trace
from drivelab.trace.statistics import marks
from drivelab.trace.statistics.batch import Batch
from drivelab.trace.statistics.footprint import Footprint, TouchedWords

FOOTPRINT_BLOCK_BYTES = 4096


def characterise(requests: pd.DataFrame, provenance: Mapping[str, Any], trace: str) -> pd.DataFrame:
    """One row of the table `traces` for a trace named `trace`.

    `requests` has the columns of drivelab.trace.schema.REQUESTS. `duration_s` runs from the first queued request
    to the last queued or completed one. `footprint_bytes` is what reads and writes touch.
    """
    operation = requests["operation"].astype(str)
    length = requests["length_bytes"]
    moved = requests[operation.isin(["read", "write"])]
    offsets, lengths = (moved[name].to_numpy(np.int64) for name in ("offset_bytes", "length_bytes"))
    return _row(
        trace,
        provenance,
        {one: int((operation == one).sum()) for one in OPERATIONS},
        {one: int(length[operation == one].sum()) for one in OPERATIONS},
        (footprint_bytes(offsets, lengths), FOOTPRINT_BLOCK_BYTES),
        duration_ns(requests),
    )


def characterise_file(path: Path, trace: str) -> pd.DataFrame:
    """The same row for a trace file of any length, in bounded memory.

    `footprint_block_bytes` is more than 4096 where the touched parts of the device are too many for blocks of 4 KiB.
    Raises UserError when the file is no trace, is damaged or holds impossible requests.
    """
    requests, sizes = np.zeros(len(OPERATIONS), np.int64), np.zeros(len(OPERATIONS), np.int64)
    first_ns = last_ns = None
    words = TouchedWords()
    with open_trace(path) as file:
        for batch in _batches(path, file):
            requests += np.bincount(batch.operation, minlength=len(OPERATIONS))
            sizes += [int(batch.length_bytes[batch.operation == one].sum()) for one in range(len(OPERATIONS))]
            words.add(batch)
            first_ns = int(batch.queue_ns[0]) if first_ns is None else first_ns
            last_ns = max(last_ns or 0, int(batch.queue_ns[-1]), int(batch.ints("complete_ns").max()))
        footprint = Footprint(words)
        blocks = sum(footprint.add(batch, slice(None)).blocks for batch in _batches(path, file))
        return _row(
            trace,
            file.provenance,
            dict(zip(OPERATIONS, requests.tolist(), strict=True)),
            dict(zip(OPERATIONS, sizes.tolist(), strict=True)),
            (blocks * words.block_bytes, words.block_bytes),
            (last_ns or 0) - (first_ns or 0),
        )


def row_of(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The same row from the tables of drivelab.trace.statistics, as plain values."""
    facts = tables["trace_overview"].iloc[0]
    operations = tables["trace_operations"].set_index("operation")
    provenance = {"lost": {"events": int(facts["lost"])}}
    provenance |= {name: facts[name] for name in ("backend", "application") if facts[name] is not None}
    row = _row(
        facts["trace"],
        provenance,
        {one: int(operations.loc[one, "requests"]) for one in OPERATIONS},
        {one: int(operations.loc[one, "bytes"]) for one in OPERATIONS},
        (int(facts["footprint_bytes"]), int(facts["footprint_block_bytes"])),
        round(float(facts["duration_s"]) * 1e9),
    )
    return dict(row.astype(object).iloc[0])


def _batches(path: Path, file: TraceFile) -> Iterator[Batch]:
    for one in file.batches(("queue_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")):
        if one.num_rows:
            try:
                yield Batch(one)
            except UserError as error:
                raise UserError(f"{path}: {error}") from None


def _row(
    trace: str,
    provenance: Mapping[str, Any],
    requests: Mapping[str, int],
    sizes_bytes: Mapping[str, int],
    footprint: tuple[int, int],
    duration_ns: int,
) -> pd.DataFrame:
    lost = marks.lost(provenance)
    row = {
        "trace": trace,
        "source": str(provenance.get("backend", "unknown")),
        "application": str(provenance.get("application", "unknown")),
        "requests": sum(requests.values()),
        "reads": requests["read"],
        "writes": requests["write"],
        "flushes": requests["flush"],
        "discards": requests["discard"],
        "read_bytes": sizes_bytes["read"],
        "write_bytes": sizes_bytes["write"],
        "footprint_bytes": footprint[0],
        "footprint_block_bytes": footprint[1],
        "duration_s": duration_ns / 1e9,
        "lossy": lost > 0,
        "lost": lost,
    }
    return pd.DataFrame(row, index=[0])


def duration_ns(requests: pd.DataFrame) -> int:
    """From the first queued request to the last queued or completed one; 0 for no requests."""
    if requests.empty:
        return 0
    last = max(requests["queue_ns"].max(), requests["complete_ns"].max(skipna=True) or 0)
    return int(last - requests["queue_ns"].min())


def footprint_bytes(offset_bytes: npt.NDArray[np.int64], length_bytes: npt.NDArray[np.int64]) -> int:
    """Bytes in the distinct 4 KiB blocks that the extents touch, each block counted once and whole."""
    used = length_bytes > 0
    first = offset_bytes[used] // FOOTPRINT_BLOCK_BYTES
    after = -(-(offset_bytes[used] + length_bytes[used]) // FOOTPRINT_BLOCK_BYTES)
    order = np.argsort(first, kind="stable")
    first, after = first[order], after[order]
    if not first.size:
        return 0
    reached = np.concatenate([first[:1], np.maximum.accumulate(after)[:-1]])
    return int(np.clip(after - np.maximum(first, reached), 0, None).sum()) * FOOTPRINT_BLOCK_BYTES
