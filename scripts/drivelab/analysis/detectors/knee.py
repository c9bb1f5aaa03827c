"""The knee of a sweep of queue depths: from where on more outstanding I/Os only wait longer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from drivelab.analysis.detectors.finding import Finding, told_or_nothing
from drivelab.analysis.detectors.levels import CERTAIN, alike_but, combined
from drivelab.analysis.detectors.recording import Recording

LEAST_DEPTHS = 4
"""A knee has two straight parts, of two points each."""
MOST_GAIN_PCT = 10.0
"""By so much IOPS may rise from the knee to the deepest queue, else there is none: what the PTS lets a steady rate be
off its average (ours)."""
LEAST_RISE_PCT = 25.0
"""By so much IOPS must rise from the shallowest queue to the ceiling. A drive that a queue saturates does several I/Os
at once, and rises by a good factor; scatter alone has a largest value, too, and a curve of its own up to it (ours)."""


@dataclass(frozen=True)
class Knee:
    """Of one sweep."""

    depth: int
    """Where the normalised curve of IOPS over the logarithm of depth lies farthest above its diagonal (Satopää et al.,
    Finding a "Kneedle" in a Haystack, ICDCS Workshops 2011); a measured one."""
    iops: float
    gain_pct: float
    """Rise of IOPS from there to the largest at a deeper queue; 0 for a fall."""
    saturation_depth: float
    """Where the asymptotes cross: the ceiling over the rate of a single I/O (Denning and Buzen, The Operational
    Analysis of Queueing Network Models, ACM Computing Surveys 10, 1978); NaN where the sweep does not begin at 1."""
    deepest: int


def find_knee(sweep: pd.DataFrame) -> Knee | None:
    """Of cells that differ in depth only (columns queue_depth, iops, and relative_error where it is known); None for
    fewer than `LEAST_DEPTHS` depths, and where IOPS do not rise with depth, by `LEAST_RISE_PCT` and by more than
    scatter explains."""
    ordered = sweep.reindex(columns=["queue_depth", "iops", "relative_error"]).groupby("queue_depth").last()
    depths, iops = ordered.index.to_numpy(dtype=float), ordered["iops"].to_numpy(dtype=float)
    if len(depths) < LEAST_DEPTHS:
        return None
    errors = iops * ordered["relative_error"].to_numpy(dtype=float)
    sure = CERTAIN * combined(errors[0], errors[np.argmax(iops)])
    if iops.max() - iops[0] < max(LEAST_RISE_PCT / 100 * iops[0], sure) or not iops.max() > 0:
        return None
    x = np.log2(depths / depths[0]) / np.log2(depths[-1] / depths[0])
    y = (iops - iops[0]) / (iops.max() - iops[0])
    at = int(np.argmax(y - x))
    return Knee(
        depth=int(depths[at]),
        iops=float(iops[at]),
        gain_pct=100 * max(float(iops[at:].max() / iops[at]) - 1, 0.0) if iops[at] > 0 else float("inf"),
        saturation_depth=float(iops.max() / iops[0]) if depths[0] == 1 and iops[0] > 0 else float("nan"),
        deepest=int(depths[-1]),
    )


def queue_depth_knee(recording: Recording) -> Iterator[Finding]:
    """Of each workload and number of threads: `value` is the depth (per thread) of the knee."""
    found, looked = [], 0
    for sweep in alike_but(recording.levels, "queue_depth"):
        one = find_knee(sweep)
        looked += sweep["queue_depth"].nunique() >= LEAST_DEPTHS
        if one is None or one.gain_pct > MOST_GAIN_PCT or one.depth >= one.deepest:
            continue
        label = str(sweep.loc[sweep["queue_depth"] == one.depth, "cell_label"].iloc[-1])
        asymptotes = "" if np.isnan(one.saturation_depth) else f"; the asymptotes cross at {one.saturation_depth:.1f}"
        gain = f"IOPS rise by {one.gain_pct:.0f} % at most, up to depth {one.deepest}"
        words = f"from depth {one.depth} on {gain}{asymptotes}"
        found.append(Finding(True, words, label, "queue_depth", float(one.depth), None, "I/Os"))
    words = f"no knee in {looked} sweeps of depth: IOPS rise to the end, or hardly"
    nothing = Finding(False, words) if looked else None
    yield from told_or_nothing(found, nothing)
