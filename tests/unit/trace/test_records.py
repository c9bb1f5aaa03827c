"""Reading of blktrace files, and refusals."""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from block_layer import BlockLayer
from block_layer_parts import Setup
from decoded import decoded_folder
from trace_files import by_cpu, record_bytes, write_capture, write_records

from drivelab.core.errors import UserError
from drivelab.trace import records
from drivelab.trace.formats.common.importing import import_trace

READ = (100, "Q", "R", 8, 4096)


def one_file(folder: Path, data: bytes) -> Path:
    (folder / "trace.blktrace.0").write_bytes(data)
    return folder


def test_payloads_are_skipped(tmp_path: Path) -> None:
    data = record_bytes(READ, pdu=b"\0" * 8) + record_bytes((200, "C", "R", 8, 4096))
    decoded = decoded_folder(one_file(tmp_path, data))
    assert decoded.times == [(0, None, 100)]
    assert decoded.summary["lost"] == {}


def test_notes_name_later_processes(tmp_path: Path) -> None:
    note = record_bytes(READ, pid=4711, pdu=b"sqlite3\0garbage", action=records.NOTIFY)
    message = record_bytes(READ, pid=4712, pdu=b"drivelab: start", action=records.NOTIFY | 2)
    requests = b"".join(record_bytes(READ, pid=pid) for pid in (4711, 4712))
    decoded = decoded_folder(one_file(tmp_path, record_bytes(READ, pid=4711) + note + message + requests))
    assert decoded.requests["process"].tolist() == ["", "sqlite3", ""]


def test_a_cgroup_id_before_the_payload_is_skipped(tmp_path: Path) -> None:
    note = record_bytes(READ, pid=9, pdu=b"12345678fio\0", action=records.NOTIFY | 1 << 8)
    cut = record_bytes(READ, pdu=b"12345678" + (12).to_bytes(8, "big"), action=13 | 1 << 8 | records.READ)
    ends = b"".join(record_bytes((t, "D", "R", s, 2048)) for t, s in ((200, 12), (300, 8)))
    decoded = decoded_folder(one_file(tmp_path, note + record_bytes(READ, pid=9) + cut + ends))
    assert decoded.requests[["process", "dispatch_ns", "pieces"]].to_numpy().tolist() == [["fio", 100, 2]]


def test_version_8_has_more_bits_for_the_action(tmp_path: Path) -> None:
    zeroes = records.WRITE | 1 << (16 + 22)
    data = b"".join(record_bytes(READ, version=version, action=1 | zeroes) for version in (7, 8))
    decoded = decoded_folder(one_file(tmp_path, data))
    assert decoded.requests["operation"].tolist() == ["write", "write-zeroes"]


NOTE = record_bytes(READ, pdu=b"fio\0", action=records.NOTIFY)
LAST = record_bytes(READ, pdu=b"12345678")


@pytest.mark.parametrize(
    ("data", "events", "lost"),
    [
        (b"".join(record_bytes(READ, sequence=n) for n in (41, 42, 45, 46, 50)), 5, {"sequence_gaps": 2 + 3}),
        (record_bytes(READ, sequence=41) + NOTE + record_bytes(READ, sequence=42), 3, {}),  # notes have no number
        *((record_bytes(READ) + LAST[:-missing], 1, {"truncated_files": 1}) for missing in (1, 40, 48, 55)),
    ],
)
def test_missing_and_incomplete_records_are_losses(
    tmp_path: Path, data: bytes, events: int, lost: dict[str, int]
) -> None:
    summary = decoded_folder(one_file(tmp_path, data)).summary
    assert (summary["events"], summary["lost"]) == (events, lost)


def test_a_missing_cpu_file_is_a_loss(tmp_path: Path) -> None:
    folder = write_capture(tmp_path / "c", *([READ] for _ in range(4)))
    (folder / "trace.blktrace.2").unlink()
    assert decoded_folder(folder).summary["lost"] == {"missing_cpu_files": 1}
    (folder / "capture.json").write_text('{"cpus": [0, 1, 3]}')
    assert decoded_folder(folder).summary["lost"] == {}, "the report lists the CPUs"
    (folder / "trace.blktrace.3").unlink()
    assert decoded_folder(folder).summary["lost"] == {"missing_cpu_files": 1}


def test_times_that_go_back_are_sorted_nearby_and_counted_far_off(tmp_path: Path) -> None:
    nearby = [(time_ns, "Q", "R", 8 * time_ns, 4096) for time_ns in (1, 5, 3, 4, 2, 6)]
    decoded = decoded_folder(write_capture(tmp_path / "near", nearby))
    assert (decoded.requests["queue_ns"] * 4096 + 4096 == decoded.requests["offset_bytes"]).all()
    assert decoded.unmatched == {"undispatched": 6}
    far = [(1000 + n, "Q", "R", 8, 4096) for n in range(30_000)] + [(5, "Q", "R", 16, 4096)]
    decoded = decoded_folder(write_capture(tmp_path / "far", far))
    assert decoded.unmatched == {"time_backwards": 1, "undispatched": 30_001}
    assert decoded.requests["queue_ns"].is_monotonic_increasing


