"""The one exception for mistakes that a user can mend, and how scripts of the workflow tell of failures."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.terminal import visible


class UserError(Exception):
    """One sentence that names the thing, the reason and the remedy; shown without a traceback, exit status 2.

    What it quotes from files is made visible here: Snakemake prints and stores it, too.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(visible(sentence))


@contextmanager
def reported(log: str) -> Iterator[None]:
    """Write what goes wrong to a job's log, first in one line, which `drivelab run` shows, and end with status 1."""
    try:
        yield
    except Exception as error:
        words = f"drivelab: the job of {log} failed: {error}\n{traceback.format_exc()}"
        Path(log).write_text(visible(words), encoding="utf-8")
        sys.exit(1)
