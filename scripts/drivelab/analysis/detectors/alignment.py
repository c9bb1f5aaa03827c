"""The penalty of unaligned I/O: every block lies in two pages of the flash."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from drivelab.analysis.detectors.finding import Finding, told_or_nothing
from drivelab.analysis.detectors.levels import CERTAIN, alike_but, combined
from drivelab.analysis.detectors.recording import Recording

PAGE_BYTES = 4096
"""Offsets that are no multiple of it are unaligned: the unit of mapping of most drives, and of file systems."""
LEAST_PENALTY_PCT = 10.0
"""What the PTS lets a steady rate be off (ours)."""


def penalties(levels: pd.DataFrame) -> pd.DataFrame:
    """Of each pair of cells (rows of `cell_levels`) that differ in their alignment only: cell_label of the unaligned
    one, aligned_iops, unaligned_iops, penalty_pct (by how much it is slower), error_pct (its standard error, in
    percentage points)."""
    rows = []
    for group in alike_but(levels, "alignment_offset_bytes"):
        off = group["alignment_offset_bytes"] % PAGE_BYTES != 0
        aligned = group[~off]
        if aligned.empty or not aligned["iops"].iloc[-1] > 0:
            continue
        base, base_error = float(aligned["iops"].iloc[-1]), float(aligned["relative_error"].iloc[-1])
        rows += [
            {
                "cell_label": one.cell_label,
                "aligned_iops": base,
                "unaligned_iops": float(one.iops),
                "penalty_pct": 100 * (1 - float(one.iops) / base),
                "error_pct": 100 * float(one.iops) / base * combined(base_error, one.relative_error),
            }
            for one in group[off].itertuples()
        ]
    return pd.DataFrame(rows, columns=["cell_label", "aligned_iops", "unaligned_iops", "penalty_pct", "error_pct"])


def alignment(recording: Recording) -> Iterator[Finding]:
    """`value` is the penalty in percent."""
    pairs = penalties(recording.levels)
    certain = (pairs["penalty_pct"] >= LEAST_PENALTY_PCT) & (pairs["penalty_pct"] >= CERTAIN * pairs["error_pct"])
    found = [
        Finding(
            True,
            f"unaligned it is {one.penalty_pct:.0f} % slower: {one.unaligned_iops:,.0f} in place of "
            f"{one.aligned_iops:,.0f} IOPS",
            cell_label=str(one.cell_label),
            metric="iops",
            value=float(one.penalty_pct),
            threshold=LEAST_PENALTY_PCT,
            unit="%",
        )
        for one in pairs[certain].itertuples()
    ]
    nothing = None
    if len(pairs):
        worst_pct = float(pairs["penalty_pct"].max())
        scatter = ", which is no more than its rounds scatter" if worst_pct >= LEAST_PENALTY_PCT else ""
        words = f"unaligned I/O is at most {max(worst_pct, 0.0):.0f} % slower{scatter}"
        nothing = Finding(False, words, None, "iops", worst_pct, LEAST_PENALTY_PCT, "%")
    yield from told_or_nothing(found, nothing)
