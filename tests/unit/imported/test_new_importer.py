"""The worked example of docs/how-to/importer.md: one file makes an importer."""

from __future__ import annotations

from pathlib import Path

from doors import carried_out

from drivelab.tables import io

TEXT = """\
------------------------------------------------------------------------------
CrystalDiskMark 8.0.4 x64 (C) 2007-2021 hiyohiyo
------------------------------------------------------------------------------
[Read]
  SEQ    1MiB (Q=  8, T= 1):  3557.291 MB/s [   3392.5 IOPS] <  2356.10 us>
  RND    4KiB (Q= 32, T=16):  2356.781 MB/s [ 575386.0 IOPS] <   889.13 us>

[Write]
  RND    4KiB (Q=  1, T= 1):   225.014 MB/s [  54935.1 IOPS] <    18.09 us>

Profile: Default
"""
STEPS = """
import sys
from drivelab.cli.main import main
from drivelab.imported import importers
assert importers()["crystaldiskmark"] == ("crystaldiskmark", "text of CrystalDiskMark 8")
sys.exit(main(sys.argv[1:]))
"""


def test_the_example_imports_tables_and_a_report(tmp_path: Path) -> None:
    source, out, page = tmp_path / "cdm.txt", tmp_path / "out", tmp_path / "page.html"
    source.write_text(TEXT, encoding="utf-8")
    arguments = ("import", "crystaldiskmark", source, "--drive", "p5", "-o", out, "--report", page)
    printed = carried_out("importer.md", tmp_path, STEPS, *arguments)
    assert "p5/imported-crystaldiskmark/all: CrystalDiskMark, 3 values" in printed
    summary = io.read(out / "tables/summary.parquet", "summary")
    assert dict(zip(summary["cell_label"], summary["value"], strict=True)) == {
        "SEQ 1024KiB 100/0 T1Q8": 3392.5,
        "RND 4KiB 100/0 T16Q32": 575386.0,
        "RND 4KiB 0/100 T1Q1": 54935.1,
    }
    assert set(summary["unit"]) == {"IOPS"}
    assert "575,386" in page.read_text(encoding="utf-8")
