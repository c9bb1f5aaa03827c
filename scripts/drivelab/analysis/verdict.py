"""The words of the columns `verdict`: whether a summarised value can be relied on, and what a difference amounts to."""

from __future__ import annotations

STEADY = "steady"
IN_STEADY_WINDOW = "in steady window"
"""Averaged over the rounds in which the tracked variables are steady, but no tracked variable itself."""
RSE_OK = "repeats agree"
NOT_STEADY = "not steady"
TAINTED = "tainted"
"""Something disturbed the drive or its host while a cell ran that the value stands on."""
TOO_FEW_RUNS = "too few runs"
RSE_TOO_HIGH = "repeats do not agree"
IN_PHASE = "in a phase"
"""Of a test that changes the drive from pass to pass on purpose: there is nothing that repeats could agree on."""
IN_CHANGING_PHASE = "in a changing phase"
"""Of a phase whose passes differ by design: their spread is a trend."""
AS_ASKED = {1: "single run", 2: "two runs"}
"""The protocol asks for so few passes that nothing can be said of how they agree."""
SINGLE_SLICE = "single slice"
TOO_FEW_SLICES = "too few slices"
"""A soak of which so few slices count that nothing can be said of how steady it is."""
PARTIAL = "partial"
"""A replay that the value stands on ended before it had issued all."""
INCOMPLETE_WINDOW = "incomplete window"
"""Some rounds of the steady-state window have no sound cell of this kind, or some of its slices are not sound."""

FINE = frozenset(
    {STEADY, IN_STEADY_WINDOW, RSE_OK, IN_PHASE, IN_CHANGING_PHASE, SINGLE_SLICE, TOO_FEW_SLICES, *AS_ASKED.values()}
)
FAULTS = (PARTIAL, NOT_STEADY, INCOMPLETE_WINDOW, TAINTED, TOO_FEW_RUNS, RSE_TOO_HIGH)
"""The gravest first: what a value is called that has several."""

BETTER = "better"
WORSE = "worse"
SAME = "same"
"""The difference lies wholly within the margin that the study calls the same."""
CANNOT_TELL = "cannot tell"
NOT_COMPARED = "not compared"
"""Something else differs than what was meant to, and the study forbids that."""
DELTA_VERDICTS = (BETTER, WORSE, SAME, CANNOT_TELL, NOT_COMPARED)
"""What the column `verdict` of the table `deltas` says of a difference."""
