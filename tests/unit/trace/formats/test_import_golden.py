"""Imports of each format against values calculated by hand."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import yaml
from whole_traces import read_trace

from drivelab.trace.formats.common.importing import ImportReport, import_trace


def imported(folder: Path, content: str | bytes, **options: Any) -> tuple[list[dict[str, Any]], ImportReport]:
    """Import a text; return rows and report. By default the format is detected."""
    path = folder / "file"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    report = import_trace(path, folder / "t.parquet", **options)
    table, provenance = read_trace(folder / "t.parquet")
    assert table.num_rows == report.rows
    assert provenance["format_imported"] == report.format
    assert provenance["source"] == "file"
    assert provenance["volume"] == report.volume
    assert provenance["malformed"] == report.malformed
    assert provenance.get("first_event") == report.first_event
    assert provenance["time_resolution_ns"] == report.time_resolution_ns
    return table.to_pylist(), report


def picked(row: dict[str, Any]) -> list[Any]:
    return [row[name] for name in ("queue_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")]


def vscsi_1(command: int, length: int, lbn: int, time_us: int) -> bytes:
    return struct.pack("<IIIHHQQ", 1, length, 1, command, 0x0100, lbn, time_us)


def vscsi_2(command: int, length: int, lbn: int, time_us: int, response_us: int) -> bytes:
    return struct.pack("<HHIIIQQQ", command, 0x0200, 1, length, 1, lbn, time_us, response_us)


GOLDEN = yaml.safe_load(Path(__file__).with_name("golden.yaml").read_text())


@pytest.mark.parametrize("name", GOLDEN)
def test_an_import_has_the_values_calculated_by_hand(tmp_path: Path, name: str) -> None:
    golden = GOLDEN[name]
    rows, report = imported(tmp_path, golden["text"])
    assert [picked(row) for row in rows] == golden["rows"]
    assert {fact: getattr(report, fact) for fact in golden["report"]} == golden["report"]
    assert {column: [row[column] for row in rows] for column in golden["columns"]} == golden["columns"]


def test_vscsi_has_records_with_and_without_responses(tmp_path: Path) -> None:
    rows, report = imported(tmp_path, vscsi_1(0x28, 4096, 8, 100) + vscsi_1(0x8A, 512, 1 << 40, 107))
    assert (report.format, report.volume) == ("vscsi", "")
    assert [picked(row) for row in rows] == [[0, None, "read", 4096, 4096], [7000, None, "write", 512 << 40, 512]]
    rows, report = imported(tmp_path, vscsi_2(0x2A, 65536, 1, 5, 250) + vscsi_2(0x35, 0, 77, 6, 1))
    assert report.operations == {"write": 1, "flush": 1}
    assert [picked(row) for row in rows] == [[0, 250_000, "write", 512, 65536], [1000, 2000, "flush", 0, 0]]


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("10485761234.56", (1048576, 0, 1_234_560_000)),
        ("167772161234.56", (16777216, 0, 1_234_560_000)),
        ("104857681234.56", (1048576, 0, 81_234_560_000)),
        ("10485761234.56    7.00", (1048576, 1_234_560_000, 7_000_000)),
        ("1048576 1234.56", (1048576, 0, 1_234_560_000)),
    ],
)
def test_biosnoop_with_columns_that_run_together(tmp_path: Path, end: str, expected: tuple[int, int, int]) -> None:
    rows, _ = imported(tmp_path, f"99.000000   fio            7       sda       W 8          {end}\n")
    delays = [(row["dispatch_ns"] - row["queue_ns"], row["complete_ns"] - row["dispatch_ns"]) for row in rows]
    assert [(rows[0]["length_bytes"], *delays[0])] == [expected]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_endings_and_blank_lines_do_not_matter(tmp_path: Path, ending: str) -> None:
    lines = ["\ufeff0,1,512,w,0.5", "", "0,2,512,r,0.6", "   ", "0,3,512,r,0.7", "", ""]
    rows, report = imported(tmp_path, ending.join(lines))
    assert [row["offset_bytes"] for row in rows] == [512, 1024, 1536]
    assert (report.malformed, report.unterminated) == (0, False)
