"""Where a simulated run ends before its time: at the slice after which a stop rule says so, as fio is interrupted."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from drivelab.fio.early_end import StopRule, note_reason
from drivelab.virtual.workload import Completion

Floats = npt.NDArray[np.float64]


class Cut:
    """What a stop rule said so far."""

    def __init__(self, rule: StopRule) -> None:
        self._rule = rule
        self._reason: str | None = None

    @property
    def made(self) -> bool:
        """Whether the run ends here."""
        return self._reason is not None

    def look(self, document: Mapping[str, Any]) -> None:
        """Ask the rule about the document at the end of a slice."""
        self._reason = self._rule(document)

    def note(self, directory: Path) -> bool:
        """Put the reason, if there is one, on record with the evidence; returns whether there is one."""
        if self._reason is not None:
            note_reason(directory, self._reason)
        return self.made


def rows_until(
    completions: Generator[Completion, bool | None, None], start_us: float, slice_us: float, cut: Cut, most: int
) -> Iterator[Floats]:
    """Completions as arrays of at most `most` rows, of which none goes beyond the end of a slice.

    The first completion of a slice is a row of its own: whoever takes it writes the document of the slice before, and
    `cut` knows. If that was the last slice, the generator is told by sending it True: nothing more is issued, and what
    is in flight completes.
    """
    rows: list[Completion] = []
    boundary_us = slice_us
    halt: bool | None = None
    while True:
        try:
            one = completions.send(halt)
        except StopIteration:
            break
        halt = None
        rows.append(one)
        elapsed_us = one[0] - start_us
        if elapsed_us > boundary_us:
            if len(rows) > 1:
                yield np.array(rows[:-1], dtype=np.float64)
            yield np.array(rows[-1:], dtype=np.float64)
            rows = []
            halt = cut.made
            while boundary_us < elapsed_us:
                boundary_us += slice_us
        elif len(rows) == most:
            yield np.array(rows, dtype=np.float64)
            rows = []
    if rows:
        yield np.array(rows, dtype=np.float64)
