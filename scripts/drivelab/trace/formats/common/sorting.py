"""Choose the rows of volumes, and sort them by time within a bounded window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.core.units import some
from drivelab.trace.formats.common.trace_format import Tally, joined

WINDOW_ROWS = 1 << 20
"""A row may be this many rows late."""
PIECE_ROWS = 1 << 16
SHOWN = 10
MOST_VOLUMES = 1 << 20


def in_time_order(batches: Iterable[pa.RecordBatch], tick_ns: int, tally: Tally) -> Iterator[pa.RecordBatch]:
    """Sort batches in file order by their column `time`, in ticks; equal times keep the file's order.

    Sorted batches pass unchanged. A late row is merged only with the batches that have later times, so small disorder
    costs little. Raises UserError for a row older than the rows already yielded.
    """
    waiting: deque[pa.RecordBatch] = deque()
    rows = 0
    latest = released = np.iinfo(np.int64).min
    for batch in batches:
        if not batch.num_rows:
            continue
        times = _times(batch)
        so_far = np.maximum(np.maximum.accumulate(times), latest)
        latest = so_far[-1]
        tally.out_of_order += int(np.count_nonzero(times < so_far))
        if times.min() < released:
            late = int(np.argmax(times < released))
            raise UserError(
                f"{tally.path}: {tally.unit} {batch['line'][late]} is "
                f"{(int(released) - int(times[late])) * tick_ns / 1e9:.9g} s older than a row more than {WINDOW_ROWS} "
                "rows before it; sort the file by its time column first"
            )
        rows += batch.num_rows
        sorted_batch = _sorted(batch)
        affected = [sorted_batch]
        while waiting and _times(waiting[-1])[-1] > _times(sorted_batch)[0]:
            affected.append(waiting.pop())
        if len(affected) > 1:
            sorted_batch = _sorted(joined(affected[::-1]))
        waiting.extend(sorted_batch.slice(begin, PIECE_ROWS) for begin in range(0, sorted_batch.num_rows, PIECE_ROWS))
        while waiting and rows - waiting[0].num_rows >= WINDOW_ROWS:
            rows -= waiting[0].num_rows
            released = _times(waiting[0])[-1]
            yield waiting.popleft()
    yield from waiting


def _times(batch: pa.RecordBatch) -> Any:
    return batch["time"].to_numpy()


def _sorted(batch: pa.RecordBatch) -> pa.RecordBatch:
    times = _times(batch)
    if not (times[1:] < times[:-1]).any():
        return batch
    return batch.take(pa.array(np.argsort(times, kind="stable")))


def of_volumes(batches: Iterable[pa.RecordBatch], chosen: Sequence[str], tally: Tally) -> Iterator[pa.RecordBatch]:
    """Select the rows of the chosen volumes, or of the only one; `tally.volumes` counts those of all volumes.

    The column `volume` is left only if several are chosen. Raises UserError when a volume must be chosen or the format
    has no volumes, and at the end when the file does not have a chosen one.
    """
    for batch in batches:
        has_volumes = count_volumes(batch, tally)
        if not has_volumes and chosen:
            raise UserError(f"{tally.path}: its format has no volumes; remove --volume {chosen[0]}")
        if not chosen and len(tally.volumes) > 1:
            raise UserError(
                f"{tally.path}: has several volumes ({some(list(tally.volumes), SHOWN)}); choose one with --volume; "
                "several make one trace for one replay; 'drivelab trace volumes' lists them"
            )
        rows = batch if len(chosen) > 1 or not has_volumes else batch.drop_columns(["volume"])
        if chosen and not tally.volumes.keys() <= set(chosen):
            places = [place for place, name in enumerate(batch["volume"].dictionary.to_pylist()) if name in chosen]
            rows = rows.filter(pa.array(np.isin(batch["volume"].indices.to_numpy(), places)))
        yield rows
    for name in chosen if tally.volumes else ():
        if name not in tally.volumes:
            raise UserError(
                f"{tally.path}: has no request of volume '{name}', only of {some(list(tally.volumes), SHOWN)}; "
                "'drivelab trace volumes' lists them"
            )


def count_volumes(batch: pa.RecordBatch, tally: Tally) -> bool:
    """Count the rows of each volume, up to MOST_VOLUMES; return whether the format has volumes.

    Raises UserError for more volumes, which no published trace has.
    """
    if "volume" not in batch.schema.names:
        if batch.num_rows:
            tally.volumes[""] = tally.volumes.get("", 0) + batch.num_rows
        return False
    volumes = batch["volume"]
    counts = np.bincount(volumes.indices.to_numpy(), minlength=len(volumes.dictionary)).tolist()
    for name, count in zip(volumes.dictionary.to_pylist(), counts, strict=True):
        if count:
            tally.volumes[name] = tally.volumes.get(name, 0) + count
    if len(tally.volumes) > MOST_VOLUMES:
        raise UserError(f"{tally.path}: has more than {MOST_VOLUMES:,} volumes; check the format, or split the file")
    return True
