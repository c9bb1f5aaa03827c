"""The file `telemetry.jsonl` of a recording: one JSON object a line, a sample or a remark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from drivelab.recording.writer import drop_half_line

NAME = "telemetry.jsonl"


class Log:
    """Appends lines, each in one write; what cannot be written is lost, telemetry must not end a measurement."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        try:
            drop_half_line(path)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            pass

    def append(self, line: Mapping[str, Any]) -> None:
        """Nothing more is written after a failure: what follows a part of a line could not be read."""
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
    """Samples of a recording, finished or not, oldest first; none if it has no telemetry.

    `at_s` is Unix time, all other fields are left out where a sample does not have them.
    """
    for line in read_lines(recording):
        if "event" not in line:
            yield line


def read_lines(recording: Path) -> Iterator[dict[str, Any]]:
    """Samples and remarks; a line that was being written when its writer was killed never was."""
    try:
        file = (recording / NAME).open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)
