"""Traces with times beyond 64 bits or invalid provenance, and other files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_traces import Row, write

from drivelab.cli.main import main
from drivelab.core.errors import UserError

LAST = 2**63 - 1


@pytest.mark.parametrize(
    "rows",
    [
        [Row(0, 1, LAST)], [Row(LAST, LAST, LAST)], [Row(0, 1, 2), Row(LAST - 1, LAST, LAST)], [Row(-(2**63), 1, 2)],
        [Row(0, -(2**63), LAST)], [Row(0, 1, 2), Row(2**62, 2**62, 2**62)],
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_times_out_of_range_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[Row], more: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("drivelab.trace.parquet_schema._refuse_times", lambda requests, path: None)
        path = write(tmp_path / "a.parquet", rows)
    assert main(["trace", "info", str(path), *more]) == 2
    assert re.search(r"a\.parquet: a request has \w+_ns -?\d+, which is out of range", capsys.readouterr().err)


def test_times_out_of_range_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a request has \w+_ns \d+, which is out of range"):
        write(tmp_path / "a.parquet", [Row(LAST, LAST, LAST)])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["time_resolution_ns", "malformed", "capacity_bytes", "derived", "lost"])
@pytest.mark.parametrize("value", [[1], {"a": "b"}, "x", -1, 1.5, 2**70, float("inf"), float("nan")])
def test_invalid_provenance_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: object
) -> None:
    path = write(tmp_path / "a.parquet", [Row(0, 1, 2)], {key: value})
    assert main(["trace", "info", str(path)]) == 2
    assert "is not a trace of format" in capsys.readouterr().err


def test_a_pipe_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    assert main(["trace", "info", str(tmp_path / "a.parquet")]) == 2
    assert "is a pipe, a device or a socket" in capsys.readouterr().err


def test_a_row_group_that_fills_the_memory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A few kilobytes hold millions of equal requests."""
    path = write(tmp_path / "a.parquet", [Row(0, 1, 2)])
    metadata = pq.read_metadata(path).metadata
    large = pq.read_table(path).take(pa.array(np.zeros((1 << 20) + 1, np.int32)))
    with pq.ParquetWriter(path, large.schema, compression="zstd") as writer:
        writer.write_table(large, row_group_size=1 << 21)
        writer.add_key_value_metadata({name: metadata[name] for name in metadata if name != b"ARROW:schema"})
    assert path.stat().st_size < 1 << 20
    assert main(["trace", "info", str(path)]) == 2
    assert "has a row group of more than 1,048,576 requests or 256 MiB" in capsys.readouterr().err
