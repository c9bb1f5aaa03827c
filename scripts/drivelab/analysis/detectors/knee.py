"""Detect the knee of a queue-depth sweep: beyond it, I/Os only wait longer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from drivelab.analysis.detectors.courses import CERTAIN, STEADY_PCT, alike_but, combined
from drivelab.analysis.detectors.detection import Declared, Finding, Recording

LEAST_DEPTHS = 4
"""A knee joins two straight parts of at least two points each."""
LEAST_RISE_PCT = 25.0
"""Smallest rise of IOPS from the shallowest queue to the ceiling. A drive that does several I/Os at once rises by a
large factor before a queue saturates it; scatter alone rises too, but by less (ours)."""


@dataclass(frozen=True)
class Knee:
    """The knee of one sweep."""

    depth: int
    """The measured depth at which the normalised curve of IOPS over log depth lies farthest above its diagonal (Satopää
    et al., Finding a "Kneedle" in a Haystack, ICDCS Workshops 2011)."""
    iops: float
    gain_pct: float
    """Rise of IOPS from the knee to the largest value at a deeper queue; 0 for a fall."""
    saturation_depth: float
    """Depth at which the asymptotes cross: the ceiling divided by the rate at depth 1 (Denning and Buzen, The
    Operational Analysis of Queueing Network Models, ACM Computing Surveys 10, 1978). NaN if the sweep does not begin at
    depth 1."""
    deepest: int


def find_knee(sweep: pd.DataFrame) -> Knee | None:
    """Return the knee of cells that differ only in queue depth, or None.

    Columns: queue_depth, iops, and optionally relative_error. None for fewer than `LEAST_DEPTHS` depths, and unless
    IOPS rise with depth by at least `LEAST_RISE_PCT` and by more than scatter explains.
    """
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
    """Find the knee for each workload and number of threads. `value` is its queue depth per thread."""
    findings, sweeps = [], 0
    for sweep in alike_but(recording.levels, "queue_depth"):
        knee = find_knee(sweep)
        sweeps += sweep["queue_depth"].nunique() >= LEAST_DEPTHS
        if knee is None or knee.gain_pct > STEADY_PCT or knee.depth >= knee.deepest:
            continue
        label = str(sweep.loc[sweep["queue_depth"] == knee.depth, "cell_label"].iloc[-1])
        asymptotes = "" if np.isnan(knee.saturation_depth) else f"; the asymptotes cross at {knee.saturation_depth:.1f}"
        gain = f"IOPS rise by {knee.gain_pct:.0f} % at most, up to depth {knee.deepest}"
        words = f"from depth {knee.depth} on {gain}{asymptotes}"
        findings.append(Finding(True, words, label, "queue_depth", float(knee.depth), None, "I/Os"))
    words = f"no knee in {sweeps} queue-depth sweeps: IOPS rise up to the deepest queue, or hardly rise at all"
    yield from findings or [Finding(False, words)] * bool(sweeps)


DETECTOR = Declared("queue-depth knee", queue_depth_knee, place=14)
