"""Measure a write cache: how much a drive takes at the higher speed, at first and after idle times."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

LEAST_FALL = 0.2
"""Smallest fall of the rate that counts as the end of a cache (ours)."""
BACK, FULL = 0.9, 0.1
"""Fractions of the first burst's fast volume from which on the cache is back, and up to which it is full (ours)."""
_CERTAIN = 4.0
"""Standard errors by which both rates must differ at least (ours)."""
_FEWEST = 2
"""Slices on each side of the fall."""
_MIB = 1 << 20
_DURATION = re.compile(r"([\d.]+)([a-z]+)")
"""A duration of a protocol, such as `5min`."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fall:
    """The end of a fast stretch of writes."""

    fast_bytes: float
    """Volume at the higher rate."""
    fast_mib_s: float
    slow_mib_s: float


@dataclass(frozen=True)
class Burst:
    """Writes after an idle time."""

    wait: str
    """Idle time before it, such as `5 min`; empty for the first burst, on the prepared drive."""
    label: str
    """Label of its cell."""
    written: Floats
    """Bytes of each slice."""
    seconds: Floats
    """Duration of each slice."""

    @property
    def rates(self) -> Floats:
        """Return the bytes per second of each slice."""
        return np.asarray(self.written / self.seconds, dtype=float)


def bursts(cells: pd.DataFrame) -> list[Burst]:
    """Return the bursts of a recording: a soak of writes, and its repetitions after idle times, in order.

    `cells` are rows of table `cells` of one recording with `cell_label`. The repetitions are soaks in a phase whose
    values are durations. The list is empty for other recordings.
    """
    soaks = cells[(cells["kind"] == "soak") & (cells["read_share_pct"] == 0)]
    if (cells["kind"] == "loop").any() or soaks["workload"].nunique() != 1:
        return []
    waits = {step: _wait(rows["phase_value"].iloc[0]) for step, rows in soaks.groupby("step")}
    first, *others = waits.values()
    if not others or not all(others) or first:
        return []
    return [_burst(rows.sort_values("round"), waits[step]) for step, rows in soaks.groupby("step")]


def _wait(value: object) -> str:
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return f"{match[1]} {match[2]}" if match else ""


def _burst(slices: pd.DataFrame, wait: str) -> Burst:
    written, seconds = (slices[name].to_numpy(dtype=float) for name in ("bytes_written", "runtime_s"))
    return Burst(wait, str(slices["cell_label"].iloc[0]), written, seconds)


def find_fall(written: Floats, seconds: Floats) -> Fall | None:
    """Return the fall of the rate in slices with these bytes and durations, or None.

    It is the cut that leaves the least squares of the logarithms of the rates around two levels. Both rates are
    medians. The two slices beside the cut say where in them the fall lies: a part of their time passed at each rate.
    """
    rates = np.maximum(written / seconds, 1.0)
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
    at_fast_s = (written[around].sum() - slow * seconds[around].sum()) / (fast - slow)
    at_fast_s = min(max(at_fast_s, 0.0), float(seconds[around].sum()))
    return Fall(float(written[: cut - 1].sum() + fast * at_fast_s), fast / _MIB, slow / _MIB)


def free_share(burst: Burst, first: Fall) -> float:
    """Return the part of the cache that a later burst found free, as a fraction of the first burst's volume.

    Until it falls below the geometric mean of both rates, and in the slice in which it does, a burst is as long at the
    first burst's higher rate as its own rate says. Its lower rate is the median of its second half. A burst that never
    falls has all of its volume at the higher rate.
    """
    rates = burst.rates / _MIB
    slow = min(float(np.median(rates[len(rates) // 2 :])), first.fast_mib_s)
    falls = np.flatnonzero(rates < math.sqrt(first.fast_mib_s * first.slow_mib_s))
    if not len(falls):
        return float(burst.written.sum()) / first.fast_bytes
    head = slice(0, int(falls[0]) + 1)
    at_fast = np.clip((rates[head] - slow) / (first.fast_mib_s - slow), 0, 1)
    return float((at_fast * burst.seconds[head]).sum() * first.fast_mib_s * _MIB / first.fast_bytes)
