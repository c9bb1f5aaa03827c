"""Detect disturbance by neighbours: rates that fall while others use the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drivelab.analysis.detectors.detection import CHANCE, Declared, Finding, Recording, beside, chance_of_fall, samples
from drivelab.criteria.settling import Floats
from drivelab.criteria.taint import LOAD_LIMIT_PCT, STEAL_LIMIT_PCT

LEAST_FALL_PCT = 5.0
"""A smaller fall changes no result: it is within the relative standard error that repeats may have."""
LEAST_DISTURBED, LEAST_USUAL = 3, 5
"""Samples needed on each side of the comparison: with fewer, the test cannot reach `CHANCE`."""
_CAUSES = (
    ("steal_pct", STEAL_LIMIT_PCT, "CPU time was stolen by the hypervisor"),
    ("load_pct", LOAD_LIMIT_PCT, "CPU time was used by other programs"),
)
"""Column, the percentage above which a cell is tainted, and words for a finding."""


def neighbours(recording: Recording) -> Iterator[Finding]:
    """Find rates that fall during stolen CPU time, and during load by others.

    `value` is the fall in percent.
    Rates are relative to the usual rate at the time, see `relative_course`: in a soak, a disturbance of more than half
    a minute becomes usual itself. With sampled telemetry the detector compares seconds, otherwise whole cells.
    """
    for column, limit_pct, words in _CAUSES:
        relative, taken_pct, begins_s, ends_s = _rates_and_disturbance(recording, column)
        known = ~np.isnan(taken_pct)
        if not known.any():
            continue
        disturbed, usual = relative[known & (taken_pct > limit_pct)], relative[known & (taken_pct <= limit_pct)]
        most_pct = float(np.nanmax(taken_pct))
        if len(disturbed) < LEAST_DISTURBED or len(usual) < LEAST_USUAL:
            why = "no undisturbed time to compare with" if len(usual) < LEAST_USUAL else "too little to matter"
            yield Finding(False, f"at most {most_pct:.0f} % of the {words}: {why}", metric=column)
            continue
        fall_pct = 100 * (1 - float(np.median(disturbed)) / float(np.median(usual)))
        is_lower = fall_pct >= LEAST_FALL_PCT and chance_of_fall(disturbed, usual) < CHANCE
        effect = f"rates were {fall_pct:.0f} % lower" if is_lower else "rates were not lower"
        inside = known & (taken_pct > limit_pct)
        told = (
            f"while more than {limit_pct:.0f} % of the {words}, {effect} ({len(disturbed)} of "
            f"{len(disturbed) + len(usual)} samples, at most {most_pct:.0f} %)"
        )
        span = float(begins_s[inside].min()), float(ends_s[inside].max())
        yield Finding(is_lower, told, None, column, fall_pct, LEAST_FALL_PCT, "%", *span)


def _rates_and_disturbance(recording: Recording, column: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Return relative rates, the percentage that others took, begin and end in s. Each of shape (n,)."""
    course, telemetry = recording.relative, samples(recording)
    begins_s, ends_s = (course[name].to_numpy(dtype=float) for name in ("begin_s", "end_s"))
    relative = course["relative"].to_numpy(dtype=float)
    if telemetry[column].notna().any():
        return relative, beside((begins_s + ends_s) / 2, telemetry, column, "forward"), begins_s, ends_s
    cells = recording.cells.sort_values("elapsed_s")
    firsts = np.searchsorted(cells["elapsed_s"].to_numpy(dtype=float), (begins_s + ends_s) / 2, side="right") - 1
    by_cell = cells[column].to_numpy(dtype=float)
    return relative, by_cell[firsts] if len(by_cell) else np.full(len(relative), np.nan), begins_s, ends_s


DETECTOR = Declared("neighbours", neighbours, place=2)
