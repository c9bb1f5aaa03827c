"""The exception for errors that a user can correct, and failure logs of workflow scripts."""

from __future__ import annotations

import difflib
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

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


@contextmanager
def reported(log: str) -> Iterator[None]:
    """Write an exception to the job's log and exit with status 1; `drivelab run` shows the first line.

    Otherwise the job's files are on disk when it ends: Snakemake believes them, also after a loss of power.
    """
    from drivelab.core.files import sync_file_system  # it imports this module

    try:
        yield
        sync_file_system(Path(log).parent)
    except Exception as error:
        message = f"drivelab: the job of {log} failed: {error}\n{traceback.format_exc()}"
        Path(log).write_text(visible(message), encoding="utf-8")
        sys.exit(1)


class CellFailed(Exception):  # noqa: N818 (an event, as StopIteration is)
    """A cell's evidence is invalid. The message is the reason, without the cell's name."""
