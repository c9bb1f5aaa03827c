"""Thermal throttling: a rate that falls when the drive gets too hot."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.detectors.courses import spells
from drivelab.analysis.detectors.finding import Finding
from drivelab.analysis.detectors.recording import Recording
from drivelab.analysis.detectors.timeline import beside, chance_of_fall, samples

NEAR_C = 1.0
"""A drive this near to its limit is too hot: sensors tell whole degrees, and between two samples the drive has already
let off and cooled down (ours)."""
AROUND = 5
"""Samples of the rate before and after the drive got too hot. A drive lets off as soon as it has cooled by a few
degrees, while it is still slowed down: only the moment when it gets too hot is sure (ours)."""
LEAST_FALL_PCT = 10.0
"""What the PTS lets a steady rate be off its average; light throttling of an NVMe drive takes a third and more."""
CHANCE = 0.01
"""Most that a fall by chance may be likely."""
_COUNTERS = ("thermal_1_transitions", "thermal_2_transitions", "thermal_1_s", "thermal_2_s")
"""Of the NVMe SMART log: they rise only while the drive slows itself down for its heat."""


def thermal_throttling(recording: Recording) -> Iterator[Finding]:
    """`value` is how far the rate fell when the limit was reached, the median of all times, in percent.

    Nothing is said where the drive tells neither a temperature with its limit nor the counters of throttling.
    """
    told = samples(recording)
    knows_limit = told["temperature_c"].notna() & told["temperature_limit_c"].notna()
    with_limit = told[knows_limit]
    counts = told[list(_COUNTERS)].dropna(how="all").fillna(0.0).astype(float)
    if with_limit.empty and counts.empty:
        return
    hot = told.assign(
        too_hot=(told["temperature_c"] >= told["temperature_limit_c"] - NEAR_C).astype(float).where(knows_limit),
        counted=(counts.diff().fillna(0.0) > 0).any(axis=1).astype(float).reindex(told.index),
    )
    course = recording.relative
    middles_s = (course["begin_s"] + course["end_s"]).to_numpy(dtype=float) / 2
    flags = (beside(middles_s, hot, "too_hot", "nearest") > 0) | (beside(middles_s, hot, "counted", "forward") > 0)
    yield _judged(course, flags, _words(with_limit, counts), bool((hot["counted"] > 0).any()))


def _judged(course: pd.DataFrame, flags: npt.NDArray[np.bool_], told: str, counted: bool) -> Finding:
    """`told` are the words on temperature and counters, `counted` says whether the drive counted any throttling."""
    relative = course["of_whole"].to_numpy(dtype=float)  # a fall that lasts is one, too
    onsets = [begin for begin, _ in spells(flags) if begin > 0]
    around = [(relative[max(begin - AROUND, 0) : begin], relative[begin : begin + AROUND]) for begin in onsets]
    pairs = [(before, after) for before, after in around if np.median(before) > 0]  # of a hang nothing can fall
    if not flags.any():
        return Finding(counted, f"{told}; no rate was measured at the time" if counted else f"never too hot: {told}")
    begin_s = float(course["begin_s"].to_numpy()[flags].min())
    end_s = float(course["end_s"].to_numpy()[flags].max())
    if not pairs:
        when = "after a hang" if onsets else "from the beginning"
        words = f"too hot {when}, so that there is nothing to compare with: {told}"
        return Finding(counted, words, begin_s=begin_s, end_s=end_s)
    falls = [100 * (1 - float(np.median(after)) / float(np.median(before))) for before, after in pairs]
    chance = chance_of_fall(np.concatenate([after for _, after in pairs]), np.concatenate([one for one, _ in pairs]))
    fall_pct = float(np.median(falls))
    found = fall_pct >= LEAST_FALL_PCT and chance < CHANCE
    times = f"{len(pairs)} time{'s' * (len(pairs) > 1)}"
    effect = f"the rate fell by {fall_pct:.0f} %" if found else "the rate did not fall with it"
    return Finding(
        found,
        f"too hot {times}, {effect}: {told}",
        metric="iops",
        value=fall_pct,
        threshold=LEAST_FALL_PCT,
        unit="%",
        begin_s=begin_s,
        end_s=end_s,
    )


def _words(with_limit: pd.DataFrame, counts: pd.DataFrame) -> str:
    words = []
    if len(with_limit):
        hottest_c, limit_c = with_limit["temperature_c"].max(), with_limit["temperature_limit_c"].min()
        words.append(f"at most {hottest_c:.0f} °C, the limit is {limit_c:.0f} °C")
    if len(counts):
        rises = counts.iloc[-1] - counts.iloc[0]
        times = rises["thermal_1_transitions"] + rises["thermal_2_transitions"]
        slowed_s = rises["thermal_1_s"] + rises["thermal_2_s"]
        words.append(f"the drive counted {times:.0f} times and {slowed_s:.0f} s of throttling")
    return ", ".join(words)
