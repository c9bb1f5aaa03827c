"""The replay engine's records against the kernel's tracer: the same requests, on one clock."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from whole_traces import read_trace

from drivelab.drives import target
from drivelab.plan.replay_choice import ReplayChoice, TimingChoice
from drivelab.replay import native
from drivelab.replay.engine_records import COMPLETED, make_results, open_results, open_schedule
from drivelab.replay.native import EngineOptions
from drivelab.replay.prepare import prepare
from drivelab.trace import trace_catalogue
from drivelab.trace.capturing.capture import capture
from drivelab.trace.decode import FIRST_EVENT_MONOTONIC, decode
from drivelab.trace.parquet_schema import OPERATIONS

pytestmark = [pytest.mark.device, pytest.mark.single]

Extent = tuple[str, int, int]
"""Operation, offset and length."""
CLOSE_NS = 1000
"""Between two readings of one clock."""


@pytest.mark.usefixtures("tracer_untouched", "engine_possible")
def test_the_kernel_sees_the_requests_that_the_engine_records(tmp_path: Path, device: str) -> None:
    results, raw = tmp_path / native.RESULTS, tmp_path / "raw"
    choice = ReplayChoice(TimingChoice("scaled", factor=0.2))
    with target.named(Path(device), destroy=True) as where:
        place = (where.capacity_bytes, where.logical_block_bytes)
        prepared = prepare(trace_catalogue.entry("sqlite-inserts").path, tmp_path / "made", choice, *place)
        schedule = open_schedule(prepared.schedule)
        make_results(results, schedule.header["count"], schedule.header["checksum"])
        command = native.command(where.path, where.identity, prepared.schedule, results, EngineOptions())
        report = capture(device, command, raw)
    assert (report.exit_status, report.lost) == (0, {}), (raw / "stderr").read_text()
    decode(raw, tmp_path / "captured.parquet")
    table, about = read_trace(tmp_path / "captured.parquet")

    engine = open_results(results)
    assert (engine.records["state"] == COMPLETED).all()
    seen: dict[Extent, list[tuple[int, int]]] = defaultdict(list)
    shift_ns = about[FIRST_EVENT_MONOTONIC] - engine.header["start_monotonic_ns"]
    for row in table.to_pylist():
        if row["error"] == 0 and row["operation"] in ("read", "write"):
            extent = (row["operation"], row["offset_bytes"], row["length_bytes"])
            seen[extent].append((row["queue_ns"] + shift_ns, row["complete_ns"] + shift_ns))
    recorded: dict[Extent, list[tuple[int, int]]] = defaultdict(list)
    for planned, done in zip(schedule.records, engine.records, strict=True):
        if (operation := OPERATIONS[planned["operation"]]) in ("read", "write"):
            extent = (operation, int(planned["offset_bytes"]), int(planned["length_bytes"]))
            recorded[extent].append((int(done["issue_ns"]), int(done["complete_ns"])))
    assert {extent: len(times) for extent, times in recorded.items()} == {
        extent: len(times) for extent, times in seen.items()
    }
    for extent, times in recorded.items():
        ours, kernels = np.array(sorted(times)), np.array(sorted(seen[extent]))
        assert (ours[:, 0] <= kernels[:, 0] + CLOSE_NS).all(), f"{extent}: queued before its issue"
        assert (np.sort(ours[:, 1]) >= np.sort(kernels[:, 1]) - CLOSE_NS).all(), f"{extent}: ended before its end"
