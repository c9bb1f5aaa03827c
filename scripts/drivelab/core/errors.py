"""The exception for errors that a user can correct."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from drivelab.core.terminal import visible


class UserError(Exception):
    """A message with the thing, the reason and the remedy; shown without a traceback, exit status 2.

    Control characters quoted from files become visible here, because Snakemake prints and stores the message too.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(visible(sentence))


_MOST_NAMES = 12


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return what to type instead of an unknown name: the closest known one, those that contain it, or all."""
    known = list(known)
    if close := difflib.get_close_matches(name.casefold(), known, 1):
        return f"did you mean '{close[0]}'?"
    known = [candidate for candidate in known if name.casefold() in candidate] or known
    rest = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    return f"choose one of {', '.join(known[:_MOST_NAMES])}{rest}" if known else "there are none"


class CellFailed(Exception):  # noqa: N818 (an event, as StopIteration is)
    """A cell's evidence is invalid. The message is the reason, without the cell's name."""
