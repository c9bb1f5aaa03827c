"""Filtering a trace by operation, process and address."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from made_traces import PROCESSES, Row, batch_sizes, batches_of, made_up, read, unhurried, write

from drivelab.core.errors import UserError
from drivelab.trace.derive.choice import Criteria, Filter
from drivelab.trace.derive.output import derive

ROWS = [
    Row(0, operation="read", offset_bytes=0, length_bytes=4096, process="db", pid=7, dispatch_id=1),
    Row(1, operation="write", offset_bytes=4096, length_bytes=4096, process="db", pid=8, dispatch_id=1),
    Row(2, operation="flush", length_bytes=0, process="backup", pid=9),
    Row(3, operation="write", offset_bytes=8192, length_bytes=4096, process="backup", pid=9, dispatch_id=2),
]

criteria = st.builds(
    Criteria,
    operations=st.lists(st.sampled_from(["read", "write", "flush", "write-zeroes"]), max_size=2, unique=True).map(
        tuple
    ),
    processes=st.lists(st.sampled_from([*PROCESSES, "absent"]), max_size=2, unique=True).map(tuple),
    pids=st.lists(st.sampled_from([-1, 7, 99]), max_size=2, unique=True).map(tuple),
    range_bytes=st.none() | st.tuples(st.integers(0, 2000), st.none() | st.integers(2001, 5000)),
)


def matches(row: Row, criterion: Criteria) -> bool:
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
def test_a_filter_and_its_inverse_partition_the_trace(rows: list[Row], criterion: Criteria, size: int) -> None:
    assume(criterion.as_dict())
    parts = {inverted: [row for row in rows if matches(row, criterion) != inverted] for inverted in (False, True)}
    with TemporaryDirectory() as name, batches_of(size):
        source = write(Path(name) / "a.parquet", rows, {"lost": {"overrun": 2}})
        for inverted, expected in parts.items():
            output = Path(name) / f"{inverted}.parquet"
            if not expected:
                with pytest.raises(UserError, match="no request is left"):
                    derive(source, output, Filter(criterion, inverted=inverted))
                assert not output.exists()
                continue
            entry = derive(source, output, Filter(criterion, inverted=inverted))
            kept, provenance = read(output)
            assert kept == expected
            dropped = parts[not inverted]
            assert sum(count["requests"] for count in entry["dropped"].values()) == len(dropped)
            assert sum(kind["bytes"] for kind in entry["dropped"].values()) == sum(row.length_bytes for row in dropped)
            left, removed = ({row.dispatch_id for row in part} - {None} for part in (expected, dropped))
            assert (entry["dispatches_cut_apart"] or 0) == len(left & removed)
            assert provenance["lost"] == {"overrun": 2}, "a trace derived from a lossy trace is lossy"


def test_removed_and_missing_requests_are_reported(tmp_path: Path) -> None:
    criterion = Criteria(processes=("backup", "typo"), range_bytes=(8191, 10000))
    entry = derive(write(tmp_path / "a.parquet", ROWS, {"duration_s": 3.5}), tmp_path / "b.parquet", Filter(criterion))
    assert entry["dropped"] == {
        "read": {"requests": 1, "bytes": 4096},
        "write": {"requests": 1, "bytes": 4096},
        "flush": {"requests": 1, "bytes": 0},
    }
    assert entry["found"] == {"process backup": 2, "process typo": 0}
    assert entry["range"] == "8191B..10000B"
    assert entry["across_the_edge"] == 1, "without the request of another process"
    rows, provenance = read(tmp_path / "b.parquet")
    assert rows == [ROWS[3]]
    assert provenance["duration_s"] == 3.5, "a filter does not change the duration"


def test_names_of_removed_processes_are_not_in_the_file(tmp_path: Path) -> None:
    source = write(tmp_path / "a.parquet", ROWS)
    derive(source, tmp_path / "b.parquet", Filter(Criteria(processes=("db",))))
    names = pq.read_table(tmp_path / "b.parquet").column("process").combine_chunks().dictionary.to_pylist()
    assert names == ["db"]
    assert b"backup" not in (tmp_path / "b.parquet").read_bytes()


def test_missing_criteria_are_refused() -> None:
    with pytest.raises(UserError, match="no filter criterion"):
        Filter(Criteria())


def test_an_empty_result_names_the_missing_process(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no request is left: it has no request of process typo"):
        derive(write(tmp_path / "a.parquet", ROWS), tmp_path / "b.parquet", Filter(Criteria(processes=("typo",))))
