"""Requests as dispatched to the drive, from queued requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batch_sizes, batches_of, made_up, unhurried
from prepared_replays import write_rows

from drivelab.replay.prepare import Dispatched
from drivelab.trace.parquet_schema import open_trace

COLUMNS = ("queue_ns", "complete_ns", "operation", "offset_bytes", "length_bytes", "process", "pid", "fua")
Found = tuple[int, int | None, str, int, int]


def dispatched(path: Path) -> tuple[list[Found], int]:
    with open_trace(path) as trace:
        requests = Dispatched(trace)
        rows = [row for batch in requests.batches(COLUMNS) for row in batch.to_pylist()]
        assert all(batch.num_rows for batch in requests.batches(["queue_ns"]))
        return [tuple(row[name] for name in COLUMNS[:5]) for row in rows], trace.rows - len(rows)


def expected(rows: list[Row], pieces: list[int]) -> list[Found]:
    """Merge row by row: adjoining parts of a dispatch become one."""
    whole: list[tuple[int, int, int | None, str, int, int]] = []
    groups: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for number, (row, count) in enumerate(zip(rows, pieces, strict=True)):
        complete = row.complete_ns
        if row.dispatch_id is None or count != 1 or not row.length_bytes or row.flags:
            whole.append((row.queue_ns, number, complete, row.operation, row.offset_bytes, row.length_bytes))
        else:
            groups.setdefault((row.dispatch_id, row.operation), []).append((row.offset_bytes, number))
    for members in groups.values():
        members.sort()
        run: list[int] = []
        for offset, number in members:
            if run and offset != rows[run[-1]].offset_bytes + rows[run[-1]].length_bytes:
                whole.append(_joined(rows, run))
                run = []
            run.append(number)
        whole.append(_joined(rows, run))
    return [(queue, *rest) for queue, _, *rest in sorted(whole, key=lambda request: request[:2])]  # type: ignore[misc]


def _joined(rows: list[Row], run: list[int]) -> tuple[int, int, int | None, str, int, int]:
    first = min(run)
    ends = [rows[number].complete_ns for number in run]
    last = max((end for end in ends if end is not None), default=None)
    length = sum(rows[number].length_bytes for number in run)
    return rows[first].queue_ns, first, last, rows[first].operation, rows[run[0]].offset_bytes, length


def test_merged_requests_are_one_at_the_place_of_the_first(tmp_path: Path) -> None:
    rows = [
        Row(1000, 9000, 20_000, "write", 4096, 4096, "db", 7, 0),
        Row(2000, 9000, 25_000, "write", 8192, 4096, "x", 8, 0),
        Row(3000, 9000, 20_000, "write", 0, 4096, "x", 8, 0), Row(4000, 9000, 21_000, "write", 65536, 4096, "x", 8, 1),
        Row(5000, 9000, 22_000, "read", 12288, 4096, "x", 8, 2), Row(6000, None, None, "write", 12288, 4096, "x", 8),
        Row(7000, 9000, 9500, "write", 16384, 4096, "x", 8, 0, ("fua",)),
    ]  # fmt: skip
    path = write_rows(tmp_path / "t.parquet", rows)
    requests, merged = dispatched(path)
    assert requests == [
        (1000, 25_000, "write", 0, 12288), (4000, 21_000, "write", 65536, 4096), (5000, 22_000, "read", 12288, 4096),
        (6000, None, "write", 12288, 4096), (7000, 9500, "write", 16384, 4096),
    ]  # fmt: skip
    assert merged == 2
    with open_trace(path) as trace:
        first = next(Dispatched(trace).batches(COLUMNS)).to_pylist()[0]
    assert (first["process"], first["pid"]) == ("db", 7)


def test_numbers_that_share_a_place_are_not_merged(tmp_path: Path) -> None:
    """A bit per place only chooses candidates: places are numbers modulo a power of two."""
    rows = [
        Row(at, 9000, 20_000, "write", 4096 * at, 4096, "db", 7, 5 + at * (1 << 40) if at < 3 else 5) for at in range(4)
    ]
    path = write_rows(tmp_path / "t.parquet", rows)
    assert [row[2:] for row in dispatched(path)[0]] == [("write", 4096 * at, 4096) for at in range(4)]
    rows[3] = rows[3]._replace(offset_bytes=4096)
    requests, merged = dispatched(write_rows(tmp_path / "merged.parquet", rows))
    assert (requests[0], merged) == ((0, 20_000, "write", 0, 8192), 1)


@unhurried
@given(made_up(), st.data(), batch_sizes)
def test_merging_agrees_with_a_simple_reference(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row], data: st.DataObject, size: int
) -> None:
    pieces = [data.draw(st.sampled_from([1, 1, 1, 2])) for _ in rows]
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    with batches_of(size):
        write_rows(path, rows, pieces=pieces)
        requests, merged = dispatched(path)
    assert requests == expected(rows, pieces)
    assert merged == len(rows) - len(requests)
