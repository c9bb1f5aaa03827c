"""Detect thermal throttling: a rate that falls when the drive gets too hot."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.detectors.courses import STEADY_PCT, spells
from drivelab.analysis.detectors.detection import CHANCE, Declared, Finding, Recording, beside, chance_of_fall, samples

NEAR_C = 1.0
"""A drive this close to its limit is too hot: sensors report whole degrees, and the drive may slow down and cool
between two samples (ours)."""
AROUND = 5
"""Samples of the rate to compare, before and after the drive gets too hot. A drive cools below its limit while it is
still throttled, so only the moment when it gets too hot is certain (ours)."""
_COUNTERS = ("thermal_1_transitions", "thermal_2_transitions", "thermal_1_s", "thermal_2_s")
"""Counters of the NVMe SMART log that rise only while the drive throttles itself."""


def thermal_throttling(recording: Recording) -> Iterator[Finding]:
    """Find falls of the rate when the drive reaches its limit.

    `value` is the median fall in percent.
    No finding if the drive reports neither a temperature with its limit nor the throttling counters.
    """
    telemetry = samples(recording)
    knows_limit = telemetry["temperature_c"].notna() & telemetry["temperature_limit_c"].notna()
    with_limit = telemetry[knows_limit]
    counts = telemetry[list(_COUNTERS)].dropna(how="all").fillna(0.0).astype(float)
    if with_limit.empty and counts.empty:
        return
    near_limit = telemetry["temperature_c"] >= telemetry["temperature_limit_c"] - NEAR_C
    hot = telemetry.assign(
        too_hot=near_limit.astype(float).where(knows_limit),
        counted=(counts.diff().fillna(0.0) > 0).any(axis=1).astype(float).reindex(telemetry.index),
    )
    course = recording.relative
    middles_s = (course["begin_s"] + course["end_s"]).to_numpy(dtype=float) / 2
    flags = (beside(middles_s, hot, "too_hot", "nearest") > 0) | (beside(middles_s, hot, "counted", "forward") > 0)
    yield _judged(course, flags, _words(with_limit, counts), bool((hot["counted"] > 0).any()))


def _judged(course: pd.DataFrame, flags: npt.NDArray[np.bool_], state: str, counted: bool) -> Finding:
    """Return the finding. `state` describes temperature and counters, `counted` is whether a counter rose."""
    relative = course["of_whole"].to_numpy(dtype=float)  # so that a lasting fall counts too
    onsets = [begin for begin, _ in spells(flags) if begin > 0]
    around = [(relative[max(begin - AROUND, 0) : begin], relative[begin : begin + AROUND]) for begin in onsets]
    pairs = [(before, after) for before, after in around if np.median(before) > 0]  # after a hang the rate cannot fall
    if not flags.any():
        return Finding(counted, f"{state}; no rate was measured at the time" if counted else f"never too hot: {state}")
    begin_s = float(course["begin_s"].to_numpy()[flags].min())
    end_s = float(course["end_s"].to_numpy()[flags].max())
    if not pairs:
        when = "after a hang" if onsets else "from the beginning"
        words = f"too hot {when}, so there is no earlier rate to compare with: {state}"
        return Finding(counted, words, begin_s=begin_s, end_s=end_s)
    falls = [100 * (1 - float(np.median(after)) / float(np.median(before))) for before, after in pairs]
    befores, afters = zip(*pairs, strict=True)
    chance = chance_of_fall(np.concatenate(afters), np.concatenate(befores))
    fall_pct = float(np.median(falls))
    is_fall = fall_pct >= STEADY_PCT and chance < CHANCE
    times = f"{len(pairs)} time{'s' * (len(pairs) > 1)}"
    effect = f"the rate fell by {fall_pct:.0f} %" if is_fall else "the rate did not fall with it"
    words = f"too hot {times}, {effect}: {state}"
    return Finding(is_fall, words, None, "iops", fall_pct, STEADY_PCT, "%", begin_s, end_s)


def _words(with_limit: pd.DataFrame, counts: pd.DataFrame) -> str:
    parts = []
    if len(with_limit):
        hottest_c, limit_c = with_limit["temperature_c"].max(), with_limit["temperature_limit_c"].min()
        parts.append(f"at most {hottest_c:.0f} °C, the limit is {limit_c:.0f} °C")
    if len(counts):
        rises = counts.iloc[-1] - counts.iloc[0]
        times = rises["thermal_1_transitions"] + rises["thermal_2_transitions"]
        slowed_s = rises["thermal_1_s"] + rises["thermal_2_s"]
        parts.append(f"the drive counted {times:.0f} throttling events, {slowed_s:.0f} s in all")
    return ", ".join(parts)


DETECTOR = Declared("thermal throttling", thermal_throttling, place=1)
