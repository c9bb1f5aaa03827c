"""Captures on a loop device of this machine, with the kernel's own tracer."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drivelab.cli import capture as cli
from drivelab.config.schema import ROOT
from drivelab.errors import UserError
from drivelab.fio.job import PERCENTILES
from drivelab.replay.fio_iolog import FioIolog
from drivelab.replay.schedule import prepare_schedule
from drivelab.trace import application, capture, catalogue, ftrace
from drivelab.trace.decode import decode
from drivelab.trace.schema import read_trace

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(capture.possible() is not None, reason=f"no capture here: {capture.possible()}"),
]
MIB = 1 << 20


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    """A loop device of 64 MiB with logical blocks of 4096 bytes."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 * MIB)
    command = ["losetup", "--find", "--show", "--sector-size", "4096", "--direct-io=on", str(image)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device: {done.stderr.strip()}")
    yield done.stdout.strip()
    subprocess.run(["losetup", "--detach", done.stdout.strip()], check=True)


@pytest.fixture(autouse=True)
def tracer_untouched() -> Iterator[None]:
    """Whatever a test does, the tracer is afterwards as it was before."""
    before = tracer_state()
    yield
    assert tracer_state() == before
    assert not list(ftrace.RUN.glob("*.json"))


def tracer_state() -> dict[str, str]:
    names = ["current_tracer", "tracing_on", "trace_clock", *(f"options/{name}" for name in ftrace.OPTIONS)]
    return {name: (ftrace.TRACING / name).read_text() for name in names}


def dd(device: str, count: int = 50) -> list[str]:
    return ["dd", "if=/dev/zero", f"of={device}", "bs=4k", f"count={count}", "oflag=direct", "seek=100"]


def test_every_request_of_a_command_is_in_the_trace(device: str, tmp_path: Path) -> None:
    report = capture.capture(device, dd(device), tmp_path / "raw")
    assert not report.lossy
    assert (report.exit_status, report.capacity_bytes, report.logical_block_bytes) == (0, 64 * MIB, 4096)
    decoded = decode(tmp_path / "raw")
    frame = decoded.requests.to_pandas()
    mine = frame[(frame["operation"] == "write") & (frame["process"] == "dd")]
    assert mine["offset_bytes"].tolist() == [4096 * (100 + index) for index in range(50)]
    assert (mine["queue_ns"] <= mine["dispatch_ns"]).all()
    assert (mine["dispatch_ns"] <= mine["complete_ns"]).all()
    assert decoded.summary["unmatched"] == {}
    assert decoded.summary["events"] == report.events


@pytest.mark.skipif(shutil.which("blkparse") is None, reason="blkparse is not installed")
def test_blkparse_reads_the_same_events(device: str, tmp_path: Path) -> None:
    capture.capture(device, dd(device), tmp_path / "raw")
    command = ["blkparse", "-q", "-i", "trace", "-f", "event %a\n"]
    text = subprocess.run(command, cwd=tmp_path / "raw", capture_output=True, text=True, check=True).stdout
    counted = Counter(re.findall(r"^event\s+(\w)", text, re.MULTILINE))
    assert decode(tmp_path / "raw").summary["events_by_action"] == dict(sorted(counted.items()))


def test_capturing_writes_nothing_to_the_device(device: str, tmp_path: Path) -> None:
    with Path(device).open("r+b") as file:
        file.write(os.urandom(MIB))
    before = hashlib.sha256(Path(device).read_bytes()).hexdigest()
    capture.capture(device, ["true"], tmp_path / "raw")
    assert hashlib.sha256(Path(device).read_bytes()).hexdigest() == before


def test_a_tracer_in_use_is_left_alone(device: str, tmp_path: Path) -> None:
    (ftrace.TRACING / "current_tracer").write_text("blk")
    try:
        with pytest.raises(UserError, match="'blk' is in use by someone else"):
            capture.capture(device, ["true"], tmp_path / "raw")
        assert (ftrace.TRACING / "current_tracer").read_text() == "blk\n"
    finally:
        (ftrace.TRACING / "current_tracer").write_text("nop")


def test_what_cannot_be_captured_is_refused(device: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no block device"):
        capture.capture(str(tmp_path), ["true"], tmp_path / "raw")
    with pytest.raises(UserError, match="no program 'nosuchprogram'"):
        capture.capture(device, ["nosuchprogram"], tmp_path / "raw")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(UserError, match="holds something already"):
        capture.capture(device, ["true"], tmp_path / "full")


def background(code: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    return subprocess.Popen([sys.executable, "-c", code], env=environment)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not condition():
        assert process.poll() is None
        time.sleep(0.01)


def running(argument: str) -> list[str]:
    """Processes with an argument, as a word of their command line."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if argument.encode() in words and b"sleep" in words:
            found.append(path.parent.name)
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_restores_the_tracer_and_ends_the_command(device: str, tmp_path: Path, number: int) -> None:
    span = f"1000.{os.getpid()}"
    code = f"""
from pathlib import Path
from drivelab.trace.capture import capture
capture({device!r}, ["sleep", {span!r}], Path({str(tmp_path / "raw")!r}))
"""
    process = background(code)
    wait_for(lambda: bool(running(span)), process)
    assert (ftrace.TRACING / "current_tracer").read_text() == "blk\n"
    process.send_signal(number)
    assert process.wait() != 0
    assert (ftrace.TRACING / "current_tracer").read_text() == "nop\n"
    assert running(span) == []


def test_after_kill_9_the_next_capture_restores_tracer_and_mount(device: str, tmp_path: Path) -> None:
    span = f"1001.{os.getpid()}"
    code = f"""
from pathlib import Path
from drivelab.trace import application
body = {{"title": "t", "file_system": "ext4", "size": "32MiB", "command": ["sleep", {span!r}]}}
spec = application.from_mapping("x", body, "test")
application.run_captured("x", spec, {device!r}, Path({str(tmp_path / "x.parquet")!r}))
"""
    process = background(code)
    wait_for(lambda: bool(running(span)), process)
    process.kill()
    process.wait()
    while running(span):
        time.sleep(0.01)
    assert (ftrace.TRACING / "current_tracer").read_text() == "blk\n"
    assert f"{device} " in Path("/proc/mounts").read_text()
    capture.recover()
    application.recover_mounts()
    assert (ftrace.TRACING / "current_tracer").read_text() == "nop\n"
    assert f"{device} " not in Path("/proc/mounts").read_text()


def spec(command: list[str]) -> application.Application:
    body = {"title": "t", "file_system": "ext4", "size": "32MiB", "command": command,
            "set_up": [["dd", "if=/dev/zero", "of={mount}/before", "bs=4k", "count=3"]]}  # fmt: skip
    return application.from_mapping("writer", body, "test")


def test_an_application_becomes_a_trace(device: str, tmp_path: Path) -> None:
    out = tmp_path / "writer.parquet"
    command = ["dd", "if=/dev/zero", "of={mount}/f", "bs=4k", "count=20", "conv=fsync"]
    application.run_captured("writer", spec(command), device, out)
    requests, provenance = read_trace(out)
    frame = requests.to_pandas()
    data = frame[(frame["operation"] == "write") & ~frame["meta"]]
    assert data["length_bytes"].sum() == 20 * 4096, "the set-up is not in the trace, the command's data is"
    assert (frame["preflush"] | (frame["operation"] == "flush")).any()
    assert provenance["application"] == "writer"
    assert provenance["command"] == command
    assert f"{device} " not in Path("/proc/mounts").read_text()
    assert list(tmp_path.glob("*.capture.*")) == []


def test_an_application_that_fails_leaves_its_output_and_no_mount(device: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'writer': ended with status 2: ls: cannot access .*nosuchfile"):
        application.run_captured("writer", spec(["ls", "{mount}/nosuchfile"]), device, tmp_path / "w.parquet")
    assert not (tmp_path / "w.parquet").exists()
    assert "nosuchfile" in next(tmp_path.glob("*.capture.*/stderr")).read_text()
    assert f"{device} " not in Path("/proc/mounts").read_text()


def test_a_drive_that_is_too_small_is_refused(device: str, tmp_path: Path) -> None:
    body = {"title": "t", "file_system": "ext4", "size": "65MiB", "command": ["true"]}
    with pytest.raises(UserError, match=r"has 64MiB, its file system needs 65MiB; use a larger drive"):
        application.run_captured("x", application.from_mapping("x", body, "test"), device, tmp_path / "x.parquet")


def test_the_commands_work_together(device: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    cli.add_parser(parser.add_subparsers(required=True))

    def run(*arguments: str) -> int:
        options = parser.parse_args(arguments)
        return int(options.handler(options))

    raw, out = str(tmp_path / "raw"), str(tmp_path / "t.parquet")
    assert run("capture", device, "-o", raw, "--", *dd(device, 7)) == 0
    capsys.readouterr()
    assert run("trace", "decode", raw, "-o", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["events_by_action"]["Q"] >= 7
    assert run("trace", "info", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["writes"] == 7
    assert run("capture", device, "-o", str(tmp_path / "raw2"), "--", "false") == 1


def test_fio_issues_what_was_planned(device: str, tmp_path: Path) -> None:
    schedule = prepare_schedule(catalogue.path_of("sqlite-inserts"), 64 * MIB, 4096)
    planned = schedule.planned()
    job = FioIolog().job(schedule, device, tmp_path, "asap")
    assert PERCENTILES in job
    (tmp_path / "job.fio").write_text(job)
    command = ["fio", "--output-format=json+", "--output=fio.json", "--eta=never", "job.fio"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (result,) = json.loads((tmp_path / "fio.json").read_text())["jobs"]
    for direction in ("read", "write"):
        assert result[direction]["total_ios"] == planned[f"{direction}_ios"]
        assert result[direction]["io_bytes"] == planned[f"{direction}_bytes"]
        assert sum(result[direction]["lat_ns"]["bins"].values()) == planned[f"{direction}_ios"]
    assert result["sync"]["total_ios"] == planned["flush_ios"]
