"""The policy for overlapping requests, from a trace to a schedule."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_traces import Row
from prepared_replays import prepare_rows

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay.engine_records import MORE, open_schedule
from drivelab.replay.prepare import Prepared

ROWS = [
    Row(0, None, 50, "read", 0, 4096, "db", 1), Row(1, None, 60, "read", 4096, 4096, "backup", 2),
    Row(2, None, 55, "read", 8192, 4096, "db", 1), Row(3, None, 70, "write", 0, 8192, "backup", 2),
    Row(58, None, 90, "write", 4096, 4096, "db", 1), Row(95, None, 99, "discard", 0, 8192, "db", 1),
]  # fmt: skip


def waits_of(prepared: Prepared) -> dict[int, list[int]]:
    """Return the records that each record waits for."""
    schedule = open_schedule(prepared.schedule)
    waits = {index: [after - 1] for index, after in enumerate(schedule.records["after"].tolist()) if after}
    for index, after in schedule.further.tolist():
        assert schedule.records["flags"][index] & MORE
        waits[index].append(after - 1)
    return waits


def test_a_write_waits_for_all_reads_that_it_overlaps(tmp_path: Path) -> None:
    prepared = prepare_rows(tmp_path, ROWS, ReplayChoice(conflicts="ordered"))
    assert waits_of(prepared) == {3: [1, 0], 4: [3], 5: [4, 3]}
    assert prepared.conflicts == {"policy": "ordered", "overlapping": 2, "waiting": 3}


def test_conflicts_come_after_the_dependency_of_the_process(tmp_path: Path) -> None:
    prepared = prepare_rows(tmp_path, ROWS, ReplayChoice(dependencies="process", conflicts="ordered"))
    assert waits_of(prepared) == {3: [1, 0], 4: [2, 3], 5: [4, 3]}
    assert open_schedule(prepared.schedule).records["think_ns"].tolist() == [0, 0, 0, 0, 3, 5]


def test_overlaps_are_counted_in_any_case(tmp_path: Path) -> None:
    prepared = prepare_rows(tmp_path, ROWS)
    assert prepared.conflicts == {"policy": "as-traced", "overlapping": 2, "waiting": 0}
    assert waits_of(prepared) == {}
    prepared = prepare_rows(tmp_path, [Row(0), Row(0, operation="write")], ReplayChoice(conflicts="ordered"))
    assert prepared.conflicts == {"policy": "ordered", "overlapping": None, "waiting": 1}


def test_refused_overlaps_are_counted_and_named(tmp_path: Path) -> None:
    refused = ReplayChoice(conflicts="refused")
    with pytest.raises(UserError, match=r"2 requests of the trace overlap .*: 8KiB at 0 B, 0.000000 s; 4KiB at 4096"):
        prepare_rows(tmp_path, ROWS, refused)
    assert not (tmp_path / "made.schedule").exists()
    with pytest.raises(UserError, match="no completions, so it does not show which requests overlap"):
        prepare_rows(tmp_path, [Row(0), Row(5)], refused)
    assert prepare_rows(tmp_path, [*ROWS[:3], ROWS[5]], refused).conflicts["overlapping"] == 0
