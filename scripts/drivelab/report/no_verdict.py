"""Why headline comparisons came to no verdict, in few words, and what would help."""

from __future__ import annotations

from collections import Counter

from drivelab.analysis.delta_doubts import PRINTED
from drivelab.analysis.doubt_notes import DISTURBED, FOREIGN, taint_causes
from drivelab.report.inputs import Row
from drivelab.report.outcome import whys

_MOST_REASONS = 3
_DISTURBED = "the host was disturbed"
_HOT = "a drive was too hot"
_WRITTEN = "others wrote to a drive"
_REMEDIES = {
    _WRITTEN: "with nothing else that writes to the drives",
    _DISTURBED: "on an idle host",
    _HOT: "with better cooling",
}


def why_in_doubt(deltas: list[Row]) -> str:
    """What speaks against the values of comparisons, each with their number where it is not all of them."""
    found = _counted(deltas).most_common(_MOST_REASONS)
    return "; ".join(words if count == len(deltas) else f"{words} (in {count})" for words, count in found)


def remedy(deltas: list[Row]) -> str:
    """A sentence on what to do about it, behind a space; empty where nothing is known to help."""
    found = _counted(deltas)
    told = [words for reason, words in _REMEDIES.items() if reason in found]
    return f" Repeat the measurement {' and '.join(told)}." if told else ""


def _counted(deltas: list[Row]) -> Counter[str]:
    return Counter(words for row in deltas for words in dict.fromkeys(map(_in_short, whys(row))))


def why_not_tested(deltas: list[Row]) -> str:
    """How many values there are, and the reasons why nothing can be said of how they scatter."""
    reasons = Counter(str(part) for row in deltas for part in row["doubts"])
    if reasons and all(PRINTED in one for one in reasons):
        return f"{len(deltas)} printed value{'s' if len(deltas) > 1 else ''}, whose scatter is not known"
    told = f" ({why_in_doubt(deltas)})" if reasons else ""
    return f"none of {len(deltas)} headline comparisons could be tested{told}"


def _in_short(doubt: str) -> str:
    causes = taint_causes(doubt)
    if not causes:
        return doubt
    if FOREIGN in causes:
        return _WRITTEN
    return _DISTURBED if DISTURBED & set(causes) else _HOT
