"""Write and read `telemetry.jsonl`, whose lines are samples and remarks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
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
