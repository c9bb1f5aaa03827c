"""Whether a summarised value can be relied on: the words of the column `verdict`."""

from __future__ import annotations

STEADY = "steady"
IN_STEADY_WINDOW = "in steady window"
"""Averaged over the rounds in which the tracked variables are steady, but no tracked variable itself."""
RSE_OK = "rse ok"
NOT_STEADY = "not steady"
TAINTED = "tainted"
"""Something disturbed the host while a cell ran that the value stands on."""
TOO_FEW_RUNS = "too few runs"
RSE_TOO_HIGH = "rse too high"
IN_PHASE = "in a phase"
"""Of a test that changes the drive from pass to pass on purpose: there is nothing that repeats could agree on."""
PARTIAL = "partial"
"""A replay that the value stands on ended before it had issued all."""

FINE = frozenset({STEADY, IN_STEADY_WINDOW, RSE_OK, IN_PHASE})
FAULTS = (PARTIAL, NOT_STEADY, TAINTED, TOO_FEW_RUNS, RSE_TOO_HIGH)
"""The gravest first: what a value is called that has several."""
