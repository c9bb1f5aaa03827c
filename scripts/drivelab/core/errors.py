"""The exception for errors that a user can correct, and failure logs of workflow scripts."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.core.terminal import visible


class UserError(Exception):
    """A message with the thing, the reason and the remedy; shown without a traceback, exit status 2.

    Control characters quoted from files become visible here, because Snakemake prints and stores the message too.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(visible(sentence))


@contextmanager
def reported(log: str) -> Iterator[None]:
    """Write an exception to the job's log and exit with status 1; `drivelab run` shows the first line."""
    try:
        yield
    except Exception as error:
        message = f"drivelab: the job of {log} failed: {error}\n{traceback.format_exc()}"
        Path(log).write_text(visible(message), encoding="utf-8")
        sys.exit(1)


class CellFailed(Exception):  # noqa: N818 (an event, as StopIteration is)
    """A cell's evidence is invalid.

    The message is the reason, without the cell's name.
    """
