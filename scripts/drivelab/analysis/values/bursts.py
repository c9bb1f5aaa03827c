"""Measure what a drive moves at a higher rate before its rate falls, at first and after idle times.

The same gives the credits of a volume, a token bucket (Amazon EBS gp2 and st1, Azure disks): it earns credits at its
base rate, saves at most a bucket of them, and spends them when it is faster. A full bucket of C credits lasts for
C / (burst rate - base rate).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.core.units import parse_duration

LEAST_FALL = 0.2
"""Smallest fall of the rate that counts as the end of a burst (ours)."""
BACK, FULL = 0.9, 0.1
"""Fractions of the first burst's fast volume: all of it is back from the first on, nothing up to the second (ours)."""
_CERTAIN = 4.0
"""Smallest difference of both rates, in standard errors (ours)."""
_FEWEST = 2
"""Slices on each side of the fall."""
_MIB = 1 << 20
_DURATION = re.compile(r"([\d.]+)([a-z]+)")
"""A duration of a protocol, such as `5min`."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fall:
    """The end of a fast stretch."""

    fast_bytes: float
    """Volume at the higher rate."""
    fast_mib_s: float
    slow_mib_s: float

    @property
    def fast_s(self) -> float:
        """Return the time at the higher rate."""
        return self.fast_bytes / (self.fast_mib_s * _MIB)


@dataclass(frozen=True)
class Burst:
    """A load after an idle time."""

    wait: str
    """Idle time before it, such as `5 min`; empty for the first burst, on the prepared drive."""
    wait_s: float
    """The same in seconds; 0 for the first burst."""
    label: str
    """Label of its cell."""
    read_share_pct: int
    io_bytes: float
    """Mean size of its I/Os."""
    moved: Floats
    """Bytes read and written in each slice."""
    seconds: Floats
    """Duration of each slice."""

    @property
    def rates(self) -> Floats:
        """Return the bytes per second of each slice."""
        return np.asarray(self.moved / self.seconds, dtype=float)


def bursts(cells: pd.DataFrame) -> list[Burst]:
    """Return the bursts of a recording: a soak, and its repetitions after idle times, in order.

    `cells` are rows of table `cells` of one recording with `cell_label`. The repetitions are soaks in a phase whose
    values are durations. The list is empty for other recordings.
    """
    soaks = cells[cells["kind"] == "soak"]
    if (cells["kind"] == "loop").any() or soaks["workload"].nunique() != 1:
        return []
    found = [_burst(rows.sort_values("round")) for _, rows in soaks.groupby("step")]
    first, *others = found
    return found if others and all(burst.wait for burst in others) and not first.wait else []


def _burst(slices: pd.DataFrame) -> Burst:
    first, seconds = slices.iloc[0], slices["runtime_s"].to_numpy(dtype=float)
    match = _DURATION.fullmatch(first["phase_value"]) if isinstance(first["phase_value"], str) else None
    wait, wait_s = (f"{match[1]} {match[2]}", parse_duration(match[0])) if match else ("", 0.0)
    moved = slices["bandwidth_mib_s"].to_numpy(dtype=float) * _MIB * seconds
    io_bytes = float(moved.sum() / (slices["iops"].to_numpy(dtype=float) * seconds).sum())
    return Burst(wait, wait_s, str(first["cell_label"]), int(first["read_share_pct"]), io_bytes, moved, seconds)


def find_fall(moved: Floats, seconds: Floats) -> Fall | None:
    """Return the fall of the rate in slices with these bytes and durations, or None.

    It is the cut that leaves the least squares of the logarithms of the rates around two levels. Both rates are
    medians. The two slices beside the cut say where in them the fall lies: a part of their time passed at each rate.
    """
    rates = np.maximum(moved / seconds, 1.0)
    logs = np.log(rates)
    number = len(logs)
    if number < 2 * _FEWEST:
        return None
    cuts = range(_FEWEST, number - _FEWEST + 1)
    cut = min(cuts, key=lambda place: logs[:place].var() * place + logs[place:].var() * (number - place))
    fast, slow = float(np.median(rates[:cut])), float(np.median(rates[cut:]))
    error = math.sqrt(logs[:cut].var(ddof=1) / cut + logs[cut:].var(ddof=1) / (number - cut))
    if slow > (1 - LEAST_FALL) * fast or math.log(fast / slow) < _CERTAIN * error:
        return None
    around = slice(cut - 1, cut + 1)
    at_fast_s = (moved[around].sum() - slow * seconds[around].sum()) / (fast - slow)
    at_fast_s = min(max(at_fast_s, 0.0), float(seconds[around].sum()))
    return Fall(float(moved[: cut - 1].sum() + fast * at_fast_s), fast / _MIB, slow / _MIB)


def share_back(burst: Burst, first: Fall) -> float:
    """Return the volume at the higher rate of a later burst, as a fraction of the first burst's.

    A burst falls when its rate drops below the geometric mean of both rates. In each slice up to the fall, the share of
    time at the first burst's higher rate follows from the rate of the slice. The lower rate is the median of the second
    half after the fall. A burst that never falls has all of its volume at the higher rate.
    """
    rates = burst.rates / _MIB
    end = fallen_from(burst, first)
    if end is None:
        return float(burst.moved.sum()) / first.fast_bytes
    after = rates[end + 1 :]
    slow = float(np.median(after[len(after) // 2 :])) if len(after) else first.slow_mib_s
    head = slice(0, end + 1)
    at_fast = np.clip((rates[head] - slow) / (first.fast_mib_s - slow), 0, 1)
    return float((at_fast * burst.seconds[head]).sum() * first.fast_mib_s * _MIB / first.fast_bytes)


def fallen_from(burst: Burst, first: Fall) -> int | None:
    """Return the first slice of a burst below the geometric mean of both rates, or None."""
    falls = np.flatnonzero(burst.rates / _MIB < math.sqrt(first.fast_mib_s * first.slow_mib_s))
    return int(falls[0]) if len(falls) else None


STAYS = 0.9
"""Least share of the slices on either side of the fall that are on their side of the middle of both rates (ours)."""
SAME = 0.15
"""Largest relative difference between what idle times bring back and what the base rate earns (ours)."""
PROPORTIONAL = 0.25
"""The same for another rate, which is estimated from what idle times bring back (ours)."""

Returned = Sequence[tuple[float, float]]
"""Idle times in seconds, and the credits that each brought back."""


@dataclass(frozen=True)
class Credits:
    """What a fall of the rate and its recovery say about credits, in bytes of the load."""

    fall: Fall
    bucket_bytes: float
    """Credits that the first burst used: all that was moved beyond the lower rate."""
    refill_bytes_s: float | None
    """Credits per second of idle time; None if no idle time brought back a part, but all, nothing or too much."""
    is_plausible: bool
    """Whether the rate stays where it falls to, and idle times bring credits back in proportion to their duration."""
    at_base_rate: bool
    """Whether they bring back what the lower rate earns."""

    @property
    def is_bucket(self) -> bool:
        """Return whether this is certainly a token bucket: idle time earned a part of the credits at the lower rate."""
        return self.is_plausible and self.at_base_rate and self.refill_bytes_s is not None


def credits_of(bursts: Sequence[Burst]) -> Credits | None:
    """Return the credits that bursts used (see `drivelab.analysis.values.bursts.bursts`).

    None if the rate of the first burst does not fall.
    """
    first, *others = bursts
    fall = find_fall(first.moved, first.seconds)
    if fall is None:
        return None
    base = fall.slow_mib_s * _MIB
    bucket = fall.fast_bytes * (1 - fall.slow_mib_s / fall.fast_mib_s)
    coarse = float(np.median(first.seconds)) * (fall.fast_mib_s * _MIB - base) / 2  # half a slice is uncertain
    returned = [
        (burst.wait_s, share_back(burst, fall) * bucket) for burst in others if fallen_from(burst, fall) is not None
    ]
    parts = [(wait_s, back) for wait_s, back in returned if back < BACK * bucket]
    earned, idle_s = sum(back for _, back in parts), sum(wait_s for wait_s, _ in parts)
    refill = earned / idle_s if earned > coarse * len(parts) else None
    at_base = _earns(base, returned, bucket, SAME, coarse)
    by_itself = refill is not None and len(parts) > 1 and _earns(refill, returned, bucket, PROPORTIONAL, coarse)
    return Credits(fall, bucket, refill, _stays(first, fall) and (at_base or by_itself), at_base)


def _earns(rate: float, returned: Returned, bucket: float, difference: float, coarse: float) -> bool:
    """Return whether each idle time brought back what this rate earns, at most a bucket."""
    return all(
        abs(back - min(rate * wait_s, bucket)) <= difference * min(rate * wait_s, bucket) + coarse
        for wait_s, back in returned
    )


def _stays(burst: Burst, fall: Fall) -> bool:
    rates, ends_s = burst.rates / _MIB, np.cumsum(burst.seconds)
    middle = math.sqrt(fall.fast_mib_s * fall.slow_mib_s)
    before, after = rates[ends_s <= fall.fast_s], rates[ends_s - burst.seconds >= fall.fast_s]
    return bool(np.mean(before > middle) >= STAYS and np.mean(after < middle) >= STAYS)
