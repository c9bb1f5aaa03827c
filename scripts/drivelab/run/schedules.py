"""Schedules of a plan's traces, made before the first step: a drive recovers if it has to wait for them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from drivelab.core.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.recording.writer import Recording
from drivelab.run.device import Device
from drivelab.trace.trace_catalogue import sha256_of

if TYPE_CHECKING:
    from drivelab.replay.prepare import Prepared


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
        from drivelab.replay.prepare import prepare  # imports pandas, which loops and soaks do not need

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


_OF_A_STREAM = ["operation", "length_bytes", "sequential"]


def cells_of_trace(streams: Mapping[str, Any], trace: Path, logical_block_bytes: int) -> list[dict[str, Any]]:
    """Return a loop's cells, in the form of a plan.

    `streams` is the field of the plan's loop. There is one cell for each stream, the most frequent first, at each
    number of threads and queue depth. Raises UserError if the file is not a valid trace, or if no request reads or
    writes.
    """
    workloads = most_frequent(trace, int(streams["most"]), logical_block_bytes)
    return [
        Cell(
            **workload,
            threads=threads,
            queue_depth=queue_depth,
            runtime_s=streams["runtime_s"],
            range_share=streams["range_share"],
        ).to_mapping()
        for threads in streams["threads"]
        for queue_depth in streams["queue_depth"]
        for workload in workloads
    ]


def most_frequent(trace: Path, most: int, logical_block_bytes: int) -> list[dict[str, Any]]:
    """Return the fields of a cell for each of up to `most` streams, most frequent first.

    Lengths are rounded up to the drive's logical block; streams that then are equal are merged.
    """
    from drivelab.trace.statistics.requests import opened  # imports duckdb and pyarrow, which are slow
    from drivelab.trace.statistics.streams import streams

    with opened(trace) as requests:
        frame = streams(*requests.kinds)
    if frame.empty:
        raise UserError(f"{trace}: no request reads or writes, so the trace has no streams; choose another trace")
    frame["length_bytes"] = -(-frame["length_bytes"] // logical_block_bytes) * logical_block_bytes
    frame = frame.groupby(_OF_A_STREAM, as_index=False)["requests"].sum()
    frame = frame.sort_values(["requests", *_OF_A_STREAM], ascending=[False, True, True, True]).head(most)
    return [
        {
            "pattern": "sequential" if row.sequential else "random",
            "read_share": 100 if row.operation == "read" else 0,
            "block_size_bytes": int(row.length_bytes),
        }
        for row in frame.itertuples()
    ]
