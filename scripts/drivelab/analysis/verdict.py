"""Define the values of the columns `verdict` of values and of differences."""

from __future__ import annotations

STEADY = "steady"
IN_STEADY_WINDOW = "in steady window"
"""Averaged over the rounds in which the tracked variables are steady, but not tracked itself."""
RSE_OK = "repeats agree"
NOT_STEADY = "not steady"
TAINTED = "tainted"
"""Something disturbed the drive or its host during a cell that the value uses."""
HOST_LIMITED = "host-limited"
"""The host, not the drive, may be the limit of a cell that the value uses: the drive is at least as good."""
TOO_FEW_RUNS = "too few runs"
RSE_TOO_HIGH = "repeats do not agree"
IN_PHASE = "in a phase"
"""The test changes the drive from pass to pass on purpose, so the passes are not repeats."""
IN_CHANGING_PHASE = "in a changing phase"
"""The passes of the phase differ by design, so their spread is a trend."""
AS_ASKED = {1: "single run", 2: "two runs"}
"""The protocol asks for too few passes to judge their agreement."""
SINGLE_SLICE = "single slice"
TOO_FEW_SLICES = "too few slices"
"""Too few slices of the soak count to judge whether it is steady."""
PARTIAL = "partial"
"""A replay that the value uses ended before it issued all requests."""
INCOMPLETE_WINDOW = "incomplete window"
"""Some rounds of the steady-state window lack a sound cell of this kind, or some of its slices are unsound."""
LIMIT_FOUND = "limit found"
"""A load has a rate that passes and one that fails, with no undecided rate between them."""
LIMIT_OPEN = "limit open"
"""No rate of a load fails, or rates above the value are undecided, so the value is a lower bound."""

FINE = frozenset((STEADY, IN_STEADY_WINDOW, RSE_OK, IN_PHASE, IN_CHANGING_PHASE, SINGLE_SLICE, TOO_FEW_SLICES,
                  LIMIT_FOUND, *AS_ASKED.values()))  # fmt: skip
FAULTS = (PARTIAL, NOT_STEADY, INCOMPLETE_WINDOW, LIMIT_OPEN, TAINTED, TOO_FEW_RUNS, RSE_TOO_HIGH, HOST_LIMITED)
"""Faults, gravest first: a value with several gets the first."""

FASTER_BEYOND = "faster beyond the margin"
"""The whole adjusted interval lies beyond the margin of the study."""
FASTER = "faster (size unsure)"
SAME = "same within the margin"
SLOWER = "slower (size unsure)"
SLOWER_BEYOND = "slower beyond the margin"
CANNOT_TELL = "cannot tell"
NOT_COMPARED = "not compared"
"""The sides have an unintended difference, and the study forbids that."""
IN_RECORDINGS = "in these recordings"
"""What a difference without replication is called: a number of these recordings, no verdict."""
DELTA_VERDICTS = (FASTER_BEYOND, FASTER, SAME, SLOWER, SLOWER_BEYOND, CANNOT_TELL, NOT_COMPARED)
"""Values of the column `verdict` of the table `deltas`: the outcomes of a comparison."""
BETTER = (FASTER_BEYOND, FASTER)
WORSE = (SLOWER_BEYOND, SLOWER)
DECIDED = (*BETTER, SAME, *WORSE)


def direction(verdict: str) -> str:
    """Return `better` or `worse`, or nothing without a verdict on the difference."""
    return "better" if verdict in BETTER else "worse" if verdict in WORSE else ""
