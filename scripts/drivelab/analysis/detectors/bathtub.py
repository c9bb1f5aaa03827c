"""The bathtub of mixed workloads: reads and writes that cost more together than each alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from drivelab.analysis.detectors.finding import Finding, told_or_nothing
from drivelab.analysis.detectors.levels import CERTAIN, alike_but, combined
from drivelab.analysis.detectors.recording import Recording

LEAST_INDEX_PCT = 10.0
"""What the PTS lets a steady rate be off: with less, the mixes lie on the line (ours)."""
LEAST_BELOW_SHARING_PCT = 5.0
"""Below what sharing the time explains: a slow pure write alone bends the curve, and is no news (ours)."""


@dataclass(frozen=True)
class Bathtub:
    """A mix beside the line between pure reads and pure writes.

    With X(r) the IOPS at read share r, the line is L(r) = X(0) + r (X(1) - X(0)), and the index is 1 - X(r) / L(r).
    A drive that does one I/O at a time, each kind at its own cost, has the harmonic mean
    1 / (r / X(1) + (1 - r) / X(0)) instead, which lies below the line too.
    """

    index_pct: float
    """100 (1 - X(r) / L(r)); negative above the line."""
    read_share_pct: int
    iops: float
    line_iops: float
    sharing_iops: float
    """By the harmonic mean."""
    below_both: bool
    """Whether the mix is slower than pure reads and pure writes: a bathtub in the strict sense."""
    index_error_pct: float
    sharing_error_pct: float
    """Standard errors of `index_pct` and `below_sharing_pct`, in percentage points."""

    @property
    def below_sharing_pct(self) -> float:
        return 100 * (1 - self.iops / self.sharing_iops)

    @property
    def is_deep(self) -> bool:
        """Whether the mix lies below the line, and sharing the time does not explain it."""
        return self.index_pct >= LEAST_INDEX_PCT and self.below_sharing_pct >= LEAST_BELOW_SHARING_PCT

    @property
    def is_one(self) -> bool:
        """Whether the mix makes a bathtub: it is deep, and scatter does not explain it either."""
        surely_below = self.index_pct >= CERTAIN * self.index_error_pct
        return self.is_deep and surely_below and self.below_sharing_pct >= CERTAIN * self.sharing_error_pct


def of_mixes(mixes: pd.DataFrame) -> list[Bathtub]:
    """Each mix of cells that differ in read_share_pct only (columns read_share_pct, iops, and relative_error where it
    is known); the last of equal shares counts. Empty without pure reads and pure writes, or where either has no I/O.
    """
    told = mixes.reindex(columns=["read_share_pct", "iops", "relative_error"]).to_numpy(dtype=float)
    rates = {int(share): float(iops) for share, iops, _ in told}
    errors = {int(share): float(error) for share, _, error in told}
    reads, writes = rates.get(100, 0.0), rates.get(0, 0.0)
    if reads <= 0 or writes <= 0:
        return []
    return [
        _beside_the_line(share, (iops, reads, writes), (errors[share], errors[100], errors[0]))
        for share, iops in rates.items()
        if 0 < share < 100
    ]


def _beside_the_line(
    read_share_pct: int, rates: tuple[float, float, float], errors: tuple[float, float, float]
) -> Bathtub:
    """`rates` are IOPS of the mix, of pure reads and of pure writes; `errors` are parts of them."""
    share, (iops, reads, writes) = read_share_pct / 100, rates
    of_mix, of_reads, of_writes = errors
    line = writes + share * (reads - writes)
    sharing = 1 / (share / reads + (1 - share) / writes)
    of_line = combined(share * reads * of_reads / line, (1 - share) * writes * of_writes / line)
    of_sharing = combined(share * sharing / reads * of_reads, (1 - share) * sharing / writes * of_writes)
    return Bathtub(
        index_pct=100 * (1 - iops / line),
        read_share_pct=read_share_pct,
        iops=iops,
        line_iops=line,
        sharing_iops=sharing,
        below_both=iops < min(reads, writes),
        index_error_pct=100 * iops / line * combined(of_mix, of_line),
        sharing_error_pct=100 * iops / sharing * combined(of_mix, of_sharing),
    )


def bathtub_index(mixes: pd.DataFrame) -> Bathtub | None:
    """Of `of_mixes` the one deepest below the line, of those that make a bathtub if there are any: a slow pure write
    alone puts other mixes deeper. None without mixes."""
    return max(of_mixes(mixes), key=lambda one: (one.is_one, one.index_pct), default=None)


def bathtub(recording: Recording) -> Iterator[Finding]:
    """Of each size and demand with both pure workloads and mixes: `value` is the index in percent."""
    found, looked = [], []
    for mixes in alike_but(recording.levels, "read_share_pct"):
        looked += of_mixes(mixes)
        one = bathtub_index(mixes)
        if one is not None and one.is_one:
            label = str(mixes.loc[mixes["read_share_pct"] == one.read_share_pct, "cell_label"].iloc[-1])
            strict = ", and slower than either alone" if one.below_both else ""
            words = (
                f"{one.read_share_pct} % reads lie {one.index_pct:.0f} % below the line between pure reads and writes, "
                f"{one.below_sharing_pct:.0f} % below what sharing the time explains{strict}"
            )
            found.append(Finding(True, words, label, "iops", one.index_pct, LEAST_INDEX_PCT, "%"))
    nothing = None
    if looked:
        deepest_pct = max(one.index_pct for one in looked)
        below_sharing_pct = max(one.below_sharing_pct for one in looked)
        scatter = ", which is no more than their rounds scatter" if any(one.is_deep for one in looked) else ""
        words = (
            f"no bathtub: mixes lie at most {max(deepest_pct, 0.0):.0f} % below the line, and at most "
            f"{max(below_sharing_pct, 0.0):.0f} % below what sharing the time explains{scatter}"
        )
        nothing = Finding(False, words, None, "iops", deepest_pct, LEAST_INDEX_PCT, "%")
    yield from told_or_nothing(found, nothing)
