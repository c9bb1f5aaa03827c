"""The doubts about many values in few notes: each said once, and numbered, instead of beside every value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from drivelab.analysis.taint import causes, worst

_TAINTED = re.compile(r"(?P<who>(?:.+: )?tainted) \((?P<reasons>.+)\)")
_NEXT_REASON = re.compile(r", (?=(?:foreign|throttled|steal|load): )")
DISTURBED = frozenset({"steal", "load"})
"""Causes of a taint that are not of the drive: others used the host."""
FOREIGN = "foreign"
"""Cause of a taint: others wrote to the drive."""


def numbered(doubts: Iterable[Sequence[str]]) -> tuple[list[tuple[int, ...]], list[str]]:
    """For the doubts of each value the numbers of their notes, from 1, and the notes in the order of these.

    Doubts that differ in the size of a disturbance alone share a note, which tells the largest.
    """
    notes: dict[str, list[str]] = {}
    marks = []
    for of_value in doubts:
        kinds = dict.fromkeys(_kind(doubt) for doubt in of_value)
        for doubt in of_value:
            notes.setdefault(_kind(doubt), []).append(doubt)
        marks.append(tuple(sorted(list(notes).index(kind) + 1 for kind in kinds)))
    return marks, [_one_for(found) for found in notes.values()]


def taint_causes(doubt: str) -> list[str]:
    """Causes of the taint that a doubt is about; none where it is about something else."""
    found = _TAINTED.fullmatch(doubt)
    return causes(_reasons(found)) if found else []


def _kind(doubt: str) -> str:
    found = _TAINTED.fullmatch(doubt)
    return f"{found['who']} ({', '.join(causes(_reasons(found)))})" if found else doubt


def _one_for(doubts: list[str]) -> str:
    found = [match for doubt in dict.fromkeys(doubts) if (match := _TAINTED.fullmatch(doubt))]
    if len(found) < 2:
        return doubts[0]
    return f"{found[0]['who']} ({', '.join(worst(one for match in found for one in _reasons(match)))})"


def _reasons(found: re.Match[str]) -> list[str]:
    return _NEXT_REASON.split(found["reasons"])
