"""Telemetry in simulated time: a drive's heat and its neighbours on the host, in the form of real telemetry."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from drivelab.telemetry.log import NAME, Log, read_lines
from drivelab.telemetry.source import FAST_S
from drivelab.virtual.evidence import EPOCH_MS
from drivelab.virtual.ftl import FlashDrive

SOURCE = "virtual clock"


class Telemetry:
    """Samples from `now_us` on, at the interval of real telemetry and at the end of each cell.

    Samples are written together with the state of the drive. After an interruption, samples later than the restored
    state are removed, because the cell that they belong to was undone. Sampling then continues without a gap.
    """

    def __init__(self, flash: FlashDrive, recording: Path, now_us: float) -> None:
        lines = [line for line in read_lines(recording) if line["at_s"] <= _unix_s(now_us)]
        if lines:
            _write(recording / NAME, lines)
        self._flash, self._log = flash, Log(recording / NAME)
        self._samples: list[dict[str, float]] = []
        self._last_s = max((line["at_s"] for line in lines if "event" not in line), default=-math.inf)
        begin_us = 1e6 * lines[0]["at_s"] - 1e3 * EPOCH_MS if lines else now_us
        self._next_us = begin_us + 1e6 * FAST_S * math.ceil((now_us - begin_us) / (1e6 * FAST_S))
        flash.before_command = self._sample_until
        self._log.append({"at_s": _unix_s(now_us), "event": "begin", "sources": [SOURCE]})
        self.keep(now_us)

    def keep(self, now_us: float) -> None:
        """Write the samples until now."""
        self._sample_until(now_us)
        if self._last_s < _unix_s(now_us):
            self._sample(now_us)
        for sample in self._samples:
            self._log.append(sample)
        self._samples = []

    def close(self, now_us: float) -> None:
        """End the telemetry; drop the samples that were not written, because their work is undone."""
        self._flash.before_command = None
        self._log.append({"at_s": _unix_s(now_us), "event": "end"})
        self._log.close()

    def _sample_until(self, until_us: float) -> None:
        while self._next_us <= until_us:
            if self._last_s < _unix_s(self._next_us):
                self._sample(self._next_us)
            self._next_us += 1e6 * FAST_S

    def _sample(self, at_us: float) -> None:
        self._last_s = _unix_s(at_us)
        self._samples.append({"at_s": self._last_s, **self._flash.told(at_us)})


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    part = path.with_name(f".{path.name}.part")
    part.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    part.replace(path)


def _unix_s(at_us: float) -> float:
    return round(EPOCH_MS / 1000 + at_us / 1e6, 6)
