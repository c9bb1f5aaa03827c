"""Cutting a trace by time."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batch_sizes, batches_of, made_up, read, unhurried, write

from drivelab.core.errors import UserError
from drivelab.trace.derive.cut import Cut
from drivelab.trace.derive.output import derive

ROWS = [
    Row(0, 1, 30),  # completed before the cut
    Row(5, 6, 120),  # in flight at the start of the cut
    Row(60, 61, 100),  # completed exactly at the start: no longer in flight
    Row(70),  # completion unknown
    Row(100, 110, 130),
    Row(150, 160, 400),  # in flight at the end of the cut
    Row(199, None, None),
    Row(200, 201, 210),
]


def cut(source: Path, begin: int, end: int | None, output: Path) -> list[Row]:
    """Return the rows of a cut, or [] if no request is left."""
    try:
        derive(source, output, Cut(begin, end))
    except UserError as error:
        assert "no request is left" in str(error)  # noqa: PT017 - the rows count, not the error
        assert not output.exists()
        return []
    return read(output)[0]


def test_requests_in_the_cut_stay_whole_and_others_are_counted(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", ROWS, {"first_event": "2026-01-02T03:04:05.000000100Z", "events": 9})
    entry = derive(source, tmp_path / "b.parquet", Cut(100, 200))
    rows, provenance = read(tmp_path / "b.parquet")
    assert rows == [row.later(-100) for row in ROWS[4:7]]
    assert entry == provenance["derived"][0]
    assert entry["dropped"] == {"before": 4, "after": 1}
    assert entry["missing_in_flight"] == 1
    assert entry["dropped_without_completion"] == 1
    assert entry["in_flight_at_end"] == 1
    assert entry["source"]["file"] == "a.parquet"
    assert entry["source"]["requests"] == 8
    assert entry["source"]["events"] == 9
    assert "events" not in provenance
    assert provenance["first_event"] == "2026-01-02T03:04:05.000000200+00:00"


def test_dispatches_split_by_the_cut_are_counted(tmp_path: Path) -> None:
    rows = [Row(time, 50, 60, dispatch_id=group) for time, group in [(1, 1), (2, 2), (10, 1), (11, 3), (20, 3)]]
    entry = derive(write(tmp_path / "a.parquet", rows), tmp_path / "b.parquet", Cut(5, 15))
    assert entry["dispatches_cut_apart"] == 2, "1 and 3; all of 2 is removed"


edges = st.integers(0, 160)


@unhurried
@given(made_up(most=10), st.tuples(edges, edges), st.tuples(edges, edges), batch_sizes)
def test_a_cut_of_a_cut_is_the_cut_of_the_intersection(
    rows: list[Row], first: tuple[int, int], second: tuple[int, int], size: int
) -> None:
    (a, b), (c, d) = sorted(first), sorted(second)
    with TemporaryDirectory() as name, batches_of(size):
        folder = Path(name)
        source = write(folder / "a.parquet", rows, {"first_event": "2026-01-02T03:04:05.123456789Z"})
        expected = [row.later(-a - c) for row in rows if max(a, a + c) <= row.queue_ns < min(b, a + d)]
        if a < b and c < d and cut(source, a, b, folder / "b.parquet"):
            assert cut(folder / "b.parquet", c, d, folder / "c.parquet") == expected
        if a + c < min(b, a + d):
            assert cut(source, a + c, min(b, a + d), folder / "d.parquet") == expected
        if (folder / "c.parquet").exists():
            twice, once = (read(folder / f"{name}.parquet")[1] for name in "cd")
            assert twice["first_event"] == once["first_event"]
            assert [entry["step"] for entry in twice["derived"]] == ["cut", "cut"]


@unhurried
@given(made_up(), edges, batch_sizes)
def test_requests_missing_at_the_edge_are_counted(rows: list[Row], begin: int, size: int) -> None:
    kept = [row for row in rows if row.queue_ns >= begin]
    with TemporaryDirectory() as name, batches_of(size):
        source, output = Path(name) / "a.parquet", Path(name) / "b.parquet"
        write(source, rows)
        if not kept:
            with pytest.raises(UserError, match="no request is left"):
                derive(source, output, Cut(begin, None))
            return
        entry = derive(source, output, Cut(begin, None))
    dropped = [row for row in rows if row.queue_ns < begin]
    assert entry["missing_in_flight"] == sum(row.complete_ns is not None and row.complete_ns > begin for row in dropped)
    left, lost = ({row.dispatch_id for row in part} - {None} for part in (kept, dropped))
    assert (entry["dispatches_cut_apart"] or 0) == len(left & lost)


@pytest.mark.parametrize(("begin", "end"), [(5, 5), (6, 5), (0, 0)])
def test_an_empty_span_is_refused(begin: int, end: int) -> None:
    with pytest.raises(UserError, match="is empty; make 'to' later"):
        Cut(begin, end)


def test_an_empty_cut_is_refused_and_an_older_file_stays(tmp_path: Path) -> None:
    source, output = write(tmp_path / "a.parquet", ROWS), tmp_path / "b.parquet"
    output.write_text("older")
    with pytest.raises(UserError, match=r"a\.parquet: no request is left: none .* and the last at 200 ns"):
        derive(source, output, Cut(1000, None))
    assert output.read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize("link", ["none", "symlink", "hard link", "other spelling"])
def test_the_source_is_never_overwritten(tmp_path: Path, link: str) -> None:
    source, output = write(tmp_path / "a.parquet", ROWS), tmp_path / "b.parquet"
    before = source.read_bytes()
    if link == "symlink":
        output.symlink_to(source)
    elif link == "hard link":
        output.hardlink_to(source)
    else:
        output = source if link == "none" else tmp_path / ".." / tmp_path.name / "a.parquet"
    with pytest.raises(UserError, match="is also the input and would be lost"):
        derive(source, output, Cut(0, None))
    assert source.read_bytes() == before


def test_a_missing_source_and_a_bad_output_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the trace does not exist"):
        derive(tmp_path / "absent.parquet", tmp_path / "b.parquet", Cut(0, None))
    source = write(tmp_path / "a.parquet", ROWS)
    with pytest.raises(UserError, match="is a folder"):
        derive(source, tmp_path, Cut(0, None))
    with pytest.raises(UserError, match="cannot be written"):
        derive(source, source / "b.parquet", Cut(0, None))


def test_a_trace_out_of_order_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", [Row(5), Row(4)])
    with pytest.raises(UserError, match="not in the order in which they were queued"):
        derive(source, tmp_path / "b.parquet", Cut(0, None))
    assert not (tmp_path / "b.parquet").exists()
