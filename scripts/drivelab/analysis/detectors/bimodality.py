"""Two modes: latencies that are either short or long, and rates that are either high or low."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.ndimage import gaussian_filter1d

from drivelab.analysis.detectors.courses import Floats
from drivelab.analysis.detectors.finding import Finding, told_or_nothing
from drivelab.analysis.detectors.recording import Recording

BINS_PER_OCTAVE = 8
SMOOTHING_BINS = 2.0
"""Standard deviation of the smoothing, a quarter of an octave: modes are told apart from a factor of about 1.8 on, and
the teeth of a histogram of discrete times are not taken for modes (ours)."""
MOST_VALLEY = 0.5
"""Height of the valley between two modes, of the lower one (ours; a plateau has 1)."""
LEAST_SHARE = 0.05
"""Part of the I/Os in the smaller mode: what is rarer is a tail, which the percentiles tell of (ours)."""
LEAST_IOS = 200
"""With fewer, the valley may be one of chance."""
LEAST_SECONDS = 20
LEAST_RATIO = 1.1
"""Between two levels of a rate: what the PTS lets a steady rate be off."""
LEAST_SEPARATION = 6.0
"""Distance between the levels, in standard deviations around them. The best cut of normal values gives 2.7, of even
ones 3.5 (ours)."""
LEAST_CHANGES = 4
"""From one level to the other: a cliff and a recovery are two."""


@dataclass(frozen=True)
class Modes:
    """The two modes of a distribution that are told apart best."""

    valley: float
    """Height of the valley, of the lower mode: 0 for modes with nothing between them, 1 for none."""
    low_us: float
    high_us: float
    """Where the modes are highest."""
    high_share: float
    """Part of the I/Os above the valley."""


def modes(bins: pd.DataFrame) -> Modes | None:
    """Of latency bins (latency_ns, count); None where nothing divides the I/Os into parts of `LEAST_SHARE`, or for
    fewer than `LEAST_IOS`."""
    counts = bins["count"].to_numpy(dtype=float)
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
    # of a valley without I/O, the middle
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
    """Distance in standard deviations within the two parts; infinite where there are none."""
    low_share: float
    changes: int
    """From one to the other."""


def two_levels(rates: Floats) -> Levels:
    """Least-squares cut of the logarithms of rates in the order of time; raises ValueError for fewer than two."""
    if len(rates) < 2:
        raise ValueError("two levels take two values")
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
    """Of latencies for each cell and direction `value` is the depth of the valley between two modes in percent; of the
    rates of a soak's slices that count, the ratio of two levels."""
    groups = {place: told for place, one in _bins(recording).items() if (told := modes(one)) is not None}
    found = [
        Finding(
            True,
            f"latency of {direction}s has two modes: {100 * (1 - one.high_share):.0f} % near {_us(one.low_us)}, "
            f"{100 * one.high_share:.0f} % near {_us(one.high_us)}",
            cell_label=label,
            metric="latency_us",
            value=100 * (1 - one.valley),
            threshold=100 * (1 - MOST_VALLEY),
            unit="%",
        )
        for (label, direction), one in groups.items()
        if one.valley <= MOST_VALLEY
    ]
    courses = {label: one for label, one in recording.counted_seconds.items() if len(one) >= LEAST_SECONDS}
    for label, course in courses.items():
        two = two_levels(course["iops"].to_numpy(dtype=float))
        if (
            two.separation >= LEAST_SEPARATION
            and two.high >= LEAST_RATIO * two.low
            and LEAST_SHARE <= two.low_share <= 1 - LEAST_SHARE
            and two.changes >= LEAST_CHANGES
        ):
            words = f"the rate goes between {two.low:,.0f} and {two.high:,.0f} IOPS, {two.changes} changes"
            found.append(
                Finding(
                    True, words, label, "iops", two.high / two.low, LEAST_RATIO, "ratio",
                    float(course["begin_s"].iloc[0]), float(course["end_s"].iloc[-1]),
                )
            )  # fmt: skip
    looked = [f"the latencies of {len(groups)} cells and directions"] * bool(groups)
    looked += [f"the rates of {len(courses)} soaks"] * bool(courses)
    nothing = Finding(False, f"no two modes in {' nor in '.join(looked)}") if looked else None
    yield from told_or_nothing(found, nothing)


def _us(latency_us: float) -> str:
    """To the width of a bin of the modes, a tenth."""
    digits = max(1 - int(np.floor(np.log10(latency_us))), 0) if latency_us > 0 else 0
    return f"{round(latency_us, 1 - int(np.floor(np.log10(latency_us)))):,.{digits}f} µs"


def _bins(recording: Recording) -> dict[tuple[str, str], pd.DataFrame]:
    """Latency bins by label and direction, of what counts."""
    place = ["step", "round", "cell"]
    if not recording.counted or recording.latency_bins.empty:
        return {}
    labels = pd.concat([one[[*place, "cell_label"]] for one in recording.counted])
    bins = recording.latency_bins[[*place, "direction", "latency_ns", "count"]].merge(labels, on=place)
    groups = bins.astype({"direction": object}).groupby(["cell_label", "direction"])
    return {(str(label), str(direction)): one for (label, direction), one in groups}