def test_events_of_several_devices_need_a_choice(tmp_path: Path) -> None:
    folder = one_file(tmp_path, record_bytes(READ) + record_bytes((150, "Q", "R", 16, 4096), device=259 << 20 | 3))
    with pytest.raises(UserError, match="devices 1:0 and 259:3; choose one with --device"):
        decoded_folder(folder)
    decoded = decoded_folder(folder, device="259:3")
    assert decoded.requests["offset_bytes"].tolist() == [16 * 512]
    assert decoded.summary["other_devices"] == 1
    with pytest.raises(UserError, match="'sda' is not MAJOR:MINOR"):
        decoded_folder(folder, device="sda")


@pytest.mark.parametrize(
    ("magic", "reason"),
    [
        (struct.pack("<I", records.MAGIC | 9), "version 9"),
        (struct.pack(">I", records.MAGIC | 7), "big-endian"),
        (b"PAR1", "no blktrace record"),
    ],
)
def test_other_formats_are_refused(tmp_path: Path, magic: bytes, reason: str) -> None:
    folder = one_file(tmp_path, record_bytes(READ) + magic + record_bytes(READ)[4:])
    with pytest.raises(UserError, match=f"trace.blktrace.0: .*{reason}.* at byte 48"):
        decoded_folder(folder)


def test_files_of_a_capture_are_in_cpu_order(tmp_path: Path) -> None:
    folder = write_capture(tmp_path / "c", *([READ] for _ in range(11)))
    names = [path.name for path in records.cpu_files(folder).values()]
    assert names == [f"trace.blktrace.{cpu}" for cpu in range(11)]
    assert records.cpu_files(folder / "trace") == records.cpu_files(folder)
    assert records.cpu_files(folder / "trace.blktrace.1") == records.cpu_files(folder)


def test_no_capture_or_several_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no capture"):
        records.cpu_files(tmp_path)
    with pytest.raises(UserError, match="no capture"):
        records.cpu_files(tmp_path / "absent" / "trace")
    for name in ("a.blktrace.0", "b.blktrace.0"):
        (tmp_path / name).touch()
    with pytest.raises(UserError, match="several captures"):
        records.cpu_files(tmp_path)
    assert records.cpu_files(tmp_path / "b") == {0: tmp_path / "b.blktrace.0"}


@pytest.mark.skipif(shutil.which("blkparse") is None, reason="blkparse is not installed")
@pytest.mark.parametrize("name", ["dump.bin", "other.blktrace.0"])
def test_a_merged_dump_is_complete_under_any_name(name: str, tmp_path: Path) -> None:
    made = BlockLayer(Setup(cgroups=False, cpus=3), seed=5).records
    # The kernel puts an unplug into the category `queue`; blkparse leaves out records of no category.
    events = [replace(event, action=event.action | (0 if event.action >> 16 else 1 << 20)) for event in made]
    folder = write_records(tmp_path / "c", *by_cpu(events, 3))
    run = ["blkparse", "-q", "-O", "-i", "trace", "-d", f"../{name}"]
    subprocess.run(run, cwd=folder, capture_output=True, check=True)
    expected, dump = decoded_folder(folder), decoded_folder(tmp_path / name)
    assert dump.summary == expected.summary
    assert dump.summary["lost"] == {}
    for requests in (expected.requests, dump.requests):  # the first record is a note in the files of the CPUs alone
        requests[["complete_ns", "dispatch_ns", "queue_ns"]] -= requests["queue_ns"][0]
    pd.testing.assert_frame_equal(dump.requests, expected.requests)
    assert expected.requests["process"].nunique() > 1


def test_a_merged_dump_beside_its_capture_lacks_no_file(tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(record_bytes(READ, 0) + record_bytes(READ, 1))
    (tmp_path / "capture.json").write_text('{"cpus": [0, 1], "realtime_offset_ns": 5, "lost": {"overrun": 2}}')
    decoded = decoded_folder(tmp_path / "dump")
    assert decoded.summary["lost"] == {"overrun": 2}
    assert "first_event" not in decoded.provenance


def test_compressed_files_of_a_capture_are_refused_with_the_command(tmp_path: Path) -> None:
    (tmp_path / "dump").write_bytes(gzip.compress(record_bytes(READ)))
    with pytest.raises(UserError, match=r"dump: is compressed with gzip; unpack it first: gunzip < .*dump > unpacked"):
        decoded_folder(tmp_path / "dump")
    folder = write_capture(tmp_path / "a folder", [READ], [READ])
    for cpu in (0, 1):
        path = folder / f"trace.blktrace.{cpu}"
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    for source in ("", "trace", "trace.blktrace.0.gz"):
        with pytest.raises(UserError) as refused:
            decoded_folder(folder / source)
        assert str(refused.value).endswith(f"unpack them first: gunzip '{folder}/trace'.blktrace.*.gz")
    subprocess.run(["sh", "-c", str(refused.value).rpartition(": ")[2]], check=True)
    assert decoded_folder(folder).summary["lost"] == {}


@pytest.mark.parametrize("version", [7, 8])
def test_an_import_of_a_binary_file_names_the_right_command(version: int, tmp_path: Path) -> None:
    for name, data in (("raw", record_bytes(READ, version=version)), ("raw.gz", gzip.compress(record_bytes(READ)))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError, match=r"is a binary file of blktrace; decode it, .* drivelab trace decode"):
            import_trace(tmp_path / name, tmp_path / "t.parquet")
