"""Telemetry in simulated time: what a drive tells of its heat and of others on its host, as real ones do."""

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
    """Samples at the cadence of real telemetry from `now_us` on, and wherever the drive stops between two cells.

    They are kept with the state that they led to. After an interruption they go on as if there had been none: what
    was told of a time that is yet to come was undone with the cell that it was told of.
    """

    def __init__(self, flash: FlashDrive, recording: Path, now_us: float) -> None:
        told = [one for one in read_lines(recording) if one["at_s"] <= _unix_s(now_us)]
        if told:
            _write(recording / NAME, told)
        self._flash, self._log = flash, Log(recording / NAME)
        self._samples: list[dict[str, float]] = []
        self._last_s = max((one["at_s"] for one in told if "event" not in one), default=-math.inf)
        begun_us = 1e6 * told[0]["at_s"] - 1e3 * EPOCH_MS if told else now_us
        self._next_us = begun_us + 1e6 * FAST_S * math.ceil((now_us - begun_us) / (1e6 * FAST_S))
        flash.before_command = self._pass
        self._log.append({"at_s": _unix_s(now_us), "event": "begin", "sources": [SOURCE]})
        self.keep(now_us)

    def keep(self, now_us: float) -> None:
        """Write the samples until now."""
        self._pass(now_us)
        if self._last_s < _unix_s(now_us):
            self._sample(now_us)
        for sample in self._samples:
            self._log.append(sample)
        self._samples = []

    def close(self, now_us: float) -> None:
        """What has not been kept is not to be."""
        self._flash.before_command = None
        self._log.append({"at_s": _unix_s(now_us), "event": "end"})
        self._log.close()

    def _pass(self, until_us: float) -> None:
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
