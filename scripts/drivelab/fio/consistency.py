"""Numbers of one fio document that say the same thing twice: whether they agree.

fio derives rates from counts and run time (stat.c, show_ddir_status), and adds every latency both to the mean and to a
bin, so nothing that it wrote can contradict itself by more than rounding and the width of the bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from drivelab.fio.document import MIB, Direction, FioResult
from drivelab.plan.cell import Cell

_BIN_SHARE = 1 / 64
"""Twice what a latency lies from the middle of its bin at the most: bins are 1/64 of an octave wide (stat.h)."""
_LARGEST_BIN_NS = float(1 << 34)
"""The last of fio's bins ends here, 17 s; it holds all longer latencies as well, whose middle says nothing."""
_PRINTING_S = 0.1
"""What fio prints of a run that goes on was counted within so long: its threads are not stopped for it. On a busy host
with 200,000 I/Os a second 2,200 of them were seen to be in one number and not in the other."""
_ROUNDING = 1e-3
"""fio prints rates to six decimals or whole bytes, times to whole nanoseconds and milliseconds."""


def contradiction(result: FioResult, cell: Cell) -> str | None:
    """Two numbers of a whole run that cannot both be true, in words; None where all agree, or where one is no number
    or below zero: that is another fault.
    """
    found = (words for name, one in _directions(result) for words in _of_run(name, one, cell))
    return next(found, None) if all_numbers(result) else None


def contradiction_of_slice(part: FioResult, before: FioResult | None, cell: Cell) -> str | None:
    """As `contradiction`, of a slice between two status documents; `before` is the slice before it."""
    of_before = dict(_directions(before)) if before is not None else {}
    if not all(all_numbers(one) for one in (part, before) if one is not None):
        return None
    for name, one in _directions(part):
        iops = max(one.iops, of_before[name].iops if name in of_before else 0.0)
        found = next(_of_slice(name, one, cell, _PRINTING_S * iops + cell.total_threads), None)
        if found is not None:
            return found
    return None


def least_below_zero(result: FioResult) -> str | None:
    """That the smallest latency of a direction is below zero, in words; None if it is not."""
    below = ((name, one.min_latency_us) for name, one in _directions(result) if one.min_latency_us < 0)
    return next((f"smallest latency of the {name} {least_us:.6g} us" for name, least_us in below), None)


def _of_run(name: str, one: Direction, cell: Cell) -> Iterator[str]:
    if one.runtime_s > 0:
        yield from _rates(name, one)
    elif one.ios:
        yield f"{one.ios} {name} took no time"
    yield from _sizes(name, one, one.ios, cell, cell.total_threads)
    if not one.latencies:
        return
    if one.latencies > one.ios:
        yield f"{one.latencies} {name} have a latency, of {one.ios}"
    mean_us, least_us, most_us = one.mean_latency_us, one.min_latency_us, one.max_latency_us
    slack_us = _ROUNDING * mean_us
    if math.isfinite(least_us) and mean_us < least_us - slack_us:
        yield f"mean latency of the {name} {mean_us:.6g} us, smallest {least_us:.6g} us"
    if mean_us > most_us + slack_us:
        yield f"mean latency of the {name} {mean_us:.6g} us, largest {most_us:.6g} us"
    if not one.bins:  # another's output may be JSON without them
        return
    yield from _mean_against_bins(name, one, 0)
    lowest_us, highest_us = min(one.bins) / 1000, max(one.bins) / 1000
    if math.isfinite(least_us) and least_us > lowest_us * (1 + _BIN_SHARE) + 0.001:
        yield f"smallest latency of the {name} {least_us:.6g} us, lowest bin {lowest_us:.6g} us"
    if not _beyond_bins(one) and not _close(most_us, highest_us, _BIN_SHARE, 0.001):
        yield f"largest latency of the {name} {most_us:.6g} us, highest bin {highest_us:.6g} us"


def _of_slice(name: str, one: Direction, cell: Cell, uncounted: float) -> Iterator[str]:
    yield from _sizes(name, one, one.latencies, cell, uncounted)
    if -one.uncounted > uncounted:
        yield f"a status counts {-one.uncounted} {name} less than have a latency"
    if one.latencies and one.bins:
        yield from _mean_against_bins(name, one, uncounted)


def _rates(name: str, one: Direction) -> Iterator[str]:
    iops, mib_s = one.ios / one.runtime_s, one.bytes / MIB / one.runtime_s
    if not _close(one.iops, iops, _ROUNDING, 1e-3):
        yield f"IOPS of the {name} {one.iops:.6g}, {one.ios} in {one.runtime_s:g} s are {iops:.6g}"
    if not _close(one.bandwidth_mib_s, mib_s, _ROUNDING, 1e-3):
        told = f"bandwidth of the {name} {one.bandwidth_mib_s:.6g} MiB/s"
        yield f"{told}, {one.bytes} bytes in {one.runtime_s:g} s are {mib_s:.6g} MiB/s"


def _sizes(name: str, one: Direction, ios: int, cell: Cell, uncounted: float) -> Iterator[str]:
    """`uncounted` I/Os may be in one number only; of a whole run the last of each thread may be shorter."""
    smallest, largest = _block_sizes(cell)
    spare = uncounted * largest
    if not smallest * ios - spare <= one.bytes <= largest * ios + spare:
        sizes = f"{smallest}" if smallest == largest else f"{smallest} to {largest}"
        yield f"{ios} {name} of {sizes} bytes, {one.bytes} bytes"


def _block_sizes(cell: Cell) -> tuple[int, int]:
    several = cell.streams or cell.block_sizes
    sizes = [int(one["block_size_bytes"]) for one in several or ()] or [cell.block_size_bytes]
    if cell.beside is not None:
        sizes.append(int(cell.beside["block_size_bytes"]))
    return min(sizes), max(*sizes, cell.largest_block_bytes)


def _mean_against_bins(name: str, one: Direction, uncounted: float) -> Iterator[str]:
    """`uncounted` I/Os may be in the mean and not in the bins, or the other way round."""
    bins_us = math.fsum(latency_ns * count for latency_ns, count in one.bins.items()) / 1000
    bins_us /= sum(one.bins.values())
    spare_us = uncounted * max(one.max_latency_us, max(one.bins) / 1000) / one.latencies
    low, high = bins_us * (1 - _BIN_SHARE) - spare_us - 0.001, bins_us * (1 + _BIN_SHARE) + spare_us + 0.001
    if one.mean_latency_us < low or (one.mean_latency_us > high and not _beyond_bins(one)):
        yield f"mean latency of the {name} {one.mean_latency_us:.6g} us, by the latency bins {bins_us:.6g} us"


def _beyond_bins(one: Direction) -> bool:
    return one.max_latency_us * 1000 >= _LARGEST_BIN_NS


def _close(told: float, derived: float, share: float, absolute: float) -> bool:
    return math.isclose(told, derived, rel_tol=share, abs_tol=absolute)


def _directions(result: FioResult) -> tuple[tuple[str, Direction], ...]:
    return (("reads", result.read), ("writes", result.write))


def all_numbers(result: FioResult) -> bool:
    for _, one in _directions(result):
        numbers = [one.ios, one.bytes, one.runtime_s, one.iops, one.bandwidth_mib_s, *one.bins]
        numbers += [one.mean_latency_us, one.max_latency_us] if one.latencies else []
        numbers += [one.min_latency_us] if not math.isnan(one.min_latency_us) else []
        if not all(math.isfinite(number) and number >= 0 for number in numbers):
            return False
    return True
