"""End a simulated run early, at the slice after which a stop rule applies, as drivelab interrupts fio."""

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
    """The answers of a stop rule so far."""

    def __init__(self, rule: StopRule) -> None:
        self._rule = rule
        self._reason: str | None = None

    @property
    def reached(self) -> bool:
        """Whether the run ends here."""
        return self._reason is not None

    def apply(self, document: Mapping[str, Any]) -> None:
        """Apply the rule to the document at the end of a slice."""
        self._reason = self._rule(document)

    def note(self, directory: Path) -> bool:
        """Record the reason, if any, with the evidence; return whether there is one."""
        if self._reason is not None:
            note_reason(directory, self._reason)
        return self.reached


def rows_until(
    completions: Generator[Completion, bool | None, None], start_us: float, slice_us: float, cut: Cut, most: int
) -> Iterator[Floats]:
    """Yield completions as arrays of at most `most` rows; no array crosses the end of a slice.

    The first completion of a slice is a separate array. Its consumer writes the document of the slice before and
    applies `cut` to it. If that was the last slice, this function sends True to the generator: no more I/O is issued,
    and I/Os in flight complete.
    """
    rows: list[Completion] = []
    boundary_us = slice_us
    halt: bool | None = None
    while True:
        try:
            completion = completions.send(halt)
        except StopIteration:
            break
        halt = None
        rows.append(completion)
        elapsed_us = completion[0] - start_us
        if elapsed_us > boundary_us:
            if len(rows) > 1:
                yield np.array(rows[:-1], dtype=np.float64)
            yield np.array(rows[-1:], dtype=np.float64)
            rows = []
            halt = cut.reached
            while boundary_us < elapsed_us:
                boundary_us += slice_us
        elif len(rows) == most:
            yield np.array(rows, dtype=np.float64)
            rows = []
    if rows:
        yield np.array(rows, dtype=np.float64)
