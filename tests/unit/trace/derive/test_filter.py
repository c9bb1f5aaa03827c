"""Derived traces: time span, criteria, idle time, issue times, chains of them, and refusals."""

from __future__ import annotations

import hashlib
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from made_traces import PROCESSES, Row, batch_sizes, batches_of, made_up, read, unhurried, write

from drivelab.core.errors import UserError
from drivelab.trace.derive.filter import Filter, filter_trace

SPAN = [
    Row(0, 1, 30),  # completed before the cut
    Row(5, 6, 120),  # in flight at the start of the cut
    Row(60, 61, 100),  # completed exactly at the start: no longer in flight
    Row(70),  # completion unknown
    Row(100, 110, 130),
    Row(150, 160, 400),  # in flight at the end of the cut
    Row(199, None, None),
    Row(200, 201, 210),
]
MIXED = [
    Row(0, operation="read", offset_bytes=0, length_bytes=4096, process="db", pid=7, dispatch_id=1),
    Row(1, operation="write", offset_bytes=4096, length_bytes=4096, process="db", pid=8, dispatch_id=1),
    Row(2, operation="flush", length_bytes=0, process="backup", pid=9),
    Row(3, operation="write", offset_bytes=8192, length_bytes=4096, process="backup", pid=9, dispatch_id=2),
]
edges = st.integers(0, 160)


def filtered(source: Path, output: Path, **chosen: Any) -> list[Row]:
    """Return the rows that are left, also if none are."""
    try:
        filter_trace(source, output, Filter(**chosen))
    except UserError as error:
        assert "no request is left" in str(error)  # noqa: PT017 - the rows count, not the error
        assert not output.exists()
        return []
    return read(output)[0]


