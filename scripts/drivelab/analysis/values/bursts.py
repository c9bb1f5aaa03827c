"""Measure what a drive moves at a higher rate before its rate falls, at first and after idle times."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from drivelab.criteria.settling import Floats

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


@dataclass(frozen=True)
class Fall:
    """The end of a fast stretch."""

    fast_bytes: float
    """Volume at the higher rate."""
    fast_mib_s: float
    slow_mib_s: float


@dataclass(frozen=True)
class Burst:
    """A load after an idle time."""

    wait: str
    """Idle time before it, such as `5 min`; empty for the first burst, on the prepared drive."""
    label: str
    """Label of its cell."""
    read_share_pct: int
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
    found = []
    for _, slices in soaks.sort_values("round").groupby("step"):
        row, seconds = slices.iloc[0], slices["runtime_s"].to_numpy(dtype=float)
        match = _DURATION.fullmatch(row["phase_value"]) if isinstance(row["phase_value"], str) else None
        wait = f"{match[1]} {match[2]}" if match else ""
        moved = slices["bandwidth_mib_s"].to_numpy(dtype=float) * _MIB * seconds
        found.append(Burst(wait, str(row["cell_label"]), int(row["read_share_pct"]), moved, seconds))
    first, *others = found
    return found if others and all(burst.wait for burst in others) and not first.wait else []


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
    falls = np.flatnonzero(rates < math.sqrt(first.fast_mib_s * first.slow_mib_s))
    if not len(falls):
        return float(burst.moved.sum()) / first.fast_bytes
    end = int(falls[0])
    after = rates[end + 1 :]
    slow = float(np.median(after[len(after) // 2 :])) if len(after) else first.slow_mib_s
    head = slice(0, end + 1)
    at_fast = np.clip((rates[head] - slow) / (first.fast_mib_s - slow), 0, 1)
    return float((at_fast * burst.seconds[head]).sum() * first.fast_mib_s * _MIB / first.fast_bytes)
