"""Malformed lines are detected, numbered, explained and counted."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
import yaml
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.trace.formats.common.importing import import_trace

LINES = yaml.safe_load(Path(__file__).with_name("malformed.yaml").read_text())
GOOD = {name: lines["sound"] for name, lines in LINES.items()}
HEADERS = {"fio-iolog-v2": "fio version 2 iolog\n", "fio-iolog-v3": "fio version 3 iolog\n"}
BAD = [(name, *bad) for name, lines in LINES.items() for bad in lines["malformed"]]


def written(folder: Path, name: str, *lines: str) -> Path:
    path = folder / "file"
    text = HEADERS.get(name, "") + "".join(f"{line}\n" for line in lines)
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path


@pytest.mark.parametrize(("name", "bad", "reason"), BAD)
def test_a_malformed_line_is_refused_with_its_number_or_skipped_within_the_limit(
    tmp_path: Path, name: str, bad: str, reason: str
) -> None:
    path = written(tmp_path, name, *[GOOD[name]] * 20, "", bad, *[GOOD[name]] * 5)
    number = 22 + (name in HEADERS)
    with pytest.raises(UserError) as caught:
        import_trace(path, tmp_path / "t.parquet", format_name=name)
    assert f"line {number} is malformed: " in str(caught.value)
    assert reason in str(caught.value)
    assert "--max-malformed" in str(caught.value)
    assert [left.name for left in tmp_path.iterdir()] == ["file"]

    path = written(tmp_path, name, bad, GOOD[name], bad, GOOD[name], bad)
    first = 1 + (name in HEADERS)
    report = import_trace(path, tmp_path / "t.parquet", format_name=name, max_malformed=3)
    assert (report.rows, report.malformed) == (2, 3)
    assert [entry["line"] for entry in report.malformed_first] == [first, first + 2, first + 4]
    assert all(reason in entry["reason"] for entry in report.malformed_first)
    table, provenance = read_trace(tmp_path / "t.parquet")
    assert len(set(table["offset_bytes"].to_pylist())) == 1
    assert provenance["malformed"] == 3
    assert provenance["lost"] == {"malformed": 3}


def test_an_import_above_the_limit_lists_the_malformed_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "spc", "x", GOOD["spc"], "y", "z")
    with pytest.raises(
        UserError, match=r"more than 2 malformed lines, the first are 1 \(has 1 columns.*, 3 \(.*, 4 \("
    ):
        import_trace(path, tmp_path / "t.parquet", format_name="spc", max_malformed=2)


@pytest.mark.parametrize("bad", ["x", "", "0,a,512,w,0", "0,1,512,z,0"])
def test_only_ten_malformed_lines_are_listed(tmp_path: Path, bad: str) -> None:
    path = written(tmp_path, "spc", *[bad, ""] * 150, GOOD["spc"])
    report = import_trace(path, tmp_path / "t.parquet", format_name="spc", max_malformed=10_000)
    assert report.rows == 1
    assert report.malformed == (150 if bad else 0)
    assert [entry["line"] for entry in report.malformed_first] == ([*range(1, 21, 2)] if bad else [])


def test_an_endless_line_is_malformed(tmp_path: Path) -> None:
    path = written(tmp_path, "spc", GOOD["spc"], "0,1,512,w,0." + "0" * 10_000_000, GOOD["spc"])
    report = import_trace(path, tmp_path / "t.parquet", format_name="spc", max_malformed=1)
    assert report.rows == 2
    assert report.malformed_first == [{"line": 2, "reason": "is longer than 1048576 bytes"}]


def test_a_last_line_without_newline_is_imported_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(f"{GOOD['spc']}\n{GOOD['spc']}")
    report = import_trace(path, tmp_path / "t.parquet")
    assert (report.rows, report.unterminated) == (2, True)


def record(version: int, command: int = 0x28, lbn: int = 8, time_us: int = 100) -> bytes:
    return struct.pack("<HHIIIQQQ", command, version << 8, 1, 4096, 1, lbn, time_us, 5)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (record(3), "is not of version 2"),
        (record(2, command=0x12), "its SCSI command is not a read, write or cache synchronisation"),
        (record(2, lbn=1 << 60), "its address is beyond 2^63 bytes"),
        (record(2, time_us=1 << 63), "its time is beyond 2^62 us"),
    ],
)
def test_malformed_records_of_vscsi(tmp_path: Path, bad: bytes, reason: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(record(2) * 100 + bad + record(2))
    with pytest.raises(UserError) as caught:
        import_trace(path, tmp_path / "t.parquet", format_name="vscsi")
    assert f"record 101 is malformed: {reason}" in str(caught.value)
    report = import_trace(path, tmp_path / "t.parquet", format_name="vscsi", max_malformed=1)
    assert (report.rows, report.malformed_first) == (101, [{"record": 101, "reason": reason}])


def test_a_truncated_vscsi_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(record(2) * 3 + record(2)[:-1])
    with pytest.raises(UserError, match="record 4 is malformed: is cut off after 39 of 40 bytes"):
        import_trace(path, tmp_path / "t.parquet")


def test_a_time_span_above_146_years_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "alibaba", "1,R,0,512,0", "1,R,0,512,4611686018427388")
    with pytest.raises(UserError, match="the time of line 2 is more than 146 years after the first"):
        import_trace(path, tmp_path / "t.parquet")