def test_requests_in_the_cut_stay_whole_and_others_are_counted(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", SPAN, {"first_event": "2026-01-02T03:04:05.000000100Z", "events": 9})
    entry = filter_trace(source, tmp_path / "b.parquet", Filter(from_ns=100, to_ns=200))
    rows, provenance = read(tmp_path / "b.parquet")
    assert rows == [row.later(-100) for row in SPAN[4:7]]
    assert entry == provenance["derived"][0]
    assert (entry["step"], entry["dropped_before"], entry["dropped_after"]) == ("cut", 4, 1)
    assert (entry["missing_in_flight"], entry["dropped_without_completion"], entry["in_flight_at_end"]) == (1, 1, 1)
    assert (entry["source"]["file"], entry["source"]["requests"], entry["source"]["events"]) == ("a.parquet", 8, 9)
    assert "events" not in provenance
    assert provenance["first_event"] == "2026-01-02T03:04:05.000000200+00:00"


@unhurried
@given(made_up(most=10), st.tuples(edges, edges), st.tuples(edges, edges), batch_sizes)
def test_a_cut_of_a_cut_is_the_cut_of_the_intersection(
    rows: list[Row], first: tuple[int, int], second: tuple[int, int], size: int
) -> None:
    (a, b), (c, d) = sorted(first), sorted(second)
    assume(a < b and c < d)
    with TemporaryDirectory() as name, batches_of(size):
        folder = Path(name)
        source = write(folder / "a.parquet", rows, {"first_event": "2026-01-02T03:04:05.123456789Z"})
        expected = [row.later(-a - c) for row in rows if a + c <= row.queue_ns < min(b, a + d)]
        if filtered(source, folder / "b.parquet", from_ns=a, to_ns=b):
            assert filtered(folder / "b.parquet", folder / "c.parquet", from_ns=c, to_ns=d) == expected
        if a + c < min(b, a + d):
            assert filtered(source, folder / "d.parquet", from_ns=a + c, to_ns=min(b, a + d)) == expected
        if (folder / "c.parquet").exists():
            twice, once = (read(folder / f"{name}.parquet")[1] for name in "cd")
            assert twice["first_event"] == once["first_event"]
            assert [entry["step"] for entry in twice["derived"]] == ["cut", "cut"]


criteria = st.builds(
    Filter,
    operations=st.lists(st.sampled_from(["read", "write", "flush", "write-zeroes"]), max_size=2, unique=True).map(
        tuple
    ),
    processes=st.lists(st.sampled_from([*PROCESSES, "absent"]), max_size=2, unique=True).map(tuple),
    pids=st.lists(st.sampled_from([-1, 7, 99]), max_size=2, unique=True).map(tuple),
    range_bytes=st.none() | st.tuples(st.integers(0, 2000), st.none() | st.integers(2001, 5000)),
)


def matches(row: Row, criterion: Filter) -> bool:
    """Apply the criteria byte by byte."""
    low, high = criterion.range_bytes or (0, None)
    touched = range(row.offset_bytes, row.offset_bytes + row.length_bytes)
    return (
        (not criterion.operations or row.operation in criterion.operations)
        and (not criterion.processes or row.process in criterion.processes)
        and (not criterion.pids or row.pid in criterion.pids)
        and (criterion.range_bytes is None or any(byte >= low and (high is None or byte < high) for byte in touched))
    )


@unhurried
@given(made_up(), criteria, batch_sizes)
def test_a_filter_and_its_inverse_partition_the_trace(rows: list[Row], criterion: Filter, size: int) -> None:
    assume(criterion != Filter())
    wanted = {"operations": criterion.operations, "processes": criterion.processes, "pids": criterion.pids}
    with TemporaryDirectory() as name, batches_of(size):
        source = write(Path(name) / "a.parquet", rows, {"lost": {"overrun": 2}})
        for inverted in (False, True):
            output = Path(name) / f"{inverted}.parquet"
            kept = filtered(source, output, **wanted, range_bytes=criterion.range_bytes, inverted=inverted)
            assert kept == [row for row in rows if matches(row, criterion) != inverted]
            if kept:
                provenance = read(output)[1]
                dropped = provenance["derived"][0]["dropped"].values()
                assert sum(count["requests"] for count in dropped) == len(rows) - len(kept)
                assert sum(count["bytes"] for count in dropped) == sum(
                    row.length_bytes * (matches(row, criterion) == inverted) for row in rows
                )
                assert provenance["lost"] == {"overrun": 2}, "a trace derived from a lossy trace is lossy"


def test_removed_and_missing_requests_are_reported(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", MIXED, {"duration_s": 3.5})
    chosen = Filter(processes=("backup", "typo"), range_bytes=(8191, 10000))
    entry = filter_trace(source, tmp_path / "b.parquet", chosen)
    assert entry["dropped"] == {
        "read": {"requests": 1, "bytes": 4096},
        "write": {"requests": 1, "bytes": 4096},
        "flush": {"requests": 1, "bytes": 0},
    }
    assert entry["found"] == {"process backup": 2, "process typo": 0}
    assert entry["range"] == "8191B..10000B"
    rows, provenance = read(tmp_path / "b.parquet")
    assert rows == [MIXED[3]]
    assert provenance["duration_s"] == 3.5, "a filter does not change the duration"


def test_processes_of_any_name_are_found(tmp_path: Path) -> None:
    names = ("db", "DB", "a'b", 'a"b', "größe", "100%", "{x}")
    source = write(tmp_path / "a.parquet", [Row(time, process=name) for time, name in enumerate(names)])
    entry = filter_trace(source, tmp_path / "b.parquet", Filter(processes=(*names[1:], "'")))
    assert entry["found"] == {**{f"process {name}": 1 for name in names[1:]}, "process '": 0}
    assert [row.process for row in read(tmp_path / "b.parquet")[0]] == list(names[1:])


def test_names_of_removed_processes_are_not_in_the_file(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", MIXED)
    filter_trace(source, tmp_path / "b.parquet", Filter(processes=("db",)))
    names = pq.read_table(tmp_path / "b.parquet").column("process").combine_chunks().dictionary.to_pylist()
    assert names == ["db"]
    assert b"backup" not in (tmp_path / "b.parquet").read_bytes()


def end_ns(row: Row) -> int:
    return max(row.queue_ns, row.dispatch_ns or 0, row.complete_ns or 0)


def gaps(rows: list[Row]) -> list[int]:
    """Return the lengths of the times with nothing in flight, ns by ns, split at requests of zero duration."""
    points = {row.queue_ns for row in rows}
    lengths, before = [], -2
    for now in range(max(map(end_ns, rows))):
        if any(row.queue_ns <= now < end_ns(row) for row in rows):
            continue
        if now == before + 1 and now not in points:
            lengths[-1] += 1
        else:
            lengths.append(1)
        before = now
    return lengths


@unhurried
@given(made_up(most=10), st.integers(1, 30), st.data(), batch_sizes)
def test_order_and_overlap_are_kept_and_dropping_idle_time_is_idempotent(
    rows: list[Row], above: int, data: st.DataObject, size: int
) -> None:
    keep = data.draw(st.integers(0, above))
    chosen = Filter(idle_above_ns=above, idle_keep_ns=keep)
    with TemporaryDirectory() as name, batches_of(size):
        folder = Path(name)
        entry = filter_trace(write(folder / "a.parquet", rows), folder / "b.parquet", chosen)
        shortened = read(folder / "b.parquet")[0]
        again = filter_trace(folder / "b.parquet", folder / "c.parquet", chosen)
        assert read(folder / "c.parquet")[0] == shortened
        assert again["gaps"] == again["removed_ns"] == 0
    before, after = gaps(rows), gaps(shortened)
    assert [min(gap, keep) if gap > above else gap for gap in before if keep or gap <= above] == after
    assert entry["gaps"] == sum(gap > above for gap in before)
    assert entry["longest_gap_ns"] == max((gap for gap in before if gap > above), default=0)
    assert entry["without_completion"] == sum(row.complete_ns is None for row in rows)
    assert entry["removed_ns"] == sum(gap - keep for gap in before if gap > above)
    assert shortened[-1].queue_ns == rows[-1].queue_ns - entry["removed_ns"]
    for old, new in zip(rows, shortened, strict=True):
        assert new.later(old.queue_ns - new.queue_ns) == old, "only the time of a request changes"
    for (a, b), (c, d) in zip(combinations(rows, 2), combinations(shortened, 2), strict=True):
        if b.queue_ns < end_ns(a):
            assert d.queue_ns - c.queue_ns == b.queue_ns - a.queue_ns
        assert (b.queue_ns < end_ns(a)) == (d.queue_ns < end_ns(c))


@pytest.mark.parametrize(
    ("rows", "basis"),
    [
        ([Row(0, 1, 2), Row(50, 51, 52)], "nothing in flight"),
        ([Row(50)], "no arrival"),  # the gap before the first request counts
        ([Row(0, 1, 2), Row(50)], "nothing known to be in flight"),
    ],
)
def test_the_basis_of_idle_time_is_reported(tmp_path: Path, rows: list[Row], basis: str) -> None:
    source = write(tmp_path / "a.parquet", rows)
    entry = filter_trace(source, tmp_path / "b.parquet", Filter(idle_above_ns=10))
    assert (entry["basis"], entry["gaps"]) == (basis, 1)


STEPS: dict[str, dict[str, Any]] = {
    "cut": {"from_ns": 10, "to_ns": 200},
    "filter": {"operations": ("flush",), "inverted": True},
    "drop-idle": {"idle_above_ns": 8, "idle_keep_ns": 2},
    "repeat": {"times": 2},
}


@unhurried
@given(made_up(least=4), st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=4))
def test_any_chain_of_steps_gives_a_valid_trace(rows: list[Row], chain: list[str]) -> None:
    with TemporaryDirectory() as name, batches_of(3):
        path = write(Path(name) / "0.parquet", rows, {"lost": {"overrun": 1}, "capacity_bytes": 1 << 20})
        for number, step in enumerate(chain, 1):
            output = Path(name) / f"{number}.parquet"
            derived_rows = filtered(path, output, **STEPS[step])
            if not derived_rows:
                return
            digest, path = hashlib.sha256(path.read_bytes()).hexdigest(), output
            provenance = read(output)[1]
            assert [row.queue_ns for row in derived_rows] == sorted(row.queue_ns for row in derived_rows)
            for row in derived_rows:
                known = [time for time in (row.dispatch_ns, row.complete_ns) if time is not None]
                assert all(0 <= row.queue_ns <= time for time in known)
                assert 0 <= row.offset_bytes <= row.offset_bytes + row.length_bytes <= provenance["capacity_bytes"]
            assert [entry["step"] for entry in provenance["derived"]] == chain[:number]
            last = provenance["derived"][-1]
            assert (last["requests"], last["source"]["sha256"]) == (len(derived_rows), digest)
            assert (provenance["lost"], provenance["format"]) == ({"overrun": 1}, 2)


@unhurried
@given(made_up(least=4), batch_sizes)
def test_steps_together_equal_steps_one_after_the_other(rows: list[Row], size: int) -> None:
    steps = ["cut", "filter", "drop-idle"]
    with TemporaryDirectory() as name, batches_of(size):
        path = write(Path(name) / "a.parquet", rows)
        together = filtered(path, Path(name) / "b.parquet", **STEPS["cut"], **STEPS["filter"], **STEPS["drop-idle"])
        for step in steps:
            after = Path(name) / f"{step}.parquet"
            if not filtered(path, after, **STEPS[step]):
                assert not together
                return
            path = after
        assert together == read(path)[0]
        assert read(Path(name) / "b.parquet")[1]["derived"][0]["step"] == ", ".join(steps)


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({}, "nothing to change"),
        ({"inverted": True}, "no filter criterion"),
        ({"from_ns": 5, "to_ns": 5}, "is empty; make 'to' later"),
        ({"to_ns": 0}, "is empty; make 'to' later"),
        ({"idle_above_ns": 10, "idle_keep_ns": 11}, "would lengthen some"),
        ({"times": 2, "pids": (8,)}, "a repetition takes --times or --written alone"),
        ({"times": 2, "written_bytes": 5}, "a repetition takes --times or --written alone"),
        ({"from_ns": 1000}, r"a\.parquet: no request is left: none .* and the last at 200 ns"),
        ({"processes": ("typo",)}, "no request is left: it has no request of process typo"),
        ({"idle_above_ns": 9}, "a resolution of 10 ns"),
    ],
)
def test_what_cannot_be_done_is_refused_and_an_older_file_stays(
    tmp_path: Path, chosen: dict[str, Any], reason: str
) -> None:
    source, output = write(tmp_path / "a.parquet", SPAN, {"time_resolution_ns": 10}), tmp_path / "b.parquet"
    output.write_text("older")
    with pytest.raises(UserError, match=reason):
        filter_trace(source, output, Filter(**chosen))
    assert output.read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


