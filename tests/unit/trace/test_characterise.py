"""The summary row of a trace."""

from __future__ import annotations

from pathlib import Path

from trace_files import write_capture

from drivelab.trace.decode import decode
from drivelab.trace.statistics.count import count, row_of

EVENTS = [
    (1_000_000_000, "Q", "R", 0, 4096), (1_000_000_100, "D", "R", 0, 4096), (1_500_000_000, "Q", "W", 1, 4096),
    (1_500_000_001, "D", "W", 1, 4096), (1_600_000_000, "Q", "FWS", 0, 0), (1_700_000_000, "Q", "D", 8000, 1 << 20),
    (3_000_000_000, "C", "R", 0, 4096),
]  # fmt: skip


def test_row(tmp_path: Path) -> None:
    about = {"backend": "ftrace", "application": "x", "lost": {"overrun": 2}}
    decode(write_capture(tmp_path / "c", EVENTS), tmp_path / "t.parquet", about=about)
    assert row_of(count(tmp_path / "t.parquet", "t")) == {
            "trace": "t", "source": "ftrace", "application": "x", "requests": 4, "reads": 1, "writes": 1, "flushes": 1,
            "discards": 1, "read_bytes": 4096, "write_bytes": 4096, "footprint_bytes": 8192,
            "footprint_block_bytes": 4096, "duration_s": 2.0, "lossy": True, "lost": 2,
    }  # fmt: skip
