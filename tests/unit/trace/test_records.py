"""Files of blktrace: what is read, what is refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from trace_files import record_bytes, write_capture

from drivelab.errors import UserError
from drivelab.trace import records

READ = (100, "Q", "R", 8, 4096)


def test_payloads_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "trace.blktrace.0"
    path.write_bytes(record_bytes(READ, pdu=b"\0" * 8) + record_bytes((200, "C", "R", 8, 4096)))
    found = records.read_records(path)
    assert found.records["time_ns"].tolist() == [100, 200]
    assert found.records["bytes"].tolist() == [4096, 4096]
    assert (found.sequence_gaps, found.truncated_bytes, found.processes) == (0, 0, {})


def test_notes_name_the_processes(tmp_path: Path) -> None:
    path = tmp_path / "trace.blktrace.0"
    note = record_bytes(READ, pid=4711, pdu=b"sqlite3\0garbage", action=records.NOTIFY | records.NOTIFY_PROCESS)
    message = record_bytes(READ, pid=4712, pdu=b"drivelab: start", action=records.NOTIFY | 2)
    path.write_bytes(note + message)
    assert records.read_records(path).processes == {4711: "sqlite3"}


def test_gaps_in_the_sequence_are_losses(tmp_path: Path) -> None:
    path = tmp_path / "trace.blktrace.0"
    path.write_bytes(b"".join(record_bytes(READ, sequence=n) for n in (41, 42, 45, 46, 50)))
    assert records.read_records(path).sequence_gaps == 2 + 3


def test_notes_have_no_number(tmp_path: Path) -> None:
    path = tmp_path / "trace.blktrace.0"
    note = record_bytes(READ, pdu=b"fio\0", action=records.NOTIFY | records.NOTIFY_PROCESS)
    path.write_bytes(record_bytes(READ, sequence=41) + note + record_bytes(READ, sequence=42))
    assert records.read_records(path).sequence_gaps == 0


@pytest.mark.parametrize("missing", [1, 40, 48, 55])
def test_a_last_record_that_is_not_whole_is_left_out_and_told(tmp_path: Path, missing: int) -> None:
    path = tmp_path / "trace.blktrace.0"
    last = record_bytes(READ, pdu=b"12345678")
    path.write_bytes(record_bytes(READ) + last[:-missing])
    found = records.read_records(path)
    assert len(found.records) == 1
    assert found.truncated_bytes == len(last) - missing


@pytest.mark.parametrize(
    ("magic", "reason"),
    [
        (struct.pack("<I", records.MAGIC | 8), "version 8"),
        (struct.pack(">I", records.MAGIC | 7), "big-endian"),
        (b"PAR1", "no blktrace record"),
    ],
)
def test_other_formats_are_refused(tmp_path: Path, magic: bytes, reason: str) -> None:
    path = tmp_path / "trace.blktrace.0"
    path.write_bytes(record_bytes(READ) + magic + record_bytes(READ)[4:])
    with pytest.raises(UserError, match=f"trace.blktrace.0: .*{reason}.* at byte 48"):
        records.read_records(path)


def test_files_of_a_capture_in_the_order_of_cpus(tmp_path: Path) -> None:
    folder = write_capture(tmp_path / "c", *([READ] for _ in range(11)))
    names = [path.name for path in records.cpu_files(folder)]
    assert names == [f"trace.blktrace.{cpu}" for cpu in range(11)]
    assert records.cpu_files(folder / "trace") == records.cpu_files(folder)


def test_what_is_no_capture_or_several_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no capture"):
        records.cpu_files(tmp_path)
    with pytest.raises(UserError, match="no capture"):
        records.cpu_files(tmp_path / "absent" / "trace")
    for name in ("a.blktrace.0", "b.blktrace.0"):
        (tmp_path / name).touch()
    with pytest.raises(UserError, match="several captures"):
        records.cpu_files(tmp_path)
    assert records.cpu_files(tmp_path / "b") == [tmp_path / "b.blktrace.0"]