READS = Filter(operations=("read",))


@pytest.mark.parametrize("link", ["none", "symlink", "hard link", "other spelling"])
def test_the_source_is_never_overwritten(tmp_path: Path, link: str) -> None:
    source, output = write(tmp_path / "a.parquet", SPAN), tmp_path / "b.parquet"
    before = source.read_bytes()
    if link == "symlink":
        output.symlink_to(source)
    elif link == "hard link":
        output.hardlink_to(source)
    else:
        output = source if link == "none" else tmp_path / ".." / tmp_path.name / "a.parquet"
    with pytest.raises(UserError, match="is also the input and would be lost"):
        filter_trace(source, output, READS)
    assert source.read_bytes() == before


def test_unsuitable_sources_and_outputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the trace does not exist"):
        filter_trace(tmp_path / "absent.parquet", tmp_path / "b.parquet", READS)
    source = write(tmp_path / "a.parquet", [Row(5), Row(4)])
    with pytest.raises(UserError, match="not in the order in which they were queued"):
        filter_trace(source, tmp_path / "b.parquet", READS)
    with pytest.raises(UserError, match="is a folder"):
        filter_trace(source, tmp_path, READS)
    write(source, SPAN)
    with pytest.raises(UserError, match="cannot be written"):
        filter_trace(source, source / "b.parquet", READS)
    assert not (tmp_path / "b.parquet").exists()
