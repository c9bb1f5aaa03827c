"""Detect the penalty of unaligned I/O: every block lies in two flash pages."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from drivelab.analysis.detectors.courses import CERTAIN, alike_but, combined
from drivelab.analysis.detectors.detection import Declared, Finding, Recording, findings_or_nothing

PAGE_BYTES = 4096
"""Offsets that are not a multiple of this are unaligned: it is the mapping unit of most drives and file systems."""
LEAST_PENALTY_PCT = 10.0
"""The deviation that the PTS allows a steady rate (ours)."""


def penalties(levels: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each pair of cells that differ only in their alignment.

    `levels` is from `cell_levels`.
    Columns: cell_label of the unaligned cell, aligned_iops, unaligned_iops, penalty_pct (how much slower the unaligned
    cell is), error_pct (standard error of the penalty, in percentage points).
    """
    rows = []
    for group in alike_but(levels, "alignment_offset_bytes"):
        off = group["alignment_offset_bytes"] % PAGE_BYTES != 0
        aligned = group[~off]
        if aligned.empty or not aligned["iops"].iloc[-1] > 0:
            continue
        base, base_error = float(aligned["iops"].iloc[-1]), float(aligned["relative_error"].iloc[-1])
        rows += [
            {
                "cell_label": cell.cell_label,
                "aligned_iops": base,
                "unaligned_iops": float(cell.iops),
                "penalty_pct": 100 * (1 - float(cell.iops) / base),
                "error_pct": 100 * float(cell.iops) / base * combined(base_error, cell.relative_error),
            }
            for cell in group[off].itertuples()
        ]
    return pd.DataFrame(rows, columns=["cell_label", "aligned_iops", "unaligned_iops", "penalty_pct", "error_pct"])


def alignment(recording: Recording) -> Iterator[Finding]:
    """Find cells that unaligned I/O slows down; `value` is the penalty in percent."""
    pairs = penalties(recording.levels)
    certain = (pairs["penalty_pct"] >= LEAST_PENALTY_PCT) & (pairs["penalty_pct"] >= CERTAIN * pairs["error_pct"])
    findings = [
        Finding(
            True,
            f"unaligned I/O is {pair.penalty_pct:.0f} % slower: {pair.unaligned_iops:,.0f} instead of "
            f"{pair.aligned_iops:,.0f} IOPS",
            cell_label=str(pair.cell_label),
            metric="iops",
            value=float(pair.penalty_pct),
            threshold=LEAST_PENALTY_PCT,
            unit="%",
        )
        for pair in pairs[certain].itertuples()
    ]
    nothing = None
    if len(pairs):
        worst_pct = float(pairs["penalty_pct"].max())
        scatter = ", which is within the scatter of the rounds" if worst_pct >= LEAST_PENALTY_PCT else ""
        words = f"unaligned I/O is at most {max(worst_pct, 0.0):.0f} % slower{scatter}"
        nothing = Finding(False, words, None, "iops", worst_pct, LEAST_PENALTY_PCT, "%")
    yield from findings_or_nothing(findings, nothing)


DETECTOR = Declared("alignment", alignment, place=13)
