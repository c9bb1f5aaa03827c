"""Schedules of a plan's traces for the drive, made before the first step: a drive recovers while one waits for them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from drivelab.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.replay.choice import ReplayChoice
from drivelab.replay.prepare import Prepared, prepare
from drivelab.stages.device import Device
from drivelab.trace.catalogue import sha256_of


@dataclass(frozen=True)
class Scheduled:
    """A trace of the plan, ready to be replayed."""

    name: str
    sha256: str
    prepared: Prepared


class Schedules:
    """The plan's traces under each choice of its replay steps; the files are gone at the end of the `with` block."""

    def __init__(self, plan: Plan, device: Device, recording: Recording) -> None:
        self._plan, self._device, self._recording = plan, device, recording
        self._folder = recording.part / "schedules"
        self._made: dict[str, list[Scheduled]] = {}

    def __enter__(self) -> Self:
        """Make those of all steps that are not done. Raises UserError as `same_trace` and `prepare` do."""
        shutil.rmtree(self._folder, ignore_errors=True)
        for step in self._plan.subject["measure"]:
            if "replay" in step:
                key = json.dumps(step["replay"]["choice"], sort_keys=True)
                if key not in self._made:
                    self._made[key] = self._make(step["replay"]["choice"], len(self._made))
        return self

    def of(self, choice: Mapping[str, Any]) -> list[Scheduled]:
        """The plan's traces, in its order."""
        return self._made[json.dumps(choice, sort_keys=True)]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self, body: Mapping[str, Any], number: int) -> list[Scheduled]:
        device, folder = self._device, self._folder / str(number)
        folder.mkdir(parents=True)
        choice = self._within_range(ReplayChoice.from_mapping(body))
        made: list[Scheduled] = []
        for one, path in zip(self._plan.subject["traces"], self._plan.context["trace_paths"], strict=True):
            digest = same_trace(self._recording, one["name"], Path(path))
            stem = folder / one["name"]
            prepared = prepare(Path(path), stem, choice, device.capacity_bytes, device.logical_block_bytes)
            made.append(Scheduled(one["name"], digest, prepared))
        return made

    def _within_range(self, choice: ReplayChoice) -> ReplayChoice:
        """The choice with the active range of the plan's class of drives."""
        share, block = self._plan.subject["class"]["active_range"], self._device.logical_block_bytes
        if share == 1:
            return choice
        range_bytes = int(self._device.capacity_bytes * share) // block * block
        return replace(choice, mapping=replace(choice.mapping, range_bytes=range_bytes))


def same_trace(recording: Recording, name: str, path: Path) -> str:
    """SHA-256 of a trace; raises UserError when a recording that goes on began with another one of that name."""
    digest = sha256_of(path)
    lines = [line for line in recording.journal() if line.get("trace") == name]
    begun = {line["trace_sha256"] for line in lines if "trace_sha256" in line}
    if begun - {digest}:
        raise UserError(
            f"{path}: is not the trace that {recording.plan.recording} began with; remove {recording.part} to begin "
            "anew"
        )
    return digest
