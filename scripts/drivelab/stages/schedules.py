"""Schedules of a plan's traces, made before the first step: a drive recovers if it has to wait for them."""

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
    """A trace of the plan, ready for replay."""

    name: str
    sha256: str
    prepared: Prepared


class Schedules:
    """The plan's traces for each choice of its replay steps; their files exist only within the `with` block."""

    def __init__(self, plan: Plan, device: Device, recording: Recording) -> None:
        self._plan, self._device, self._recording = plan, device, recording
        self._folder = recording.part / "schedules"
        self._made: dict[str, list[Scheduled]] = {}

    def __enter__(self) -> Self:
        """Make the schedules of all replay steps; raises the UserErrors of `same_trace` and `prepare`."""
        shutil.rmtree(self._folder, ignore_errors=True)
        for step in self._plan.subject["measure"]:
            if "replay" in step:
                key = json.dumps(step["replay"]["choice"], sort_keys=True)
                if key not in self._made:
                    self._made[key] = self._make(step["replay"]["choice"], len(self._made))
        return self

    def of(self, choice: Mapping[str, Any]) -> list[Scheduled]:
        """Return the plan's traces for a choice, in the plan's order."""
        return self._made[json.dumps(choice, sort_keys=True)]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make(self, body: Mapping[str, Any], number: int) -> list[Scheduled]:
        device, folder = self._device, self._folder / str(number)
        folder.mkdir(parents=True)
        choice = self._within_range(ReplayChoice.from_mapping(body))
        schedules: list[Scheduled] = []
        for trace, path in zip(self._plan.subject["traces"], self._plan.context["trace_paths"], strict=True):
            digest = same_trace(self._recording, trace["name"], Path(path))
            stem = folder / trace["name"]
            prepared = prepare(Path(path), stem, choice, device.capacity_bytes, device.logical_block_bytes)
            schedules.append(Scheduled(trace["name"], digest, prepared))
        return schedules

    def _within_range(self, choice: ReplayChoice) -> ReplayChoice:
        """Return the choice limited to the active range of the plan's drive class."""
        share, block = self._plan.subject["class"]["active_range"], self._device.logical_block_bytes
        if share == 1:
            return choice
        range_bytes = int(self._device.capacity_bytes * share) // block * block
        return replace(choice, mapping=replace(choice.mapping, range_bytes=range_bytes))


def same_trace(recording: Recording, name: str, path: Path) -> str:
    """Return the SHA-256 of a trace; raises UserError if the recording began with a different trace of this name."""
    digest = sha256_of(path)
    lines = [line for line in recording.journal() if line.get("trace") == name]
    earlier = {line["trace_sha256"] for line in lines if "trace_sha256" in line}
    if earlier - {digest}:
        raise UserError(
            f"{path}: this is not the trace that {recording.plan.recording} began with; remove {recording.part} to "
            "restart"
        )
    return digest
