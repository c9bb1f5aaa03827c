"""The bathtub of mixed workloads: reads and writes that cost more together than each alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from drivelab.analysis.detectors.finding import Finding, told_or_nothing
from drivelab.analysis.detectors.levels import alike_but
from drivelab.analysis.detectors.recording import Recording

LEAST_INDEX_PCT = 10.0
"""What the PTS lets a steady rate be off: with less, the mixes lie on the line (ours)."""
LEAST_BELOW_SHARING_PCT = 5.0
"""Below what sharing the time explains: a slow pure write alone bends the curve, and is no news (ours)."""


@dataclass(frozen=True)
class Bathtub:
    """The mix that lies deepest below the line between pure reads and pure writes.

    With X(r) the IOPS at read share r, the line is L(r) = X(0) + r (X(1) - X(0)), and the index is the largest
    1 - X(r) / L(r). A drive that does one I/O at a time, each kind at its own cost, has the harmonic mean
    1 / (r / X(1) + (1 - r) / X(0)) instead, which lies below the line too.
    """

    index_pct: float
    """100 (1 - X(r) / L(r)) of that mix; negative where all lie above the line."""
    read_share_pct: int
    iops: float
    line_iops: float
    sharing_iops: float
    """By the harmonic mean."""
    below_both: bool
    """Whether the mix is slower than pure reads and pure writes: a bathtub in the strict sense."""

    @property
    def below_sharing_pct(self) -> float:
        return 100 * (1 - self.iops / self.sharing_iops)


def bathtub_index(mixes: pd.DataFrame) -> Bathtub | None:
    """Of cells that differ in read_share_pct only (columns read_share_pct, iops); the last of equal shares counts.

    None without pure reads, pure writes and a mix, or where either pure workload has no I/O.
    """
    rates = {int(share): float(iops) for share, iops in zip(mixes["read_share_pct"], mixes["iops"], strict=True)}
    reads, writes = rates.get(100, 0.0), rates.get(0, 0.0)
    between = {share: iops for share, iops in rates.items() if 0 < share < 100}
    if not between or reads <= 0 or writes <= 0:
        return None
    line = {share: writes + share / 100 * (reads - writes) for share in between}
    deepest = max(between, key=lambda share: 1 - between[share] / line[share])
    return Bathtub(
        index_pct=100 * (1 - between[deepest] / line[deepest]),
        read_share_pct=deepest,
        iops=between[deepest],
        line_iops=line[deepest],
        sharing_iops=1 / (deepest / 100 / reads + (1 - deepest / 100) / writes),
        below_both=between[deepest] < min(reads, writes),
    )


def bathtub(recording: Recording) -> Iterator[Finding]:
    """Of each size and demand with both pure workloads and mixes: `value` is the index in percent."""
    found, looked = [], []
    for mixes in alike_but(recording.levels, "read_share_pct"):
        one = bathtub_index(mixes)
        if one is None:
            continue
        looked.append(one)
        if one.index_pct >= LEAST_INDEX_PCT and one.below_sharing_pct >= LEAST_BELOW_SHARING_PCT:
            label = str(mixes.loc[mixes["read_share_pct"] == one.read_share_pct, "cell_label"].iloc[-1])
            strict = ", and slower than either alone" if one.below_both else ""
            words = (
                f"{one.read_share_pct} % reads lie {one.index_pct:.0f} % below the line between pure reads and writes, "
                f"{one.below_sharing_pct:.0f} % below what sharing the time explains{strict}"
            )
            found.append(Finding(True, words, label, "iops", one.index_pct, LEAST_INDEX_PCT, "%"))
    nothing = None
    if looked:
        deepest = max(looked, key=lambda one: one.index_pct)
        words = (
            f"no bathtub: at most {deepest.index_pct:.0f} % below the line, "
            f"{deepest.below_sharing_pct:.0f} % below what sharing the time explains"
        )
        nothing = Finding(False, words, None, "iops", deepest.index_pct, LEAST_INDEX_PCT, "%")
    yield from told_or_nothing(found, nothing)
