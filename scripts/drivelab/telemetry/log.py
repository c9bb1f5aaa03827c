"""Write and read `telemetry.jsonl`, whose lines are samples and remarks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.recording.writer import drop_half_line

NAME = "telemetry.jsonl"


class Log:
    """Append lines, each in one write.

    Failed writes are ignored: telemetry must not end a measurement.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        try:
            drop_half_line(path)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            pass

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a line; write nothing after a failure, which may leave a partial line."""
        if self._descriptor is None:
            return
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            written = os.write(self._descriptor, data)
        except OSError:
            written = 0
        if written < len(data):
            self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_samples(recording: Path) -> Iterator[dict[str, float]]:
    """Yield the samples of a recording, finished or not, oldest first.

    The result is none without telemetry. `at_s` is Unix time. A sample has only the fields that were read.
    """
    for line in read_lines(recording):
        if "event" not in line:
            yield line


def read_lines(recording: Path) -> Iterator[dict[str, Any]]:
    """Yield samples and remarks, without an incomplete last line."""
    try:
        file = (recording / NAME).open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


FAST_S = 1.0
SLOW_S = 10.0
"""Period of sources that start a program or send the drive a command that delays others."""


@dataclass(frozen=True)
class Source:
    """A source that is read repeatedly during a measurement."""

    name: str
    read: Callable[[], dict[str, float]]
    """Return values by field, with units in the field names; fields without a value are left out.

    Raises any exception on failure.
    """
    period_s: float | None = FAST_S
    """Seconds between readings; None: only at the start and end of a measurement."""
    prompt: bool = False
    """Whether it answers from the kernel's memory within microseconds, independent of the drive; such sources are also
    read at the edges of every cell."""


def number_in(path: Path) -> float:
    """Return the number in a small file; raises OSError or ValueError."""
    return float(path.read_text())
