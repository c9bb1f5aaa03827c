"""Disturbed captures: other tracers, losses, signals, kill -9, devices that disappear."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from captures import background, dd, running
from waits import wait_until
from whole_traces import read_trace

from drivelab.core.errors import UserError
from drivelab.core.private import run_directory
from drivelab.trace.capturing import capture, ftrace, mounts, tracer
from drivelab.trace.decode import decode

pytestmark = [
    pytest.mark.device,
    pytest.mark.single,
    pytest.mark.skipif(capture.possible() is not None, reason=f"no capture here: {capture.possible()}"),
    pytest.mark.usefixtures("tracer_untouched"),
]
TRACING = tracer.TRACING


@pytest.mark.parametrize(
    ("file", "used", "free", "reason"),
    [
        (TRACING / "current_tracer", "blk", "nop", "another program uses the kernel's tracer 'blk'"),
        (Path("/sys/class/block/NAME/trace/enable"), "1", "0", "another program traces "),
        (TRACING / "events/block/block_rq_issue/enable", "1", "0", "another program uses kernel trace events"),
    ],
)
def test_what_another_program_traces_is_left_alone(
    device: str, tmp_path: Path, file: Path, used: str, free: str, reason: str
) -> None:
    file = Path(str(file).replace("NAME", Path(device).name))
    file.write_text(used)
    try:
        with pytest.raises(UserError, match=reason):
            capture.capture(device, ["true"], tmp_path / "raw", backend="ftrace")
        assert file.read_text() == f"{used}\n"
    finally:
        file.write_text(free)


def test_a_reader_of_the_ring_is_left_alone(device: str, tmp_path: Path) -> None:
    with (
        (TRACING / "per_cpu/cpu0/trace_pipe").open("rb"),
        pytest.raises(UserError, match=r"another process reads|read by another process"),
    ):
        capture.capture(device, ["true"], tmp_path / "raw", backend="ftrace")


def test_impossible_captures_are_refused(device: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a block device"):
        capture.capture(str(tmp_path), ["true"], tmp_path / "raw")
    with pytest.raises(UserError, match="program 'nosuchprogram' is not found"):
        capture.capture(device, ["nosuchprogram"], tmp_path / "raw")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(UserError, match="is not empty"):
        capture.capture(device, ["true"], tmp_path / "full")


def test_a_capture_does_not_trace_its_own_writing(device: str) -> None:
    mounts.make("ext4", 32 << 20, device)
    with mounts.mounted("ext4", device) as mount:
        with pytest.raises(UserError, match=f"is on {device}, so the capture would trace its own writes"):
            capture.capture(device, ["true"], mount / "raw")
        assert not (mount / "raw").exists()


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        (f"echo 0 > {TRACING}/tracing_on", {"tracer_changed", "not_traced"}),
        (f"echo > {TRACING}/trace", {"completions_missing"}),
        ("echo 0 > /sys/class/block/NAME/trace/enable", {"tracer_changed", "not_traced"}),
        (f"for cpu in {TRACING}/per_cpu/*; do dd if=$cpu/trace_pipe_raw of=/dev/null iflag=nonblock count=9; done",
         {"read_by_others", "completions_missing"}),
    ],
)  # fmt: skip
def test_interference_makes_a_capture_lossy(device: str, tmp_path: Path, script: str, kinds: set[str]) -> None:
    script = script.replace("NAME", Path(device).name)
    work = " ".join(dd(device, 400))
    # The device's own counters show losses that leave no mark in the trace.
    order = f"{script}; {work}" if "not_traced" in kinds else f"{work}; {script}; {work}"
    report = capture.capture(device, ["sh", "-c", order], tmp_path / "raw", backend="ftrace")
    assert report.exit_status == 0
    assert report.lost.keys() == kinds
    assert report.lossy
    assert len(report.remarks) >= 1


def test_a_ring_that_is_too_small_reports_its_losses(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ftrace, "MOST_KIB", 64)
    monkeypatch.setattr(ftrace, "LEAST_KIB", 64)
    monkeypatch.setattr(ftrace.Ftrace, "interval_s", 1000.0)
    report = capture.capture(device, dd(device, 3000), tmp_path / "raw", backend="ftrace")
    assert report.lost["dropped_events"] > 3000 * 6 / 4
    assert report.cost.buffer_fill_max is not None
    assert report.cost.buffer_fill_max > 0.9


def test_a_ring_that_is_read_in_time_has_no_losses(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ftrace, "MOST_KIB", 256)
    monkeypatch.setattr(ftrace, "LEAST_KIB", 256)
    monkeypatch.setattr(ftrace.Ftrace, "interval_s", 0.001)
    half_bytes = 256 * 1024 // 2
    # The command waits for each reading of the ring, however late that is: 100 writes need less than half of it.
    script = f"""
        for round in $(seq 50); do
            {" ".join(dd(device, 100))} || exit
            until awk '$1 == "bytes:" && $2 > {half_bytes} {{ full = 1 }} END {{ exit full }}' {TRACING}/per_cpu/*/stats
            do sleep 0.01; done
        done"""
    report = capture.capture(device, ["timeout", "600", "sh", "-c", script], tmp_path / "raw", backend="ftrace")
    assert (report.exit_status, report.lost) == (0, {})
    assert report.cost.drains is not None
    assert report.cost.drains > 1
    assert report.events >= 5000 * 6


def test_a_device_detached_during_a_capture_is_detected(device: str, tmp_path: Path) -> None:
    script = f"{' '.join(dd(device))}; losetup --detach {device}"
    report = capture.capture(device, ["sh", "-c", script], tmp_path / "raw")
    assert report.lost.keys() == {"device_changed"}
    assert report.capacity_bytes == 64 << 20


def capturing(device: str, tmp_path: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start a capture of a program that sleeps; return the process, and the argument of that program."""
    span = f"1000.{os.getpid()}"
    process = background(f"""
from pathlib import Path
from drivelab.trace.capturing.capture import capture
capture({device!r}, ["sleep", {span!r}], Path({str(tmp_path / "raw")!r}), backend="ftrace")
""")
    wait_until(lambda: bool(running("sleep", span)), process)
    return process, span


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_restores_the_tracer_and_ends_the_command(device: str, tmp_path: Path, number: int) -> None:
    process, span = capturing(device, tmp_path)
    assert (TRACING / "current_tracer").read_text() == "blk\n"
    process.send_signal(number)
    assert process.wait() != 0
    assert (TRACING / "current_tracer").read_text() == "nop\n"
    assert running("sleep", span) == []
    assert not (tmp_path / "raw").exists(), "an incomplete capture would block the next capture"


def test_a_concurrent_capture_is_refused(device: str, tmp_path: Path) -> None:
    process, _ = capturing(device, tmp_path)
    try:
        with pytest.raises(UserError, match=r"another drivelab process captures a trace; wait"):
            capture.capture(device, ["true"], tmp_path / "second")
        assert not (tmp_path / "second").exists()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def test_processes_left_by_the_command_are_killed(device: str, tmp_path: Path) -> None:
    span = f"1004.{os.getpid()}"
    script = f"set -m; sleep {span} & setsid sleep {span} & sleep 0.3; true"
    assert capture.capture(device, ["bash", "-c", script], tmp_path / "raw").exit_status == 0
    assert running("sleep", span) == []


def test_flushes_do_not_hide_missing_events(device: str, tmp_path: Path) -> None:
    """The device does not count flushes, so their completions must not replace those of lost reads."""
    script = (
        f"mkfs.ext4 -q {device} && dd if=/dev/zero of={device} bs=4k count=100 seek=2000 oflag=direct,dsync && "
        f"echo 0 > {TRACING}/tracing_on && dd if={device} of=/dev/null bs=4k count=80 iflag=direct; "
        f"echo 1 > {TRACING}/tracing_on"
    )
    report = capture.capture(device, ["sh", "-c", script], tmp_path / "raw", backend="ftrace")
    assert report.lost["completions_missing"] >= 80


def test_empty_flushes_count_on_both_sides(device: str, tmp_path: Path) -> None:
    """The device counts empty flushes as writes, and a write with a flush sequence once."""
    code = f'import os; f = os.open("{device}", os.O_RDWR); [os.fsync(f) for _ in range(5)]'
    script = f"{sys.executable} -c '{code}' && {' '.join(dd(device))} conv=fsync"
    report = capture.capture(device, ["sh", "-c", script], tmp_path / "raw")
    assert (report.exit_status, report.lost) == (0, {})
    decode(tmp_path / "raw", tmp_path / "t.parquet")
    assert read_trace(tmp_path / "t.parquet")[0].to_pandas()["operation"].eq("flush").sum() >= 5


def test_a_drive_error_appears_as_errno_in_the_trace(device: str, tmp_path: Path) -> None:
    """The loop device's file is truncated, so reads beyond its end fail."""
    image = Path(f"/sys/class/block/{Path(device).name}/loop/backing_file").read_text().strip()
    script = f"truncate -s 8M {image}; dd if={device} of=/dev/null bs=4k skip=4000 count=1 iflag=direct"
    report = capture.capture(device, ["sh", "-c", script], tmp_path / "raw")
    assert report.exit_status
    decode(tmp_path / "raw", tmp_path / "t.parquet")
    assert set(read_trace(tmp_path / "t.parquet")[0]["error"].to_pylist()) - {0} == {errno.EIO}


def test_a_command_that_is_killed_ends_its_capture(device: str, tmp_path: Path) -> None:
    script = f"{' '.join(dd(device))}; kill -9 $$"
    report = capture.capture(device, ["sh", "-c", script], tmp_path / "raw")
    assert (report.exit_status, report.lost, report.device_requests) == (-9, {}, 50)


def sleeper(device: str, tmp_path: Path, span: str, prelude: str = "") -> subprocess.Popen[bytes]:
    """Start an application whose command has a child process; `prelude` is code that runs first."""
    command = ["sh", "-c", f"sleep {span} & sleep {span}; true"]
    process = background(f"""
from pathlib import Path
from drivelab.trace.capturing import applications as application
{prelude}
body = {{"title": "t", "file_system": "ext4", "size": "32MiB", "command": {command!r}}}
spec = application.from_mapping("x", body, "test")
application.run_captured("x", spec, {device!r}, Path({str(tmp_path / "x.parquet")!r}), backend="ftrace")
""")
    wait_until(lambda: len(running("sleep", span)) == 2, process)
    assert (TRACING / "current_tracer").read_text() == "blk\n"
    assert f"{device} " in Path("/proc/mounts").read_text()
    return process


SILENT = "from drivelab.trace.capturing.guardian import Guardian; Guardian.session = lambda self, pid: None"


@pytest.mark.parametrize(
    "prelude", ["", SILENT], ids=["command registered", "killed before the command was registered"]
)
def test_after_kill_9_the_guardian_restores_tracer_and_mount(device: str, tmp_path: Path, prelude: str) -> None:
    span = f"1001.{os.getpid()}"
    process = sleeper(device, tmp_path, span, prelude)
    process.kill()
    process.wait()
    wait_until(lambda: not list(run_directory().glob("*.json")))
    assert running("sleep", span) == []


def test_the_next_capture_restores_after_kill_9_of_the_guardian(
    attach: Callable[[int, int], str], tmp_path: Path
) -> None:
    span = f"1002.{os.getpid()}"
    device = attach(64, 4096)
    process = sleeper(device, tmp_path, span)
    guardians = running("-m", "drivelab.trace.capturing.guardian")
    for pid in [*guardians, process.pid, *running("sleep", span)]:
        os.kill(pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: not running("sleep", span))
    assert (TRACING / "current_tracer").read_text() == "blk\n"
    assert f"{device} " in Path("/proc/mounts").read_text()
    capture.recover()
    mounts.recover_mounts()
    assert (TRACING / "current_tracer").read_text() == "nop\n"
    assert f"{device} " not in Path("/proc/mounts").read_text()
