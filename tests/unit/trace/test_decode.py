"""Decoding of whole captures: CPUs, counts against blkparse, provenance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from decoded import decoded_folder
from trace_files import Event, record_bytes, write_capture
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.trace import records
from drivelab.trace.decode import decode

CPU0: list[Event] = [
    (1000, "Q", "WSM", 72, 4096), (1010, "G", "WSM", 72, 4096), (1020, "Q", "WSM", 80, 8192),
    (1030, "M", "WSM", 80, 8192), (1040, "D", "WSM", 72, 12288),
    (3000, "Q", "FWFS", 136, 4096), (3010, "D", "FN", 0, 0), (5000, "Q", "RA", 4096, 131072),
    (5010, "X", "RA", 4096, 65536), (5020, "D", "RA", 4096, 65536), (5030, "D", "RA", 4224, 65536),
]  # fmt: skip
CPU1: list[Event] = [
    (2000, "C", "WSM", 72, 12288), (3020, "C", "FN", 0, 0), (3030, "D", "WS", 136, 4096), (3040, "C", "WS", 136, 4096),
    (3050, "D", "FN", 0, 0), (3060, "C", "FN", 0, 0), (3070, "C", "WS", 136, 0),
    (4000, "Q", "FWS", 0, 0), (4010, "D", "FN", 0, 0), (4020, "C", "FN", 0, 0), (4030, "C", "WS", 0, 0),
    (6000, "C", "RA", 4096, 65536), (6010, "C", "RA", 4224, 65536), (7000, "Q", "DS", 800, 1 << 20),
]  # fmt: skip


def test_rows_are_queued_requests_of_all_cpus_in_time_order(tmp_path: Path) -> None:
    summary = decode(write_capture(tmp_path / "c", CPU0, CPU1), tmp_path / "t.parquet")
    table, _ = read_trace(tmp_path / "t.parquet")
    names = ("queue_ns", "dispatch_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")
    rows = [tuple(row[name] for name in names) for row in table.to_pylist()]
    assert rows == [
        (0, 40, 1000, "write", 72 * 512, 4096),
        (20, 40, 1000, "write", 80 * 512, 8192),
        (2000, 2030, 2070, "write", 136 * 512, 4096),
        (3000, 3010, 3030, "flush", 0, 0),
        (4000, 4020, 5010, "read", 4096 * 512, 131072),
        (6000, None, None, "discard", 800 * 512, 1 << 20),
    ]
    flags = [
        [name for name in ("sync", "meta", "fua", "readahead", "preflush") if row[name]] for row in table.to_pylist()
    ]
    assert flags == [["sync", "meta"], ["sync", "meta"], ["sync", "fua", "preflush"], ["sync"], ["readahead"], ["sync"]]
    assert summary["requests"] == 6
    assert summary["unmatched"] == {"undispatched": 1}
    assert summary["lost"] == {}
    assert table["dispatch_id"].to_pylist() == [0, 0, 1, None, 2, None]
    assert table["pieces"].to_pylist() == [1, 1, 1, 0, 2, 0]


def test_the_capture_report_adds_names_offset_and_losses(tmp_path: Path) -> None:
    folder = write_capture(tmp_path / "c", CPU0, CPU1)
    report = {"processes": {"7": "sqlite3"}, "first_sector": 64, "lost": {"overrun": 3, "unread": 0}, "kernel": "6.1",
              "realtime_offset_ns": 1_700_000_000 * 10**9}  # fmt: skip
    (folder / "capture.json").write_text(json.dumps(report))
    decoded = decoded_folder(folder)
    assert decoded.requests["process"][0] == "sqlite3"
    assert decoded.requests["offset_bytes"].tolist()[:4] == [8 * 512, 16 * 512, 72 * 512, 0]
    assert decoded.summary["lost"] == decoded.provenance["lost"] == {"overrun": 3}
    assert decoded.provenance["kernel"] == "6.1"
    assert decoded.provenance["first_event"] == "2023-11-14T22:13:20.000+00:00"


def test_notes_and_passthrough_commands_are_counted_separately(tmp_path: Path) -> None:
    folder = write_capture(tmp_path / "c", CPU0, CPU1)
    with (folder / "trace.blktrace.0").open("ab") as file:
        file.write(record_bytes(CPU0[0], pdu=b"blkid\0", action=records.NOTIFY))
        file.write(record_bytes((8000, "D", "R", 0, 36), action=7 | records.READ | records.PASSTHROUGH))
    summary = decoded_folder(folder).summary
    assert summary["events_by_action"]["notify"] == 1
    assert summary["passthrough"] == 1
    assert summary["requests"] == 6


def test_a_capture_without_requests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has 1 completions \(C\) but no queue .* -a queue -a issue -a complete"):
        decode(write_capture(tmp_path / "c", [(1, "C", "R", 8, 4096)]), tmp_path / "t.parquet")
    with pytest.raises(UserError, match="has no queued request"):
        decode(write_capture(tmp_path / "g", [(1, "G", "R", 8, 4096)]), tmp_path / "t.parquet")
    assert list(tmp_path.glob("*.parquet")) + list(tmp_path.glob(".*")) == []


def test_huge_times_do_not_wrap_around(tmp_path: Path) -> None:
    folder = write_capture(tmp_path / "c", [(1, "Q", "R", 8, 4096), ((1 << 63) + 5, "Q", "R", 16, 4096)])
    decoded = decoded_folder(folder)
    assert decoded.requests["queue_ns"].tolist() == [0, 0]
    assert decoded.unmatched == {"time_backwards": 1, "undispatched": 2}


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ("[1]", "JSON object"), ("{", "not JSON"), ('{"processes": [1]}', "processes"), ('{"cpus": 5}', "cpus"),
        ('{"processes": {"x": "y"}}', "processes"), ('{"lost": {"a": "b"}}', "lost"), ('{"lost": 7}', "lost"),
        ('{"realtime_offset_ns": 1e30}', "realtime_offset_ns"), ('{"first_sector": -1}', "first_sector"),
    ],
)  # fmt: skip
def test_an_invalid_report_is_refused_with_its_key(tmp_path: Path, report: str, reason: str) -> None:
    folder = write_capture(tmp_path / "c", CPU0)
    (folder / "capture.json").write_text(report)
    with pytest.raises(UserError, match=rf"capture\.json: .*{reason}.*; remove the file"):
        decode(folder, tmp_path / "t.parquet")


def test_a_raw_file_is_not_overwritten(tmp_path: Path) -> None:
    folder = write_capture(tmp_path / "c", CPU0)
    with pytest.raises(UserError, match="is also the input and would be lost"):
        decode(folder, folder / "trace.blktrace.0")
    with pytest.raises(UserError, match="is a folder"):
        decode(folder, tmp_path)


def test_the_reason_for_missing_requests_is_reported(tmp_path: Path) -> None:
    folder = write_capture(tmp_path / "c", CPU0)
    with pytest.raises(UserError, match=r"all 11 events belong to other devices; choose another with --device"):
        decode(folder, tmp_path / "t.parquet", device="9:9")
    (folder / "trace.blktrace.0").write_bytes(record_bytes(CPU0[0], pdu=bytes(50))[:60])
    with pytest.raises(UserError, match="a file ends within its first record"):
        decode(folder, tmp_path / "t.parquet")
