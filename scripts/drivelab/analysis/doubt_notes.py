"""Collect the doubts about many values in numbered notes, each printed once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from drivelab.analysis.taint import causes, worst

_TAINTED = re.compile(r"(?P<subject>(?:.+: )?tainted) \((?P<reasons>.+)\)")
_NEXT_REASON = re.compile(r", (?=(?:foreign|throttled|steal|load): )")
DISTURBED = frozenset({"steal", "load"})
"""Causes of a taint outside the drive: others used the host."""
FOREIGN = "foreign"
"""Cause of a taint: others wrote to the drive."""


def numbered(doubts: Iterable[Sequence[str]]) -> tuple[list[tuple[int, ...]], list[str]]:
    """Return the note numbers of each value, from 1, and the notes in this order.

    `doubts` has the doubts of each value. Doubts that differ only in the size of a disturbance share a note, which
    gives the largest.
    """
    notes: dict[str, list[str]] = {}
    marks = []
    for value_doubts in doubts:
        kinds = dict.fromkeys(_kind(doubt) for doubt in value_doubts)
        for doubt in value_doubts:
            notes.setdefault(_kind(doubt), []).append(doubt)
        marks.append(tuple(sorted(list(notes).index(kind) + 1 for kind in kinds)))
    return marks, [_merged(same_kind) for same_kind in notes.values()]


def taint_causes(doubt: str) -> list[str]:
    """Return the causes of the taint that a doubt names.

    The result is empty for a doubt about something else.
    """
    match = _TAINTED.fullmatch(doubt)
    return causes(_reasons(match)) if match else []


def _kind(doubt: str) -> str:
    match = _TAINTED.fullmatch(doubt)
    return f"{match['subject']} ({', '.join(causes(_reasons(match)))})" if match else doubt


def _merged(doubts: list[str]) -> str:
    matches = [match for doubt in dict.fromkeys(doubts) if (match := _TAINTED.fullmatch(doubt))]
    if len(matches) < 2:
        return doubts[0]
    return f"{matches[0]['subject']} ({', '.join(worst(reason for match in matches for reason in _reasons(match)))})"


def _reasons(match: re.Match[str]) -> list[str]:
    return _NEXT_REASON.split(match["reasons"])
