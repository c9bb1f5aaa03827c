"""Which cells fio can be asked for: what it has no words for is refused before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from drivelab.errors import UserError
from drivelab.plan.cell import COMPOSITE, Cell
from drivelab.units import format_size

_MOST_SIZES = 64
"""Entries that fio takes in `bssplit` (thread_options.h, BSSPLIT_MAX)."""
_CHOICES = {"zones": "access by zones", "zipf": "access by Zipf's law", "segments": "access in segments"}
"""Fields of a cell that say where random I/Os go, of which one is all that fio takes; what they are called."""
_Reason = tuple[tuple[str | int, ...] | str | None, str]
"""What is to blame, a field of the cell or the keys that lead to a part of one, if it is one; what is wrong with it."""
_OF_ONE_PATTERN = (
    "block_sizes", "zones", "zipf", "alignment_bytes", "segments", "rate_iops", "entropy", "beside",
)  # fmt: skip


class InexpressibleError(UserError):
    """A cell that fio cannot be asked for."""

    def __init__(self, message: str, keys: tuple[str | int, ...]) -> None:
        super().__init__(message)
        self.keys = keys
        """The cell's field that is to blame, and perhaps the number of an entry and its key; empty if it is no one."""


def workloads_of(cell: Cell) -> tuple[Cell, ...]:
    """The cell, or its two workloads: what a cell says about place and content of its I/Os holds for both.

    Where random I/Os go (zones, Zipf's law, segments) is nothing to a sequential workload.
    """
    if cell.beside is None:
        return (cell,)
    first = replace(cell, beside=None)
    second = replace(first, block_sizes=None, block_size_max_bytes=None, title=None, **cell.beside)
    return tuple(
        one if one.pattern == "random" else replace(one, zones=None, zipf=None) for one in (first, second)
    )  # fmt: skip


def percents(entries: Sequence[Mapping[str, Any]], key: str) -> list[int]:
    """Shares of a distribution as whole percentages; raises ValueError for others, and if they do not add up to 100."""
    whole = [round(100 * float(one[key])) for one in entries]
    if _uneven(entries, key) is not None:
        raise ValueError("fio takes whole percentages from 1 on")
    if sum(whole) != 100:
        raise ValueError(f"the percentages add up to {sum(whole)}, not to 100")
    return whole


def _uneven(entries: Sequence[Mapping[str, Any]], key: str) -> int | None:
    """Number of the first entry whose share is no whole percentage from 1 on."""
    shares = [100 * float(one[key]) for one in entries]
    return next((i for i, share in enumerate(shares) if not _is_whole(share) or share < 0.5), None)


def refuse_inexpressible(cell: Cell) -> None:
    """Raise InexpressibleError for what no job of fio 3.33 says, or what would come out as something else."""
    for one in (cell, *(workloads_of(cell) if cell.beside is not None else ())):
        for blamed, reason in _reasons(one):
            keys = blamed if isinstance(blamed, tuple) else () if blamed is None else (blamed,)
            raise InexpressibleError(f"cell {cell.workload}: {reason}", keys)


def _reasons(cell: Cell) -> Iterator[_Reason]:
    if cell.pattern == COMPOSITE:
        if any(getattr(cell, name) is not None for name in _OF_ONE_PATTERN) or cell.alignment_offset_bytes:
            yield None, "a composite has streams with sizes and places of their own; leave the other distributions out"
        return
    yield from _sizes(cell)
    yield from _places(cell)
    yield from _alignment(cell)
    if cell.rate_iops is not None:
        if cell.rate_iops <= 0:
            yield "rate_iops", f"a rate of {cell.rate_iops:g} IOPS is no rate; choose a larger one"
        if cell.largest_block_bytes != cell.block_size_bytes:
            yield (
                "rate_iops",
                "fio keeps to a rate in bytes, which several block sizes make no rate of I/Os; choose one size",
            )
        if cell.beside is not None:
            yield (
                "rate_iops",
                "a rate does not say which of the two workloads it limits; leave 'rate_iops' or 'beside' out",
            )
    if cell.entropy is not None and not (0 <= cell.entropy <= 1 and _is_whole(100 * cell.entropy)):
        reason = f"an entropy of {100 * cell.entropy:g} % is not known to fio; choose a whole percentage up to 100"
        yield "entropy", reason
    if cell.beside is not None:
        yield from _two_workloads(cell, cell.beside)


