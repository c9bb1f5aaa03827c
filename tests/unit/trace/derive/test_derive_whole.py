"""Derivations of whole traces: repetition, and issue times."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batch_sizes, batches_of, made_up, read, unhurried, write

from drivelab.core.errors import UserError
from drivelab.trace.derive.issue_times import issue_times
from drivelab.trace.derive.repeat import repeat
from drivelab.trace.parquet_schema import extent

ABOUT = {"capacity_bytes": 1 << 60}


@unhurried
@given(made_up(most=8, least=1), st.integers(1, 5), st.sampled_from([None, 1 << 50]), batch_sizes)
def test_every_repetition_has_all_requests(rows: list[Row], times: int, capacity: int | None, size: int) -> None:
    with TemporaryDirectory() as name, batches_of(size):
        path = write(Path(name) / "a.parquet", rows, {"capacity_bytes": capacity})
        entry = repeat(path, Path(name) / "b.parquet", times=times, written_bytes=None)
        repeated, provenance = read(Path(name) / "b.parquet")
        once, whole = extent(path), extent(Path(name) / "b.parquet")
    assert entry["requests"] == len(repeated) == times * len(rows)
    assert entry["written_bytes"] == whole[1] == times * once[1]
    assert whole[2] == times * once[2]
    assert provenance.get("capacity_bytes") == (capacity and times * capacity)
    groups: dict[int, set[tuple[int, int | None]]] = {}
    ends = 0
    for number in range(times):
        part = repeated[number * len(rows) : (number + 1) * len(rows)]
        assert part[0].queue_ns >= ends
        ends = max(max(row.queue_ns, row.complete_ns or 0) for row in part)
        for row, before in zip(part, rows, strict=True):
            moved = number * (capacity or 0) if before.length_bytes else 0
            assert (row.operation, row.length_bytes) == (before.operation, before.length_bytes)
            assert row.offset_bytes == before.offset_bytes + moved
            assert row.queue_ns - part[0].queue_ns == before.queue_ns - rows[0].queue_ns
            assert (row.dispatch_id is None) == (before.dispatch_id is None)
            if row.dispatch_id is not None:
                groups.setdefault(row.dispatch_id, set()).add((number, before.dispatch_id))
    assert all(len(origins) == 1 for origins in groups.values()), "a dispatch belongs to one repetition"


def test_a_volume_sets_the_number_of_repetitions(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [Row(5, operation="write", length_bytes=4096)], {"capacity_bytes": 8192})
    assert repeat(path, tmp_path / "b.parquet", times=None, written_bytes=10_000)["times"] == 3
    assert extent(tmp_path / "b.parquet")[1] == 3 * 4096


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({}, "give either the number"),
        ({"times": 2, "written_bytes": 5}, "give either the number"),
        ({"times": 0}, "0 repetitions are not possible"),
        ({"written_bytes": 1}, "writes nothing, so no number"),
    ],
)
def test_impossible_repetitions_are_refused(tmp_path: Path, wanted: dict[str, int], reason: str) -> None:
    path = write(tmp_path / "a.parquet", [Row(5, operation="read")], ABOUT)
    with pytest.raises(UserError, match=reason):
        repeat(path, tmp_path / "b.parquet", **{"times": None, "written_bytes": None, **wanted})
    assert not (tmp_path / "b.parquet").exists()


def test_a_request_beyond_the_device_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.parquet", [Row(0, length_bytes=9999)], {"capacity_bytes": 8192})
    with pytest.raises(UserError, match=r"a request ends at byte 9999, beyond the device's 8192"):
        repeat(path, tmp_path / "b.parquet", times=2, written_bytes=None)
    assert not (tmp_path / "b.parquet").exists()


@unhurried
@given(made_up(most=12, least=1), batch_sizes)
def test_requests_begin_when_they_were_issued(rows: list[Row], size: int) -> None:
    expected = sorted(row.queue_ns if row.dispatch_ns is None else row.dispatch_ns for row in rows)
    with TemporaryDirectory() as name, batches_of(size):
        path = write(Path(name) / "a.parquet", rows)
        if all(row.dispatch_ns is None for row in rows):
            with pytest.raises(UserError, match="has no dispatches"):
                issue_times(path, Path(name) / "b.parquet")
            return
        entry = issue_times(path, Path(name) / "b.parquet")
        changed, provenance = read(Path(name) / "b.parquet")
        with pytest.raises(UserError, match="already begin"):
            issue_times(Path(name) / "b.parquet", Path(name) / "c.parquet")
    assert [row.queue_ns for row in changed] == expected
    assert entry["without_dispatch"] == sum(row.dispatch_ns is None for row in rows)
    assert provenance["begins"] == "issue"
    without_times = [[row._replace(queue_ns=0) for row in some] for some in (changed, rows)]
    assert sorted(map(repr, without_times[0])) == sorted(map(repr, without_times[1]))


def test_a_dispatch_before_the_queueing_is_no_issue_time(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [Row(100, 120), Row(130, 50), Row(140, 141)])
    issue_times(path, tmp_path / "b.parquet")
    assert [row.queue_ns for row in read(tmp_path / "b.parquet")[0]] == [120, 130, 141]
