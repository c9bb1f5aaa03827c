"""Detect the penalty of unaligned I/O: every block lies in two flash pages."""

from __future__ import annotations

from collections.abc import Iterator

from drivelab.analysis.detectors.courses import CERTAIN, STEADY_PCT, WITHIN_SCATTER, alike_but, combined
from drivelab.analysis.detectors.detection import Declared, Finding, Recording

PAGE_BYTES = 4096
"""Offsets that are not a multiple of this are unaligned: it is the mapping unit of most drives and file systems."""


def alignment(recording: Recording) -> Iterator[Finding]:
    """Find cells that unaligned I/O slows down; `value` is the penalty: how much slower they are, in percent.

    They are compared with the aligned cells that differ from them in nothing else.
    """
    findings, penalties_pct = [], []
    for group in alike_but(recording.levels, "alignment_offset_bytes"):
        off = group["alignment_offset_bytes"] % PAGE_BYTES != 0
        aligned = group[~off]
        if aligned.empty or not aligned["iops"].iloc[-1] > 0:
            continue
        base, base_error = (float(aligned[name].iloc[-1]) for name in ("iops", "relative_error"))
        for cell in group[off].itertuples():
            penalty_pct = 100 * (1 - float(cell.iops) / base)
            penalties_pct.append(penalty_pct)
            error_pct = 100 * float(cell.iops) / base * combined(base_error, cell.relative_error)
            if penalty_pct >= max(STEADY_PCT, CERTAIN * error_pct):
                words = f"unaligned I/O is {penalty_pct:.0f} % slower: {cell.iops:,.0f} instead of {base:,.0f} IOPS"
                label = str(cell.cell_label)
                findings.append(Finding(True, words, label, "iops", penalty_pct, STEADY_PCT, "%"))
    if penalties_pct and not findings:
        worst_pct = max(penalties_pct)
        scatter = WITHIN_SCATTER if worst_pct >= STEADY_PCT else ""
        words = f"unaligned I/O is at most {max(worst_pct, 0.0):.0f} % slower{scatter}"
        findings = [Finding(False, words, None, "iops", worst_pct, STEADY_PCT, "%")]
    yield from findings


DETECTOR = Declared("alignment", alignment, place=13)
