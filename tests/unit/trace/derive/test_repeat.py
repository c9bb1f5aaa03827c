"""Repetition of whole traces."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batch_sizes, batches_of, made_up, read, unhurried, write

from drivelab.core.errors import UserError
from drivelab.trace.derive.filter import Filter, filter_trace
from drivelab.trace.parquet_schema import extent


@unhurried
@given(made_up(most=8, least=1), st.integers(1, 5), st.sampled_from([None, 1 << 50]), batch_sizes)
def test_every_repetition_has_all_requests(rows: list[Row], times: int, capacity: int | None, size: int) -> None:
    with TemporaryDirectory() as name, batches_of(size):
        path = write(Path(name) / "a.parquet", rows, {"capacity_bytes": capacity})
        entry = filter_trace(path, Path(name) / "b.parquet", Filter(times=times))
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
    assert filter_trace(path, tmp_path / "b.parquet", Filter(written_bytes=10_000))["times"] == 3
    assert extent(tmp_path / "b.parquet")[1] == 3 * 4096


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        (Filter(times=0), "0 repetitions are not possible"),
        (Filter(written_bytes=1), "writes nothing, so no number"),
        (Filter(times=2), "a request ends at byte 9999, beyond the device's 8192"),
    ],
)
def test_impossible_repetitions_are_refused(tmp_path: Path, chosen: Filter, reason: str) -> None:
    path = write(tmp_path / "a.parquet", [Row(5, operation="read", length_bytes=9999)], {"capacity_bytes": 8192})
    with pytest.raises(UserError, match=reason):
        filter_trace(path, tmp_path / "b.parquet", chosen)
    assert not (tmp_path / "b.parquet").exists()
