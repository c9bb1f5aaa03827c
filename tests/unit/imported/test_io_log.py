"""fio's logs of single I/Os: every line becomes a row, or is reported by its number."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drivelab.core.errors import UserError
from drivelab.imported.fio_log import DIRECTIONS, convert, log_kind

COMMON = ["time_ms", "latency_ns", "direction", "block_size_bytes"]


def converted(path: Path, text: str, name: str = "job_lat.1.log", **more: object) -> pd.DataFrame:
    (path / name).write_text(text)
    convert(path / name, path / "out.parquet", **more)  # type: ignore[arg-type]
    return pq.read_table(path / "out.parquet").to_pandas()


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("5, 81920, 1, 4096", []),
        ("5, 81920, 1, 4096, 0", ["priority"]),
        ("5, 81920, 1, 4096, 630784, 0", ["offset_bytes", "priority"]),
        ("5, 81920, 1, 4096, 630784, 0x2004, 123456789", ["offset_bytes", "priority", "issue_ns"]),
    ],
)
def test_number_of_columns_determines_their_meaning(tmp_path: Path, line: str, columns: list[str]) -> None:
    result = converted(tmp_path, line + "\n")
    assert list(result.columns) == COMMON + columns
    values = {"offset_bytes": 630784, "issue_ns": 123456789, "priority": 0x2004 if "0x" in line else 0}
    assert result.iloc[0].to_dict() == {
        "time_ms": 5, "latency_ns": 81920, "direction": "write", "block_size_bytes": 4096,
        **{name: values[name] for name in columns},
    }  # fmt: skip


@pytest.mark.parametrize(("line", "averaged"), [("500, 64743, 0, 0, 0, 0", True), ("0, 64743, 0, 512, 0, 0", False)])
def test_averages_are_no_ios(tmp_path: Path, line: str, averaged: bool) -> None:
    (tmp_path / "job_lat.1.log").write_text(line + "\n")
    assert convert(tmp_path / "job_lat.1.log", tmp_path / "out.parquet").averaged is averaged


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a_clat.1.log", "clat"), ("a_lat_bw.12.log", "bw"), ("x_iops.log.gz", "iops"), ("a_slat.1.log", "slat")],
)
def test_file_name_gives_the_kind(name: str, kind: str) -> None:
    assert log_kind(Path(name)) == kind


def test_file_name_without_kind_is_refused() -> None:
    with pytest.raises(UserError, match=r"job_lat\.1\.log"):
        log_kind(Path("latencies.txt"))


def test_compressed_logs_are_read(tmp_path: Path) -> None:
    (tmp_path / "a_bw.1.log.gz").write_bytes(gzip.compress(b"1, 400, 0, 4096, 0\n2, 500, 2, 4096, 0\n"))
    result = convert(tmp_path / "a_bw.1.log.gz", tmp_path / "o.parquet")
    table = pq.read_table(tmp_path / "o.parquet").to_pandas()
    assert (result.rows, list(table["bandwidth_kib_s"]), list(table["direction"])) == (2, [400, 500], ["read", "trim"])


ROW = st.tuples(
    st.integers(0, 2**40), st.integers(0, 2**62), st.integers(0, 2), st.integers(0, 2**24), st.integers(0, 2**62),
    st.integers(0, 0xFFFF),
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, min_size=1, max_size=60), hexadecimal=st.booleans())
def test_every_line_becomes_a_row(tmp_path: Path, rows: list[tuple[int, ...]], hexadecimal: bool) -> None:
    last = "0x{:04x}" if hexadecimal else "{}"
    text = "".join(", ".join(map(str, row[:5])) + ", " + last.format(row[5]) + "\n" for row in rows)
    result = converted(tmp_path, text)
    expected = pd.DataFrame(rows, columns=[*COMMON, "offset_bytes", "priority"])
    expected["direction"] = [DIRECTIONS[code] for code in expected["direction"]]
    assert result.astype({"direction": str}).values.tolist() == expected.values.tolist()


BAD = {
    "x, 1, 0, 4096, 0, 0": "time_ms 'x' is not a whole number",
    "1, -5, 0, 4096, 0, 0": "value is negative",
    "1, 5, 3, 4096, 0, 0": "direction is 3, more than 2",
    "1, 5, 0, 4096, 0": "5 columns instead of 6",
    "1, 0x10, 0, 4096, 0, 0": "value is not decimal",
    "1, 5, 0, 4096, 0, 70000": "priority is 70000",
    "1, 5, 0, 4096, 0, zero": "priority 'zero' is not a 16-bit number",
    "1, nan, 0, 4096, 0, 0": "value 'nan' is not a whole number",
    "1, , 0, 4096, 0, 0": "value '' is not a whole number",
}


@pytest.mark.parametrize("line", BAD)
def test_malformed_line_is_reported_by_its_number(tmp_path: Path, line: str) -> None:
    good = "1, 5, 0, 4096, 8192, 0\n"
    text = good * 30000 + line + "\n" + good * 30000
    with pytest.raises(UserError, match=f"line 30001 is malformed: .*{BAD[line].replace('^', chr(92) + '^')}"):
        converted(tmp_path, text)
    assert not (tmp_path / "out.parquet").exists()
    result = converted(tmp_path, text, max_malformed=1)
    assert len(result) == 60000
    assert (result["offset_bytes"] == 8192).all()


def test_offset_in_the_fifth_column_needs_an_option(tmp_path: Path) -> None:
    text = "1, 5, 0, 4096, 630784\n2, 5, 1, 4096, 0\n"
    with pytest.raises(UserError, match="--fio-2-offset"):
        converted(tmp_path, text)
    assert list(converted(tmp_path, text, fio_2_offset=True)["offset_bytes"]) == [630784, 0]


@pytest.mark.parametrize("text", ["\n", "some text\n", "1, 2\n"])
def test_other_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match=r"job_lat\.1\.log"):
        converted(tmp_path, text)


def test_rows_stay_in_order_over_many_blocks(tmp_path: Path) -> None:
    count = 400_000
    text = "".join(f"{number // 100}, {number}, 0, 4096, {4096 * number}, 0\n" for number in range(count))
    result = converted(tmp_path, text)
    assert (result["latency_ns"].to_numpy() == np.arange(count)).all()
