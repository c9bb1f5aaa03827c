"""The values of a quick look: each test as people call it, with its value and its spread over the rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import pandas as pd
from scipy import special

from drivelab.analysis.values.bursts import find_fall
from drivelab.analysis.values.latency_values import has_ios_beyond, percentiles_us
from drivelab.criteria.host_limit import BUSY_PCT
from drivelab.criteria.soundness import sound

BANDWIDTH, IOPS, LATENCY = "bandwidth_mib_s", "iops", "latency_us"


@dataclass(frozen=True)
class Shown:
    """One cell of the protocols quick and quick-reads."""

    pattern: str
    read_share: int
    block_size_bytes: int
    queue_depth: int
    words: str
    metric: str
    """What is shown as its value: BANDWIDTH, IOPS or LATENCY."""
    key: str = ""
    """Name of its value for `drivelab.quick.caveats` and tests; empty: none."""
    synchronous: bool = False

    @property
    def is_time(self) -> bool:
        """Return whether less is better."""
        return self.metric == LATENCY


SHOWN = (
    Shown("sequential", 100, 1 << 20, 8, "Sequential read 1 MiB, QD8", BANDWIDTH, "sequential_read_mib_s"),
    Shown("sequential", 0, 1 << 20, 8, "Sequential write 1 MiB, QD8", BANDWIDTH, "sequential_write_mib_s"),
    Shown("sequential", 100, 1 << 17, 32, "Sequential read 128 KiB, QD32", BANDWIDTH),
    Shown("sequential", 0, 1 << 17, 32, "Sequential write 128 KiB, QD32", BANDWIDTH),
    Shown("random", 100, 4096, 32, "Random read 4 KiB, QD32", IOPS, "random_read_qd32_iops"),
    Shown("random", 0, 4096, 32, "Random write 4 KiB, QD32", IOPS, "random_write_qd32_iops"),
    Shown("random", 70, 4096, 32, "Mixed 70/30 4 KiB, QD32", IOPS, "mixed_iops"),
    Shown("random", 100, 4096, 1, "Random read 4 KiB, QD1", LATENCY, "read"),
    Shown("random", 0, 4096, 1, "Random write 4 KiB, QD1", LATENCY, "write"),
    Shown("sequential", 0, 4096, 1, "Commit: append 4 KiB, fsync", LATENCY, "commit", synchronous=True),
)
"""In the order in which they are shown."""
_EDGE = 3
"""Slices whose median is the rate at the start or the end of the sustained write."""


@dataclass(frozen=True)
class Value:
    """What one test of a quick look found."""

    shown: Shown
    value: float
    """Median of the rounds: MiB/s, IOPS, or the median latency in microseconds."""
    half_width_pct: float | None
    """Half of the 95 % interval of the mean of these rounds (Student's t), in percent of it; None for one round."""
    samples: tuple[float, ...]
    """One value for each round."""
    p99_us: float | None = None
    p999_us: float | None = None
    cpu_share: float = 0.0
    """CPU time of the busiest round, as a share of one core."""

    @property
    def host_limited(self) -> bool:
        """Return whether the test used most of a core, so that the host may be the limit."""
        return 100 * self.cpu_share > BUSY_PCT

    def apart(self, other: Value) -> bool:
        """Return whether the intervals of two values do not meet; False if one is unknown."""
        halves = (v.value * (math.inf if v.half_width_pct is None else v.half_width_pct / 100) for v in (self, other))
        return abs(self.value - other.value) > sum(halves)


@dataclass(frozen=True)
class Sustained:
    """The long sequential write at the end."""

    seconds: tuple[float, ...]
    """End of each slice, since the start of the write."""
    rates_mib_s: tuple[float, ...]
    written_bytes: float
    cliff_bytes: float | None
    """Volume until the rate fell; None if it did not."""

    @property
    def start_mib_s(self) -> float:
        return median(self.rates_mib_s[:_EDGE])

    @property
    def end_mib_s(self) -> float:
        return median(self.rates_mib_s[-_EDGE:])


def half_width_pct(samples: Sequence[float]) -> float | None:
    """Return half of the 95 % interval of the mean, in percent of the mean; None for fewer than two samples."""
    if len(samples) < 2 or not (mean := float(np.mean(samples))) or not math.isfinite(mean):
        return None
    error = float(np.std(samples, ddof=1)) / math.sqrt(len(samples))
    return 100 * float(special.stdtrit(len(samples) - 1, 0.975)) * error / abs(mean)


def values_of(cells: pd.DataFrame, bins: pd.DataFrame) -> list[Value]:
    """Return the values of one recording, in the order of SHOWN.

    `cells` and `bins` are its rows of the tables `cells` and `latency_bins`. Unsound and cold cells do not count.
    """
    counted = sound(cells)
    counted = counted[(counted["kind"] == "loop") & ~counted["cold"].astype(bool)]
    known = {(t.pattern, t.read_share, t.block_size_bytes, t.queue_depth, t.synchronous): t for t in SHOWN}
    found: dict[Shown, Value] = {}
    for _, rounds in counted.groupby(["step", "cell"], sort=False):
        first = rounds.iloc[0]
        load = first[["pattern", "read_share_pct", "block_size_bytes", "queue_depth"]]
        if (shown := known.get((*load, "fsync" in first["workload"]))) is not None:  # else of a user's variant
            found[shown] = _value(shown, rounds, bins)
    return [found[shown] for shown in SHOWN if shown in found]


def _value(shown: Shown, rounds: pd.DataFrame, bins: pd.DataFrame) -> Value:
    samples = tuple(map(float, rounds["p50_latency_us" if shown.is_time else shown.metric]))
    cpu_share = float((rounds["user_cpu_pct"] + rounds["system_cpu_pct"]).max()) / 100
    p99_us = p999_us = None
    if shown.is_time:
        first, numbers = rounds.iloc[0], set(rounds["round"])
        own = bins[(bins["step"] == first["step"]) & (bins["cell"] == first["cell"]) & bins["round"].isin(numbers)]
        ios, tails = float(own["count"].sum()), zip(percentiles_us(own, (99, 99.9)), (99, 99.9), strict=True)
        p99_us, p999_us = (float(us) if has_ios_beyond(ios, percent) else None for us, percent in tails)
    return Value(shown, median(samples), half_width_pct(samples), samples, p99_us, p999_us, cpu_share)


def sustained_of(cells: pd.DataFrame) -> Sustained | None:
    """Return the sustained write of one recording, or None if there is none."""
    slices = sound(cells)
    slices = slices[(slices["kind"] == "soak") & (slices["read_share_pct"] == 0)].sort_values("round")
    if slices.empty:
        return None
    written, seconds = (slices[name].to_numpy(dtype=float) for name in ("bytes_written", "runtime_s"))
    fall = find_fall(written, seconds)
    return Sustained(
        tuple(map(float, seconds.cumsum())), tuple(map(float, slices["bandwidth_mib_s"])), float(written.sum()),
        None if fall is None else fall.fast_bytes,
    )  # fmt: skip
