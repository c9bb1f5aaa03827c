"""Why headline tests have no verdict, and what helps."""

from __future__ import annotations

from collections import Counter

from drivelab.analysis.delta_doubts import PRINTED
from drivelab.analysis.doubt_notes import DISTURBED, FOREIGN, taint_causes
from drivelab.report.inputs import Row
from drivelab.report.outcome import whys

_MOST_REASONS = 3
_DISTURBED = "the host was disturbed"
_HOT = "a drive was too hot"
_WRITTEN = "something else wrote to a drive"
_REMEDIES = {
    _WRITTEN: "without other writers on the drives",
    _DISTURBED: "on an idle host",
    _HOT: "with better cooling",
}


def why_in_doubt(deltas: list[Row]) -> str:
    """Return the most frequent doubts, each with its number of deltas unless it concerns all."""
    reasons = _counted(deltas).most_common(_MOST_REASONS)
    return "; ".join(reason if count == len(deltas) else f"{reason} (in {count})" for reason, count in reasons)


def remedy(deltas: list[Row]) -> str:
    """Return a sentence on what helps, with a leading space; empty if no remedy is known."""
    reasons = _counted(deltas)
    remedies = [advice for reason, advice in _REMEDIES.items() if reason in reasons]
    return f" Repeat the measurement {' and '.join(remedies)}." if remedies else ""


def _counted(deltas: list[Row]) -> Counter[str]:
    return Counter(reason for row in deltas for reason in dict.fromkeys(map(_in_short, whys(row))))


def why_not_tested(deltas: list[Row]) -> str:
    """Return the number of deltas and the reasons why their scatter is unknown."""
    doubts = [str(doubt) for row in deltas for doubt in row["doubts"]]
    if doubts and all(PRINTED in doubt for doubt in doubts):
        return f"{len(deltas)} printed value{'s' if len(deltas) > 1 else ''} with unknown scatter"
    reasons = f" ({why_in_doubt(deltas)})" if doubts else ""
    return f"none of {len(deltas)} headline tests has known scatter on both sides{reasons}"


def _in_short(doubt: str) -> str:
    causes = taint_causes(doubt)
    if not causes:
        return doubt
    if FOREIGN in causes:
        return _WRITTEN
    return _DISTURBED if DISTURBED & set(causes) else _HOT
