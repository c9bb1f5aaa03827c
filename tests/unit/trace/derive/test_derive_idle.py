"""Removal of idle time."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, batch_sizes, batches_of, made_up, read, unhurried, write

from drivelab.core.errors import UserError
from drivelab.trace.derive.cut import DropIdle
from drivelab.trace.derive.output import derive


def end_ns(row: Row) -> int:
    return max(row.queue_ns, row.dispatch_ns or 0, row.complete_ns or 0)


def idle_instants(rows: list[Row]) -> list[int]:
    """Return every ns of the trace with nothing in flight, by testing each."""
    last = max(map(end_ns, rows))
    return [now for now in range(last) if not any(row.queue_ns <= now < end_ns(row) for row in rows)]


def gaps(rows: list[Row]) -> list[int]:
    """Return the lengths of gaps, split at requests of zero duration."""
    points = {row.queue_ns for row in rows}
    lengths, before = [], -2
    for now in idle_instants(rows):
        if now == before + 1 and now not in points:
            lengths[-1] += 1
        else:
            lengths.append(1)
        before = now
    return lengths


def test_several_gaps_over_several_batches(tmp_path: Path) -> None:
    rows = [Row(0, 1, 10), Row(4, 5, 400), Row(300, 301, 350), Row(1400, 1401, 1500), Row(1550, 1551, 1560)]
    rows += [Row(9560, None, None)]
    with batches_of(2):
        entry = derive(write(tmp_path / "a.parquet", rows), tmp_path / "b.parquet", DropIdle(100, 30))
        shortened, provenance = read(tmp_path / "b.parquet")
    # 400 to 1400 becomes 30, 1560 to 9560 becomes 30; 1500 to 1550 is short enough.
    assert shortened == [*rows[:3], rows[3].later(-970), rows[4].later(-970), rows[5].later(-970 - 7970)]
    assert (entry["gaps"], entry["removed_ns"], entry["longest_gap_ns"]) == (2, 8940, 8000)
    assert provenance["derived"] == [entry]
    assert entry["without_completion"] == 1


@unhurried
@given(made_up(most=10), st.integers(1, 30), st.data(), batch_sizes)
def test_order_and_overlap_are_kept_and_the_step_is_idempotent(
    rows: list[Row], above: int, data: st.DataObject, size: int
) -> None:
    keep = data.draw(st.integers(0, above))
    with TemporaryDirectory() as name, batches_of(size):
        folder = Path(name)
        source = write(folder / "a.parquet", rows)
        entry = derive(source, folder / "b.parquet", DropIdle(above, keep))
        shortened = read(folder / "b.parquet")[0]
        again = derive(folder / "b.parquet", folder / "c.parquet", DropIdle(above, keep))
        assert read(folder / "c.parquet")[0] == shortened
        assert again["gaps"] == again["removed_ns"] == 0
    before, after = gaps(rows), gaps(shortened)
    assert [min(gap, keep) if gap > above else gap for gap in before if keep or gap <= above] == after
    assert entry["gaps"] == sum(gap > above for gap in before)
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
        ([Row(0), Row(50)], "no arrival"),
        ([Row(0, 1, 2), Row(50)], "nothing known to be in flight"),
    ],
)
def test_the_basis_of_idle_time_is_reported(tmp_path: Path, rows: list[Row], basis: str) -> None:
    entry = derive(write(tmp_path / "a.parquet", rows), tmp_path / "b.parquet", DropIdle(10))
    assert entry["basis"] == basis
    assert entry["gaps"] == 1


def test_the_gap_before_the_first_request_counts(tmp_path: Path) -> None:
    derive(write(tmp_path / "a.parquet", [Row(500, 501, 502)]), tmp_path / "b.parquet", DropIdle(10))
    assert read(tmp_path / "b.parquet")[0] == [Row(10, 11, 12)]


def test_keeping_more_than_the_limit_is_refused() -> None:
    with pytest.raises(UserError, match="would lengthen some"):
        DropIdle(10, 11)


def test_a_limit_below_the_time_resolution_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", [Row(0), Row(10**9)], {"time_resolution_ns": 10**9})
    with pytest.raises(UserError, match="a resolution of 1 s"):
        derive(source, tmp_path / "b.parquet", DropIdle(10**8))
    derive(source, tmp_path / "b.parquet", DropIdle(10**9))
