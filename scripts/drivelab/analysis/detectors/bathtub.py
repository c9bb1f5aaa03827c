"""Detect the bathtub: mixed reads and writes that cost more than each alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from drivelab.analysis.detectors.courses import CERTAIN, WITHIN_SCATTER, alike_but, combined
from drivelab.analysis.detectors.detection import Declared, Finding, Recording

LEAST_INDEX_PCT = 10.0
"""The deviation that the PTS allows a steady rate: mixes closer than this lie on the line (ours)."""
LEAST_BELOW_SHARING_PCT = 5.0
"""How far a mix must lie below the harmonic mean: slow pure writes alone already bend the curve (ours)."""


@dataclass(frozen=True)
class Bathtub:
    """A mix, compared with the line between pure reads and pure writes.

    With X(r) the IOPS at read share r, the line is L(r) = X(0) + r (X(1) - X(0)), and the index is 1 - X(r) / L(r).
    A drive that does one I/O at a time, each kind at its own cost, reaches the harmonic mean
    1 / (r / X(1) + (1 - r) / X(0)) instead (time sharing). This also lies below the line.
    """

    read_share_pct: int
    index_pct: float
    """100 (1 - X(r) / L(r)); negative above the line."""
    below_sharing_pct: float
    """The same for what time sharing explains."""
    below_both: bool
    """Whether the mix is slower than pure reads and pure writes: a bathtub in the strict sense."""
    is_deep: bool
    """Whether the mix lies below the line and below what time sharing explains."""
    is_one: bool
    """Whether the mix is a bathtub: deep, and deeper than scatter explains."""


def compare_mixes(mixes: pd.DataFrame) -> list[Bathtub]:
    """Compare each mix of cells that differ only in read_share_pct with the line.

    Columns: read_share_pct, iops, and optionally relative_error. The last row of a share counts. Empty if pure reads or
    pure writes are missing or have no I/O.
    """
    cells = mixes.reindex(columns=["read_share_pct", "iops", "relative_error"]).to_numpy(dtype=float)
    by_share = {int(percent): (float(iops), float(error)) for percent, iops, error in cells}
    (reads, read_error), (writes, write_error) = (by_share.get(percent, (0.0, 0.0)) for percent in (100, 0))
    if reads <= 0 or writes <= 0:
        return []
    compared = []
    for percent, (iops, mix_error) in by_share.items():
        if 0 < percent < 100:
            share = percent / 100
            line = writes + share * (reads - writes)
            sharing = 1 / (share / reads + (1 - share) / writes)
            line_error = combined(share * reads * read_error / line, (1 - share) * writes * write_error / line)
            sharing_error = combined(share * sharing / reads * read_error, (1 - share) * sharing / writes * write_error)
            below = 100 * (1 - iops / line), 100 * (1 - iops / sharing)
            errors = iops / line * combined(mix_error, line_error), iops / sharing * combined(mix_error, sharing_error)
            is_deep = below[0] >= LEAST_INDEX_PCT and below[1] >= LEAST_BELOW_SHARING_PCT
            is_sure = all(pct >= CERTAIN * 100 * error for pct, error in zip(below, errors, strict=True))
            compared.append(Bathtub(percent, *below, iops < min(reads, writes), is_deep, is_deep and is_sure))
    return compared


def bathtub_index(mixes: pd.DataFrame) -> Bathtub | None:
    """Return the deepest mix below the line, or None without mixes.

    Mixes that make a bathtub come first: slow pure writes alone may put other mixes deeper.
    """
    return max(compare_mixes(mixes), key=lambda mix: (mix.is_one, mix.index_pct), default=None)


def bathtub(recording: Recording) -> Iterator[Finding]:
    """Find bathtubs, for each block size and demand with pure workloads and mixes. `value` is the index in percent."""
    findings, checked = [], []
    for mixes in alike_but(recording.levels, "read_share_pct"):
        checked += compare_mixes(mixes)
        deepest = bathtub_index(mixes)
        if deepest is not None and deepest.is_one:
            label = str(mixes.loc[mixes["read_share_pct"] == deepest.read_share_pct, "cell_label"].iloc[-1])
            strict = ", and slower than either alone" if deepest.below_both else ""
            words = (
                f"{deepest.read_share_pct} % reads: IOPS are {deepest.index_pct:.0f} % below the line between pure "
                f"reads and writes, {deepest.below_sharing_pct:.0f} % below what time sharing explains{strict}"
            )
            findings.append(Finding(True, words, label, "iops", deepest.index_pct, LEAST_INDEX_PCT, "%"))
    if checked and not findings:
        deepest_pct = max(mix.index_pct for mix in checked)
        below_sharing_pct = max(mix.below_sharing_pct for mix in checked)
        scatter = WITHIN_SCATTER if any(mix.is_deep for mix in checked) else ""
        words = (
            f"no bathtub: mixes lie at most {max(deepest_pct, 0.0):.0f} % below the line, and at most "
            f"{max(below_sharing_pct, 0.0):.0f} % below what time sharing explains{scatter}"
        )
        findings = [Finding(False, words, None, "iops", deepest_pct, LEAST_INDEX_PCT, "%")]
    yield from findings


DETECTOR = Declared("bathtub", bathtub, place=12)
