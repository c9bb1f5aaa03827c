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

FINE = frozenset({STEADY, IN_STEADY_WINDOW, RSE_OK})
FAULTS = (NOT_STEADY, TAINTED, TOO_FEW_RUNS, RSE_TOO_HIGH)
"""The gravest first: what a value is called that has several."""
