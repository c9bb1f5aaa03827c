"""The end of a run before its time: drivelab looks at fio's status documents as they come, and interrupts fio.

fio 3.33 answers SIGINT as it answers SIGTERM: it issues nothing more, waits for what is in flight, prints a line and a
last document in which every I/O has its latency, and ends with status 128 (backend.c, sig_int). That anybody can bring
about; only with the reason that is noted before the signal is sent is it the end that was wanted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from drivelab.fio.document import CellFailed

StopRule = Callable[[Mapping[str, Any]], str | None]
"""Asked of each status document, in their order: the reason to end the run here, or None."""
INTERRUPTED = 128
"""Exit status of a fio that was interrupted."""
_REASON = "ended_by"
_FAREWELL = "\nfio: terminating on signal 2\n"
_END = b"\n}\n"
"""Only a whole document ends with a brace at the beginning of a line."""


def note_reason(directory: Path, reason: str) -> None:
    """Put on record, with the evidence in `directory`, why its run is ended now."""
    (directory / _REASON).write_text(f"{reason}\n", encoding="utf-8")


def ended_early(directory: Path) -> str | None:
    """Why drivelab ended the run whose evidence is in `directory`; None of one that ended by itself or was killed."""
    try:
        status = int((directory / "exit_code").read_text())
        reason = (directory / _REASON).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return reason if status == INTERRUPTED else None


def without_farewell(text: str) -> str:
    """fio's output without what it says on SIGINT, which goes in between the documents."""
    return text.replace(_FAREWELL, "", 1)


class StatusDocuments:
    """The status documents of a fio that is running, each once; what was read before is not read again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._rest = bytearray()
        self._searched = 0

    def new(self) -> Iterator[dict[str, Any]]:
        """Those that were printed whole since the last call; none while there is no file.

        Raises CellFailed for what is no JSON.
        """
        self._read()
        while (end := self._rest.find(_END, max(self._searched - len(_END), 0))) >= 0:
            text = bytes(self._rest[: end + len(_END)])
            del self._rest[: end + len(_END)]
            self._searched = 0
            begin = text.find(b"{")  # before it may stand what fio has to say
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
    """Asks a stop rule about what fio has printed so far."""

    def __init__(self, directory: Path, rule: StopRule) -> None:
        self._directory, self._rule = directory, rule
        self._documents = StatusDocuments(directory / "fio.json")

    def due(self) -> bool:
        """Whether the run is to be ended now; the reason is on record then."""
        for document in self._documents.new():
            reason = self._rule(document)
            if reason is not None:
                note_reason(self._directory, reason)
                return True
        return False
