"""Merging of traces."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batch_sizes, batches_of, made_up, read, unhurried, write

from drivelab.core.errors import UserError
from drivelab.trace.derive.cut import Cut, DropIdle
from drivelab.trace.derive.groups import moment
from drivelab.trace.derive.merge import merge
from drivelab.trace.derive.output import derive
from drivelab.trace.parquet_schema import open_trace


def without_id(row: Row) -> Row:
    return row._replace(dispatch_id=None)


@unhurried
@given(st.lists(made_up(most=8, least=0), min_size=2, max_size=4), batch_sizes)
def test_every_row_is_merged_once_in_order_for_any_batches(traces: list[list[Row]], size: int) -> None:
    traces[0] = traces[0] or [Row(3)]
    expected = sorted((row.queue_ns, number, place) for number, rows in enumerate(traces)
                      for place, row in enumerate(rows))  # fmt: skip
    with TemporaryDirectory() as name, batches_of(size):
        paths = [write(Path(name) / f"{number}.parquet", rows) for number, rows in enumerate(traces)]
        entry = merge(paths, Path(name) / "all.parquet")
        merged = read(Path(name) / "all.parquet")[0]
    assert list(map(without_id, merged)) == [without_id(traces[number][place]) for _, number, place in expected]
    assert entry["requests"] == len(merged) == sum(map(len, traces))
    groups: dict[int, set[tuple[int, int | None]]] = {}
    for row, (_, number, place) in zip(merged, expected, strict=True):
        before = traces[number][place].dispatch_id
        assert (row.dispatch_id is None) == (before is None)
        if row.dispatch_id is not None:
            groups.setdefault(row.dispatch_id, set()).add((number, before))
    assert all(len(origins) == 1 for origins in groups.values()), "a dispatch belongs to one trace"
    assert len(groups) == sum(len({row.dispatch_id for row in rows} - {None}) for rows in traces)


def test_rows_at_equal_times_stay_in_source_order(tmp_path: Path) -> None:
    with batches_of(2):
        a = write(tmp_path / "a.parquet", [Row(5, pid=number) for number in range(7)])
        b = write(tmp_path / "b.parquet", [Row(5, pid=10 + number) for number in range(5)] + [Row(6, pid=20)])
        merge([a, b], tmp_path / "c.parquet")
        pids = [row.pid for row in read(tmp_path / "c.parquet")[0]]
    assert pids == [*range(7), *range(10, 15), 20]


ABOUT: list[dict[str, Any]] = [
    {"first_event": "2026-01-02T03:04:07.000000003+00:00", "capacity_bytes": 8192, "kernel": "6.1", "title": "one",
     "lost": {"overrun": 2}, "unmatched": {"completions": 1}, "malformed": 4, "events": 7, "duration_s": 1.0},
    {"first_event": "2026-01-02T03:04:05Z", "capacity_bytes": 16384, "kernel": "6.1", "name": "two",
     "lost": {"overrun": 1, "dropped": 5}, "time_resolution_ns": 1000},
]  # fmt: skip


@pytest.fixture
def pair(tmp_path: Path) -> list[Path]:
    rows = [Row(0, 1, 2, offset_bytes=4096), Row(10, 11, 12, "flush", 0, 0)]
    return [write(tmp_path / f"{name}.parquet", rows, about) for name, about in zip("ab", ABOUT, strict=True)]


def test_by_the_wall_clock(pair: list[Path], tmp_path: Path) -> None:
    entry = merge(pair, tmp_path / "c.parquet", at="wall-clock")
    rows, provenance = read(tmp_path / "c.parquet")
    later = 2 * 10**9 + 3
    assert [row.queue_ns for row in rows] == [0, 10, later, later + 10]
    assert [row.complete_ns for row in rows] == [2, 12, later + 2, later + 12]
    assert provenance["first_event"] == "2026-01-02T03:04:05.000+00:00"
    assert [source["shift_ns"] for source in entry["sources"]] == [later, 0]


def test_side_by_side(pair: list[Path], tmp_path: Path) -> None:
    merge(pair, tmp_path / "c.parquet", place="side-by-side")
    rows, provenance = read(tmp_path / "c.parquet")
    assert [row.offset_bytes for row in rows] == [4096, 8192 + 4096, 0, 0], "an empty flush keeps offset 0"
    assert provenance["capacity_bytes"] == 24576
    assert not provenance["derived"][0]["different_devices_share_offsets"]


def test_losses_of_the_sources_are_summed(pair: list[Path], tmp_path: Path) -> None:
    derive(pair[1], tmp_path / "cut.parquet", Cut(5, None))
    merge([pair[0], tmp_path / "cut.parquet"], tmp_path / "c.parquet")
    provenance = read(tmp_path / "c.parquet")[1]
    assert provenance["lost"] == {"dropped": 5, "overrun": 3}
    assert provenance["unmatched"] == {"completions": 1}
    assert provenance["malformed"] == 4
    assert provenance["time_resolution_ns"] == 1000
    assert provenance["capacity_bytes"] == 16384
    assert provenance["kernel"] == "6.1"
    assert provenance["title"] == "merged: one, two"
    assert not provenance.keys() & {"first_event", "name", "events", "duration_s"}
    (entry,) = provenance["derived"]
    assert entry["different_devices_share_offsets"]
    assert [source["lost"] for source in entry["sources"]] == [ABOUT[0]["lost"], ABOUT[1]["lost"]]
    assert [step["step"] for step in entry["sources"][1]["derived"]] == ["cut"]
    assert entry["sources"][0]["events"] == 7


def test_traces_that_cannot_be_placed_are_refused(pair: list[Path], tmp_path: Path) -> None:
    bare = write(tmp_path / "bare.parquet", [Row(0)])
    with pytest.raises(UserError, match=r"bare\.parquet: does not record its start"):
        merge([pair[0], bare], tmp_path / "c.parquet", at="wall-clock")
    with pytest.raises(UserError, match=r"bare\.parquet: does not record its device's capacity"):
        merge([pair[0], bare], tmp_path / "c.parquet", place="side-by-side")
    odd = write(tmp_path / "odd.parquet", [Row(0, length_bytes=9999)], {**ABOUT[0], "first_event": "noon"})
    with pytest.raises(UserError, match=r"a request ends at byte 9999, beyond the device's 8192"):
        merge([odd, pair[0]], tmp_path / "c.parquet", place="side-by-side")
    with pytest.raises(UserError, match=r"its start 'noon' is not a date and time"):
        merge([odd, pair[0]], tmp_path / "c.parquet", at="wall-clock")
    derive(pair[0], tmp_path / "short.parquet", DropIdle(1))
    with pytest.raises(UserError, match="idle time was removed"):
        merge([tmp_path / "short.parquet", pair[1]], tmp_path / "c.parquet", at="wall-clock")
    assert not (tmp_path / "c.parquet").exists()


def test_invalid_merges_are_refused(pair: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="would be lost"):
        merge(pair, pair[1])
    with pytest.raises(UserError, match="1 traces cannot be merged"):
        merge(pair[:1], tmp_path / "c.parquet")
    with pytest.raises(UserError, match="the trace does not exist"):
        merge([pair[0], tmp_path / "absent.parquet"], tmp_path / "c.parquet")
    empty = write(tmp_path / "empty.parquet", [])
    with pytest.raises(UserError, match="no request is left"):
        merge([empty, empty], tmp_path / "c.parquet")
    with pytest.raises(UserError, match="not in the order"):
        merge([pair[0], write(tmp_path / "wild.parquet", [Row(4), Row(3)])], tmp_path / "c.parquet")
    assert not (tmp_path / "c.parquet").exists()


def test_each_trace_can_stay_a_volume_of_the_name_of_its_file(pair: list[Path], tmp_path: Path) -> None:
    entry = merge(pair, tmp_path / "c.parquet", place="volumes")
    with open_trace(tmp_path / "c.parquet", several=True) as trace:
        rows = pa.Table.from_batches(trace.batches()).to_pylist()
        volumes, provenance = trace.volumes, trace.provenance
    later = 2 * 10**9 + 3
    assert [(row["volume"], row["queue_ns"], row["offset_bytes"]) for row in rows] == [
        ("b", 0, 4096), ("b", 10, 0), ("a", later, 4096), ("a", later + 10, 0)
    ]  # fmt: skip
    assert volumes == {"a": 2, "b": 2}
    assert "capacity_bytes" not in provenance
    assert not entry["different_devices_share_offsets"]
    assert [source["as_volume"] for source in entry["sources"]] == ["a", "b"]
    merge(pair, tmp_path / "start.parquet", place="volumes", at="start")
    with open_trace(tmp_path / "start.parquet", several=True) as trace:
        assert [batch["queue_ns"].to_pylist() for batch in trace.batches()] == [[0, 0, 10, 10]]
    (tmp_path / "other").mkdir()
    same = write(tmp_path / "other/a.parquet", [Row(0)], ABOUT[0])
    with pytest.raises(UserError, match="another trace is also called 'a'"):
        merge([pair[0], same], tmp_path / "d.parquet", place="volumes")
    with pytest.raises(UserError, match=r"is a trace of 2 volumes \(a, b\)"):
        merge([tmp_path / "c.parquet", pair[0]], tmp_path / "d.parquet")


def test_captures_are_placed_to_the_nanosecond(tmp_path: Path) -> None:
    """A capture states its start in ms, and the clocks at the start in ns."""
    start_ns = 1_700_000_000_123_456_789
    paths = []
    for name, begin_ns in (("a", start_ns), ("b", start_ns + 1234)):
        about = {"first_event": f"{moment(begin_ns)[:23]}+00:00", "first_event_monotonic_ns": begin_ns - 10**18,
                 "realtime_offset_ns": 10**18}  # fmt: skip
        paths.append(write(tmp_path / f"{name}.parquet", [Row(0), Row(2000)], about))
    entry = merge(paths, tmp_path / "c.parquet", at="wall-clock")
    assert [source["shift_ns"] for source in entry["sources"]] == [0, 1234]
    cut_ns = 5_000_000
    write(paths[1], [Row(0), Row(cut_ns)], about)
    derive(paths[1], tmp_path / "cut.parquet", Cut(cut_ns, None))
    entry = merge([paths[0], tmp_path / "cut.parquet"], tmp_path / "c.parquet", at="wall-clock")
    shift_ns = entry["sources"][1]["shift_ns"] - entry["sources"][0]["shift_ns"]
    assert abs(shift_ns - cut_ns) < 1_000_000, "a cut has the start of its first event in ms only"
