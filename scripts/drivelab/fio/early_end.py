"""Interrupt fio early, when a rule for its status documents says so.

fio 3.33 treats SIGINT like SIGTERM: it issues no more I/Os, waits for those in flight, and prints a line and a last
document in which every I/O has its latency. It ends with status 128 (backend.c, sig_int). Other processes can send that
signal too. Therefore drivelab records its reason before it sends the signal; without the record the end is foreign.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed

Completion = tuple[float, float, int, int]
"""Time of completion and of submission in microseconds, place in OPERATIONS, length in bytes. With several workloads
that their directions do not identify, the place is greater by `len(OPERATIONS)` for each workload before this one."""
OPERATIONS = ("write", "read", "trim")


StopRule = Callable[[Mapping[str, Any]], str | None]
"""Called with each status document in order; returns the reason to end the run, or None."""
INTERRUPTED = 128
"""Exit status of an interrupted fio."""
_REASON = "ended_by"
_FAREWELL = "\nfio: terminating on signal 2\n"
_END = b"\n}\n"
"""Only a whole document ends with a brace at the beginning of a line."""


def note_reason(directory: Path, reason: str) -> None:
    """Record in `directory`, beside the evidence, why drivelab ends the run."""
    (directory / _REASON).write_text(f"{reason}\n", encoding="utf-8")


def ended_early(directory: Path) -> str | None:
    """Return why drivelab ended the run in `directory`. Return None if it ended by itself or was killed."""
    try:
        status = int((directory / "exit_code").read_text())
        reason = (directory / _REASON).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return reason if status == INTERRUPTED else None


def without_farewell(text: str) -> str:
    """Return fio's output without the line about SIGINT between the documents."""
    return text.replace(_FAREWELL, "", 1)


class StatusDocuments:
    """Reader of a running fio's status documents; it reads every byte once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._rest = bytearray()
        self._searched = 0

    def new(self) -> Iterator[dict[str, Any]]:
        """Yield the documents completed since the last call.

        The result is empty while the file does not exist. Raises CellFailed for invalid JSON.
        """
        self._read()
        while (end := self._rest.find(_END, max(self._searched - len(_END), 0))) >= 0:
            text = bytes(self._rest[: end + len(_END)])
            del self._rest[: end + len(_END)]
            self._searched = 0
            begin = text.find(b"{")  # messages of fio may precede it
            try:
                yield json.loads(text[begin:])
            except ValueError:
                raise CellFailed("fio's JSON is damaged") from None
        self._searched = len(self._rest)

    def _read(self) -> None:
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                added = file.read()
        except FileNotFoundError:
            return
        self._position += len(added)
        self._rest += added


class EarlyEnd:
    """Apply a stop rule to fio's status documents."""

    def __init__(self, directory: Path, rule: StopRule) -> None:
        self._directory, self._rule = directory, rule
        self._documents = StatusDocuments(directory / "fio.json")

    def due(self) -> bool:
        """Return whether to end the run now; if so, the reason is recorded."""
        for document in self._documents.new():
            reason = self._rule(document)
            if reason is not None:
                note_reason(self._directory, reason)
                return True
        return False


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
) -> Iterator[list[Completion]]:
    """Yield at most `most` completions at a time, which never cross the end of a slice.

    The first completion of a slice comes alone. Its consumer writes the document of the slice before and
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
                yield rows[:-1]
            yield rows[-1:]
            rows = []
            halt = cut.reached
            while boundary_us < elapsed_us:
                boundary_us += slice_us
        elif len(rows) == most:
            yield rows
            rows = []
    if rows:
        yield rows
