"""Writing and reading trace files."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trace_files import write_capture
from whole_traces import read_trace, write_trace

from drivelab.core.errors import UserError
from drivelab.trace import trace_catalogue
from drivelab.trace.decode import decode
from drivelab.trace.parquet_schema import REQUESTS, TraceWriter


def test_a_trace_and_its_provenance_survive_the_file(tmp_path: Path) -> None:
    events = [(1, "Q", "R", 8, 4096), (2, "D", "R", 8, 4096), (3, "Q", "D", 80, 4096)]
    decode(write_capture(tmp_path / "c", events), tmp_path / "first.parquet")
    requests, _ = read_trace(tmp_path / "first.parquet")
    path = tmp_path / "new" / "t.parquet"
    write_trace(requests, {"application": "x", "lost": {"overrun": 1}}, path)
    table, provenance = read_trace(path)
    assert table.equals(requests)
    assert provenance == {"format": 2, "application": "x", "lost": {"overrun": 1}}
    assert [file.name for file in path.parent.iterdir()] == ["t.parquet"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with pytest.raises(UserError, match=r"t\.parquet: the trace does not exist"):
        read_trace(path)
    path.write_bytes(b"no Parquet at all")
    with pytest.raises(UserError, match=r"t\.parquet: is not a trace of drivelab \(Parquet\)"):
        read_trace(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(UserError, match=r"t\.parquet: is not a trace of format 2"):
        read_trace(path)


def test_an_incomplete_trace_leaves_no_file(tmp_path: Path) -> None:
    empty = REQUESTS.empty_table()
    with contextlib.suppress(RuntimeError), TraceWriter(tmp_path / "t.parquet") as writer:
        writer.write(empty)
        raise RuntimeError
    with TraceWriter(tmp_path / "u.parquet") as writer:
        writer.write(empty)
    assert list(tmp_path.iterdir()) == [], "no file after an error or without finish"


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table, provenance = read_trace(trace_catalogue.entry("rocksdb").path)
    write_trace(table, provenance, path)
    data = bytearray(path.read_bytes())
    data[2000] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"t\.parquet: is damaged"):
        read_trace(path)
