"""Refuse cells that no fio job can express, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.plan.cell import TRIM, Cell

_MOST_SIZES = 64
"""Maximum number of entries in fio's `bssplit` (thread_options.h, BSSPLIT_MAX)."""
_CHOICES = {"zones": "access by zones", "zipf": "access by Zipf's law", "segments": "access in segments"}
"""Fields that distribute random I/Os, with names for errors; fio accepts only one of them."""
_Reason = tuple[tuple[str | int, ...] | str | None, str]
"""The field at fault, or the key path into a field, or None; and what is wrong."""


class InexpressibleError(UserError):
    """A cell that no fio job can express."""

    def __init__(self, message: str, keys: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.keys = keys
        """The field at fault, optionally with an entry's number and key; empty if no single field is at fault."""


def workloads_of(cell: Cell) -> tuple[Cell, ...]:
    """Return the cell, or its own workload and those beside it.

    The cell's settings for place and content apply to all; title, rate and operation are each workload's own. The
    distribution of random I/Os (zones, Zipf's law, segments) does not apply to a sequential workload.
    """
    if cell.beside is None:
        return (cell,)
    first = replace(cell, beside=None)
    plain = replace(first, block_sizes=None, block_size_max_bytes=None, title=None, rate_iops=None, operation=None)
    return tuple(
        workload if workload.pattern == "random" else replace(workload, zones=None, zipf=None)
        for workload in (first, *(replace(plain, **other) for other in cell.beside))
    )


def directions_of(cell: Cell) -> tuple[str, ...] | None:
    """Return the direction of each workload if it identifies it: each has one, and no two have the same; else None."""
    known = tuple(dict.fromkeys(workload.direction for workload in workloads_of(cell)))
    return tuple(map(str, known)) if None not in known and len(known) == len(workloads_of(cell)) else None


def names_of_workloads(cell: Cell) -> list[str]:
    """Return what to call each of several workloads: its direction, such as `reads`, if that identifies it."""
    if (directions := directions_of(cell)) is not None:
        return [f"{direction}s" for direction in directions]
    own, *others = workloads_of(cell)
    labels = [replace(own, title=None).label, *(other.label for other in others)]
    return [f"{n}: {label}" if labels.count(label) > 1 else label for n, label in enumerate(labels, 1)]


def percents(entries: Sequence[Mapping[str, Any]], key: str) -> list[int]:
    """Return a distribution's shares as whole percentages. Raises ValueError for others or a sum other than 100."""
    whole = [round(100 * float(entry[key])) for entry in entries]
    if _uneven(entries, key) is not None:
        raise ValueError("fio needs whole percentages of at least 1")
    if sum(whole) != 100:
        raise ValueError(f"the percentages add up to {sum(whole)} instead of 100")
    return whole


def _uneven(entries: Sequence[Mapping[str, Any]], key: str) -> int | None:
    """Return the index of the first share that is not a whole positive percentage."""
    shares = [100 * float(entry[key]) for entry in entries]
    return next((i for i, share in enumerate(shares) if not _is_whole(share) or share < 0.5), None)


def refuse_inexpressible(cell: Cell) -> None:
    """Raise InexpressibleError for a cell that fio 3.33 cannot run exactly."""
    for workload in (cell, *(workloads_of(cell) if cell.beside is not None else ())):
        for field, reason in _reasons(workload):
            keys = field if isinstance(field, tuple) else () if field is None else (field,)
            raise InexpressibleError(f"cell {cell.workload}: {reason}", keys)


def _reasons(cell: Cell) -> Iterator[_Reason]:
    yield from _sizes(cell)
    yield from _places(cell)
    yield from _alignment(cell)
    if cell.rate_iops is not None:
        if cell.rate_iops <= 0:
            yield "rate_iops", f"a rate of {cell.rate_iops:g} IOPS is not positive; choose a larger one"
        if cell.largest_block_bytes != cell.block_size_bytes:
            yield (
                "rate_iops",
                "fio limits bytes, so several block sizes give no fixed rate of I/Os; choose one block size",
            )
    if cell.entropy is not None and not (0 <= cell.entropy <= 1 and _is_whole(100 * cell.entropy)):
        reason = f"fio does not support an entropy of {100 * cell.entropy:g} %; choose a whole percentage up to 100"
        yield "entropy", reason
    if cell.operation is not None and cell.read_share:
        yield "read_share", "I/Os that trim do not read; choose a read share of 0"
    if cell.synchronous:
        yield from _synchronous(cell)
    yield from _submission(cell)
    if cell.beside is not None:
        yield from _several(cell, cell.beside)


def _synchronous(cell: Cell) -> Iterator[_Reason]:
    if cell.direction != "write":
        yield "synchronous", "only writes are synchronous; choose a read share of 0"
    for field in ("threads", "queue_depth"):
        if getattr(cell, field) > 1:
            yield field, f"a synchronous write waits for the one before; choose {field.replace('_', ' ')} 1"
    if cell.beside is not None or cell.rate_iops is not None:
        yield "synchronous", "a synchronous cell has one workload without a rate; remove the other"


def _submission(cell: Cell) -> Iterator[_Reason]:
    if cell.synchronous:
        for field in ("registered", "batch", "polled", "nvme"):
            if getattr(cell, field) is not None:
                yield field, f"a synchronous cell does not use io_uring; remove '{field}'"
    if cell.batch is not None and not 1 < cell.batch <= cell.queue_depth:
        yield "batch", f"a batch of {cell.batch} does not fit; choose 2 up to the queue depth, {cell.queue_depth}"
    if cell.polled and cell.operation == TRIM:
        yield "polled", "the kernel polls for reads and writes only; remove 'polled'"
    if cell.nvme and any(workload.operation == TRIM for workload in workloads_of(cell)):
        yield "nvme", "fio 3.33 sends reads and writes only as NVMe commands; remove 'nvme'"
    if cell.reuse_buffers and cell.entropy is not None:
        yield "reuse_buffers", "an entropy needs new data for each write; remove one of them"


def _sizes(cell: Cell) -> Iterator[_Reason]:
    if cell.block_sizes is None:
        return
    sizes = [int(entry["block_size_bytes"]) for entry in cell.block_sizes]
    if cell.block_size_max_bytes is not None:
        yield "block_sizes", "the cell has both a range and a distribution of block sizes; remove one"
    if any(before >= after for before, after in pairwise(sizes)) or sizes[0] != cell.block_size_bytes:
        yield ("block_sizes", "the block sizes of a distribution are not in ascending order; sort them")
    if any(size % sizes[0] for size in sizes):  # fio would round them down
        yield (
            "block_sizes",
            f"fio draws only multiples of the smallest block size, {format_size(sizes[0])}; choose such sizes",
        )
    if len(sizes) > _MOST_SIZES:
        yield "block_sizes", f"fio supports at most {_MOST_SIZES} block sizes; choose fewer"
    try:
        percents(cell.block_sizes, "share")
    except ValueError as error:
        yield _entry(cell.block_sizes, "block_sizes", "share"), f"block sizes: {error}; choose other shares"


def _places(cell: Cell) -> Iterator[_Reason]:
    chosen = [name for name in _CHOICES if getattr(cell, name) is not None]
    if len(chosen) > 1:
        yield chosen[-1], f"fio does not combine {' and '.join(_CHOICES[name] for name in chosen)}; choose one of them"
    if chosen and cell.pattern != "random":
        yield chosen[0], f"{_CHOICES[chosen[0]]} needs random I/O; remove it or choose pattern random"
    if cell.zones is not None:
        for key, name in (("range_share", "ranges"), ("share", "shares")):
            try:
                percents(cell.zones, key)
            except ValueError as error:
                yield _entry(cell.zones, "zones", key), f"{name} of the zones: {error}; choose others"
    if cell.zipf is not None:
        if cell.zipf <= 0 or cell.zipf == 1:
            yield (
                "zipf",
                f"fio does not support Zipf's law with exponent {cell.zipf:g}; choose a positive one other than 1",
            )
        if cell.alignment_bytes not in (None, cell.block_size_bytes):
            yield (
                "alignment_bytes",
                "fio draws blocks by Zipf's law only at multiples of the block size; remove the alignment",
            )
    if cell.segments is not None:
        if cell.segments < 1:
            yield "segments", f"{cell.segments} segments hold nothing; choose at least one"
        if cell.largest_block_bytes != cell.block_size_bytes:
            yield ("segments", "larger blocks would reach beyond the end of a segment; choose one block size")
        if cell.range_start:
            yield "segments", "segments are spread over the whole drive; remove the start of the active range"


def _entry(entries: Sequence[Mapping[str, Any]], field: str, key: str) -> tuple[str | int, ...]:
    """Return the keys of a refused share, or of the field if the sum is wrong."""
    number = _uneven(entries, key)
    return (field,) if number is None else (field, number, key)


def _alignment(cell: Cell) -> Iterator[_Reason]:
    if cell.alignment_offset_bytes < 0:
        yield (
            "alignment_offset_bytes",
            "the alignment offset lies before the start of the drive; choose a positive one",
        )
    if cell.alignment_bytes is None:
        return
    if cell.alignment_bytes <= 0:
        yield "alignment_bytes", "an alignment must be a positive number of bytes; choose a larger one"
    elif cell.pattern == "sequential" and cell.block_size_bytes % cell.alignment_bytes:
        yield (
            "alignment_bytes",
            f"sequential blocks of {format_size(cell.block_size_bytes)} are adjacent and cannot all be aligned to "
            f"{format_size(cell.alignment_bytes)}; remove the alignment",
        )


def _several(cell: Cell, others: Sequence[Mapping[str, Any]]) -> Iterator[_Reason]:
    if cell.volume_bytes is not None:
        yield "volume_bytes", "a volume cannot end simultaneous workloads; give a runtime"
    if cell.segments is not None and any(other["pattern"] != "random" for other in others):
        yield "segments", "segments need random I/O; make all workloads random"
    if cell.direction == TRIM:
        yield "operation", "the cell's own workload trims; make it read or write, and trim in one beside it"


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-6