def _sizes(cell: Cell) -> Iterator[_Reason]:
    if cell.block_sizes is None:
        return
    sizes = [int(one["block_size_bytes"]) for one in cell.block_sizes]
    if cell.block_size_max_bytes is not None:
        yield "block_sizes", "there are both a range and a distribution of block sizes; leave one of them out"
    if any(before >= after for before, after in pairwise(sizes)) or sizes[0] != cell.block_size_bytes:
        yield (
            "block_sizes",
            "the block sizes of a distribution are not in ascending order from the least one; sort them",
        )
    if any(size % sizes[0] for size in sizes):  # fio would round them down
        yield (
            "block_sizes",
            f"fio draws multiples of the least block size of {format_size(sizes[0])} only; choose such sizes",
        )
    if len(sizes) > _MOST_SIZES:
        yield "block_sizes", f"fio takes {_MOST_SIZES} block sizes at the most; choose fewer"
    try:
        percents(cell.block_sizes, "share")
    except ValueError as error:
        yield _entry(cell.block_sizes, "block_sizes", "share"), f"block sizes: {error}; choose other shares"


def _places(cell: Cell) -> Iterator[_Reason]:
    chosen = [name for name in _CHOICES if getattr(cell, name) is not None]
    if len(chosen) > 1:
        yield chosen[-1], f"fio does not combine {' and '.join(_CHOICES[name] for name in chosen)}; choose one of them"
    if chosen and cell.pattern != "random":
        yield chosen[0], f"{_CHOICES[chosen[0]]} is for random I/O; leave it out or choose pattern random"
    if cell.zones is not None:
        for key, what in (("range_share", "ranges"), ("share", "shares")):
            try:
                percents(cell.zones, key)
            except ValueError as error:
                yield _entry(cell.zones, "zones", key), f"{what} of the zones: {error}; choose others"
    if cell.zipf is not None:
        if cell.zipf <= 0 or cell.zipf == 1:
            yield (
                "zipf",
                f"Zipf's law with the exponent {cell.zipf:g} is not known to fio; choose a positive one other than 1",
            )
        if cell.alignment_bytes not in (None, cell.block_size_bytes):
            yield (
                "alignment_bytes",
                "fio draws blocks by Zipf's law at multiples of the block size only; leave the alignment out",
            )
    if cell.segments is not None:
        if cell.segments < 1:
            yield "segments", f"{cell.segments} segments hold nothing; choose one at least"
        if cell.largest_block_bytes != cell.block_size_bytes:
            yield (
                "segments",
                "larger blocks of several sizes would reach beyond the end of a segment; choose one size",
            )
        if cell.range_start:
            yield "segments", "segments are spread over the whole drive; leave the start of the active range out"


def _entry(entries: Sequence[Mapping[str, Any]], field: str, key: str) -> tuple[str | int, ...]:
    """Keys of the share that `percents` refuses, or of the field where it is their sum."""
    number = _uneven(entries, key)
    return (field,) if number is None else (field, number, key)


def _alignment(cell: Cell) -> Iterator[_Reason]:
    if cell.alignment_offset_bytes < 0:
        yield (
            "alignment_offset_bytes",
            "an alignment offset before the start of the drive has no place; choose a positive one",
        )
    if cell.alignment_bytes is None:
        return
    if cell.alignment_bytes <= 0:
        yield "alignment_bytes", "an alignment is a positive number of bytes; choose a larger one"
    elif cell.pattern == "sequential" and cell.block_size_bytes % cell.alignment_bytes:
        yield (
            "alignment_bytes",
            f"sequential blocks of {format_size(cell.block_size_bytes)} adjoin each other and cannot all be aligned to "
            f"{format_size(cell.alignment_bytes)}; leave the alignment out",
        )


def _two_workloads(cell: Cell, beside: Mapping[str, Any]) -> Iterator[_Reason]:
    if cell.read_share not in (0, 100) or beside["read_share"] != 100 - cell.read_share:
        yield (
            "beside",
            "of two workloads at once one must only read and the other only write, or nothing tells them apart",
        )
    if cell.volume_bytes is not None:
        yield "volume_bytes", "a volume does not end two workloads at once; give them a runtime"
    if cell.segments is not None and beside["pattern"] != "random":
        yield "segments", "segments are for random I/O; make both workloads random"


def _is_whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-6
