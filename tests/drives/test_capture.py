"""Captures on a loop device of this machine, with the kernel's own tracer."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from captures import MIB, dd
from whole_traces import read_trace

from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.trace.capturing import applications, capture
from drivelab.trace.decode import decode

pytestmark = [
    pytest.mark.device,
    pytest.mark.single,
    pytest.mark.skipif(capture.possible() is not None, reason=f"no capture here: {capture.possible()}"),
    pytest.mark.usefixtures("tracer_untouched"),
]


def test_every_request_of_a_command_is_in_the_trace(device: str, tmp_path: Path) -> None:
    report = capture.capture(device, dd(device), tmp_path / "raw")
    assert not report.lossy
    assert (report.exit_status, report.capacity_bytes, report.logical_block_bytes) == (0, 64 * MIB, 4096)
    assert (report.cpus, report.device_requests) == (list(range(len(report.events_by_cpu))), 50)
    assert sum(report.events_by_cpu.values()) == report.events
    summary = decode(tmp_path / "raw", tmp_path / "trace.parquet")
    frame = read_trace(tmp_path / "trace.parquet")[0].to_pandas()
    mine = frame[(frame["operation"] == "write") & (frame["process"] == "dd")]
    assert mine["offset_bytes"].tolist() == [4096 * (100 + index) for index in range(50)]
    assert (mine["queue_ns"] <= mine["dispatch_ns"]).all()
    assert (mine["dispatch_ns"] <= mine["complete_ns"]).all()
    assert summary["unmatched"] == {}
    assert summary["events"] == report.events


@pytest.mark.skipif(shutil.which("blkparse") is None, reason="blkparse is not installed")
def test_blkparse_reads_the_same_events(device: str, tmp_path: Path) -> None:
    capture.capture(device, dd(device), tmp_path / "raw")
    command = ["blkparse", "-q", "-i", "trace", "-f", "event %a\n"]
    text = subprocess.run(command, cwd=tmp_path / "raw", capture_output=True, text=True, check=True).stdout
    counted = Counter(re.findall(r"^event\s+(\w)", text, re.MULTILINE))
    summary = decode(tmp_path / "raw", tmp_path / "trace.parquet")
    assert summary["events_by_action"] == dict(sorted(counted.items()))


def test_capturing_writes_nothing_to_the_device(device: str, tmp_path: Path) -> None:
    with Path(device).open("r+b") as file:
        file.write(os.urandom(MIB))
    before = hashlib.sha256(Path(device).read_bytes()).hexdigest()
    capture.capture(device, ["true"], tmp_path / "raw")
    assert hashlib.sha256(Path(device).read_bytes()).hexdigest() == before


def spec(command: list[str]) -> applications.Application:
    body = {"title": "t", "file_system": "ext4", "size": "32MiB", "command": command,
            "set_up": [["dd", "if=/dev/zero", "of={mount}/before", "bs=4k", "count=3"]]}  # fmt: skip
    return applications.from_mapping("writer", body, "test")


def test_an_application_becomes_a_trace(device: str, tmp_path: Path) -> None:
    out = tmp_path / "writer.parquet"
    command = ["dd", "if=/dev/zero", "of={mount}/f", "bs=4k", "count=20", "conv=fsync"]
    applications.run_captured("writer", spec(command), device, out)
    requests, provenance = read_trace(out)
    frame = requests.to_pandas()
    data = frame[(frame["operation"] == "write") & ~frame["meta"]]
    assert data["length_bytes"].sum() == 20 * 4096, "the trace must contain the command's data without the set-up"
    assert (frame["preflush"] | (frame["operation"] == "flush")).any()
    assert provenance["application"] == "writer"
    assert provenance["command"] == command
    assert provenance["application_duration_s"] == provenance["duration_s"] > 0
    assert provenance["application_traced"] is True
    assert f"{device} " not in Path("/proc/mounts").read_text()
    assert list(tmp_path.glob("*.capture.*")) == []


def test_a_failed_application_leaves_its_output_and_no_mount(device: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'writer' ended with status 2: ls: cannot access .*nosuchfile"):
        applications.run_captured("writer", spec(["ls", "{mount}/nosuchfile"]), device, tmp_path / "w.parquet")
    assert not (tmp_path / "w.parquet").exists()
    assert "nosuchfile" in next(tmp_path.glob("*.capture.*/stderr")).read_text()
    assert f"{device} " not in Path("/proc/mounts").read_text()


@pytest.mark.parametrize(("kind", "size_mib"), [("ext4", 32), ("xfs", 300), ("btrfs", 128)])
def test_a_cold_file_is_read_from_the_drive(
    attach: Callable[[int, int], str], tmp_path: Path, kind: str, size_mib: int
) -> None:
    body = {"title": "t", "file_system": kind, "size": f"{size_mib}MiB", "command": ["cat", "{mount}/file"],
            "set_up": [["dd", "if=/dev/urandom", "of={mount}/file", "bs=64k", "count=16"]]}  # fmt: skip
    reader = applications.from_mapping("reader", body, "test")
    device = attach(size_mib + 8, 512)
    if shutil.which(f"mkfs.{kind}") is None:
        with pytest.raises(UserError, match=f"'reader' needs mkfs.{kind}, not installed"):
            applications.run_captured("reader", reader, device, tmp_path / "x.parquet")
        return

    def read_bytes(spec: applications.Application, name: str) -> int:
        summary = applications.run_captured("reader", spec, device, tmp_path / name)
        assert (summary["lost"], summary["unmatched"]) == ({}, {})
        frame = read_trace(tmp_path / name)[0].to_pandas()
        return int(frame.loc[(frame["operation"] == "read") & ~frame["meta"], "length_bytes"].sum())

    assert read_bytes(replace(reader, cache="cold"), "cold.parquet") >= MIB
    with pytest.raises(UserError, match="has no queued request"):
        read_bytes(reader, "warm.parquet")


def test_a_drive_that_is_too_small_is_refused(device: str, tmp_path: Path) -> None:
    body = {"title": "t", "file_system": "ext4", "size": "65MiB", "command": ["true"]}
    with pytest.raises(UserError, match=r"has 64MiB, its file system needs 65MiB; use a larger drive"):
        applications.run_captured("x", applications.from_mapping("x", body, "test"), device, tmp_path / "x.parquet")


def test_the_commands_work_together(device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw, out = str(tmp_path / "raw"), str(tmp_path / "t.parquet")
    assert main(["capture", device, "-o", raw, "--", *dd(device, 7)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^application duration: \d+\.\d+ s, measured while tracing", printed, re.MULTILINE)
    assert "lost: nothing\n" in printed
    assert main(["trace", "decode", raw, "-o", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["events_by_action"]["Q"] >= 7
    assert main(["trace", "info", out, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["writes"] == 7
    assert main(["capture", device, "-o", str(tmp_path / "raw2"), "--json", "--", "false"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["exit_status"], report["lost"]) == (1, {})


@pytest.mark.skipif(shutil.which("sfdisk") is None, reason="sfdisk is not installed")
def test_a_partition_is_traced_alone_with_its_own_offsets(attach: Callable[[int, int], str], tmp_path: Path) -> None:
    device = attach(64, 512)
    table = "label: gpt\nstart=4096, size=16384\nstart=32768, size=16384\n"
    subprocess.run(["sfdisk", "--quiet", device], input=table, text=True, check=True, capture_output=True)
    subprocess.run(["partx", "--update", device], check=True, capture_output=True)
    second = f"{device}p2"
    script = " && ".join(" ".join(dd(f"{device}p{number}", 10 * number)) for number in (1, 2))
    report = capture.capture(second, ["sh", "-c", script], tmp_path / "raw")
    assert (report.lost, report.capacity_bytes, report.first_sector) == ({}, 8 * MIB, 32768)
    decode(tmp_path / "raw", tmp_path / "trace.parquet")
    frame = read_trace(tmp_path / "trace.parquet")[0].to_pandas()
    writes = frame[frame["operation"] == "write"]
    assert writes["offset_bytes"].tolist() == [4096 * (100 + index) for index in range(20)]
