"""Detect two modes of latencies (short or long) and of rates (high or low)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from drivelab.analysis.detectors.detection import Declared, Finding, Recording
from drivelab.core.units import scaled
from drivelab.criteria.settling import Floats

BINS_PER_OCTAVE = 8
SMOOTHING_BINS = 2.0
"""Standard deviation of the smoothing, a quarter of an octave. It separates modes that differ by a factor of about 1.8
or more, and does not mistake the teeth of a histogram of discrete times for modes (ours)."""
MOST_VALLEY = 0.5
"""Largest height of the valley between two modes, as a fraction of the lower mode (ours; a plateau has 1)."""
LEAST_SHARE = 0.05
"""Smallest share of I/Os in the smaller mode: a rarer one is a tail, which the percentiles show (ours)."""
LEAST_IOS = 200
"""With fewer I/Os, the valley may be chance."""
LEAST_SECONDS = 20
LEAST_RATIO = 1.1
"""Smallest ratio of two levels of a rate: the deviation that the PTS allows a steady rate."""
LEAST_SEPARATION = 6.0
"""Smallest distance between the levels, in standard deviations within them. The best cut of normal values gives 2.7,
of uniform values 3.5 (ours)."""
LEAST_CHANGES = 4
"""Smallest number of changes between the levels: a cliff and a recovery are two."""


@dataclass(frozen=True)
class Modes:
    """The two modes of a distribution with the deepest valley between them."""

    valley: float
    """Height of the valley as a fraction of the lower mode: 0 if nothing lies between the modes, 1 without a valley."""
    low_us: float
    high_us: float
    """Peaks of the modes."""
    high_share: float
    """Share of the I/Os above the valley."""


def modes(bins: pd.DataFrame) -> Modes | None:
    """Return the two modes of latency bins (latency_ns, count).

    The result is None for fewer than `LEAST_IOS` I/Os, or if no cut leaves `LEAST_SHARE` of the I/Os on each side.
    """
    counts = bins["count"].to_numpy(dtype=float)
    from scipy.ndimage import gaussian_filter1d  # slow to import

    total = counts.sum()
    if total < LEAST_IOS:
        return None
    octaves = np.log2(np.maximum(bins["latency_ns"].to_numpy(dtype=float), 1.0)) * BINS_PER_OCTAVE
    numbers = np.floor(octaves).astype(np.int64)
    margin = int(4 * SMOOTHING_BINS)
    lowest = int(numbers.min()) - margin
    height = np.bincount(numbers - lowest, weights=counts, minlength=int(numbers.max()) - lowest + 1 + margin)
    height = gaussian_filter1d(height, SMOOTHING_BINS, mode="constant")
    below = height.cumsum() / height.sum()
    left, right = np.maximum.accumulate(height), np.maximum.accumulate(height[::-1])[::-1]
    divides = (below >= LEAST_SHARE) & (below <= 1 - LEAST_SHARE)
    if not divides.any():
        return None
    valleys = np.where(divides, height / np.minimum(left, right), np.inf)
    # cut a valley without I/O in its middle
    lowest_of = np.flatnonzero(valleys <= valleys.min() + 1e-12)
    cut = int(lowest_of[len(lowest_of) // 2])
    latencies_us = 2 ** ((lowest + np.arange(len(height)) + 0.5) / BINS_PER_OCTAVE) / 1000
    return Modes(
        valley=float(valleys[cut]),
        low_us=float(latencies_us[: cut + 1][np.argmax(height[: cut + 1])]),
        high_us=float(latencies_us[cut:][np.argmax(height[cut:])]),
        high_share=float(1 - below[cut]),
    )


@dataclass(frozen=True)
class Levels:
    """The best cut of rates in two."""

    low: float
    high: float
    separation: float
    """Distance in standard deviations within the two parts; infinite if these are zero."""
    low_share: float
    changes: int
    """Number of changes between the two levels."""


def two_levels(rates: Floats) -> Levels:
    """Cut the logarithms of rates, in time order, into two levels by least squares.

    Raises ValueError for fewer than two rates.
    """
    if len(rates) < 2:
        raise ValueError("two levels need at least two values")
    logs = np.log(np.maximum(rates, 1.0))  # a second that hung counts as 1 IOPS
    ordered = np.sort(logs)
    number = np.arange(1, len(logs))
    left = ordered.cumsum()[:-1]
    right = ordered.sum() - left
    cut = int(np.argmax(left**2 / number + right**2 / (len(logs) - number)))
    low, high = ordered[: cut + 1], ordered[cut + 1 :]
    within = float(np.sqrt((((low - low.mean()) ** 2).sum() + ((high - high.mean()) ** 2).sum()) / len(logs)))
    distance = float(high.mean() - low.mean())
    is_low = logs <= ordered[cut]
    return Levels(
        low=float(np.exp(low.mean())),
        high=float(np.exp(high.mean())),
        separation=distance / within if within > 1e-12 else (float("inf") if distance > 1e-12 else 0.0),
        low_share=len(low) / len(logs),
        changes=int(np.count_nonzero(np.diff(is_low.astype(np.int8)))),
    )


def bimodality(recording: Recording) -> Iterator[Finding]:
    """Find two modes of latencies, by cell and direction, and of rates of soaks.

    `value` is the depth of the valley between the modes in percent for latencies, the ratio of the levels for rates.
    """
    groups = {place: pair for place, bins in _bins(recording).items() if (pair := modes(bins)) is not None}
    findings = []
    for (label, direction), pair in groups.items():
        if pair.valley <= MOST_VALLEY:
            words = (
                f"latency of {direction}s has two modes: {100 * (1 - pair.high_share):.0f} % near {_us(pair.low_us)}, "
                f"{100 * pair.high_share:.0f} % near {_us(pair.high_us)}"
            )
            depth_pct, least_pct = 100 * (1 - pair.valley), 100 * (1 - MOST_VALLEY)
            findings.append(Finding(True, words, label, "latency_us", depth_pct, least_pct, "%"))
    courses = {label: course for label, course in recording.counted_seconds.items() if len(course) >= LEAST_SECONDS}
    for label, course in courses.items():
        levels = two_levels(course["iops"].to_numpy(dtype=float))
        if (
            levels.separation >= LEAST_SEPARATION
            and levels.high >= LEAST_RATIO * levels.low
            and LEAST_SHARE <= levels.low_share <= 1 - LEAST_SHARE
            and levels.changes >= LEAST_CHANGES
        ):
            words = f"the rate alternates between {levels.low:,.0f} and {levels.high:,.0f} IOPS, {levels.changes} times"
            span = float(course["begin_s"].iloc[0]), float(course["end_s"].iloc[-1])
            ratio = levels.high / levels.low
            findings.append(Finding(True, words, label, "iops", ratio, LEAST_RATIO, "ratio", *span))
    checked = [f"the latencies of {len(groups)} cells and directions"] * bool(groups)
    checked += [f"the rates of {len(courses)} soaks"] * bool(courses)
    yield from findings or [Finding(False, f"no two modes in {' or in '.join(checked)}")] * bool(checked)


def _us(latency_us: float) -> str:
    """Format a latency to two significant digits, about the width of a mode's bin: `2.0 ms`."""
    (value,), unit = scaled([latency_us], "µs")
    value = float(f"{value:.2g}")
    return f"{f'{value:,.0f}' if value >= 10 else f'{value:#.2g}'} {unit}"


def _bins(recording: Recording) -> dict[tuple[str, str], pd.DataFrame]:
    """Return {(label, direction): latency bins} of the rounds and slices that count."""
    place = ["step", "round", "cell"]
    if not recording.counted or recording.latency_bins.empty:
        return {}
    labels = pd.concat([rows[[*place, "cell_label"]] for rows in recording.counted])
    bins = recording.latency_bins[[*place, "direction", "latency_ns", "count"]].merge(labels, on=place)
    groups = bins.astype({"direction": object}).groupby(["cell_label", "direction"])
    return {(str(label), str(direction)): rows for (label, direction), rows in groups}


DETECTOR = Declared("bimodality", bimodality, place=11)
