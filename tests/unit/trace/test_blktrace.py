"""Capture with blktrace, which a script imitates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.trace.capturing import blktrace
from drivelab.trace.capturing.blktrace import Blktrace, RefusedError
from drivelab.trace.capturing.capture_report import boot_id, started
from drivelab.trace.capturing.disk import Disk

CPUS = os.cpu_count() or 1
WORKS = f"""#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -d) disk=$(basename "$2");; -D) folder=$2;; -o) name=$2;; esac; shift; done
finish() {{
    cat "$folder/../debug/$disk/msgs" >> "$folder/$name.blktrace.0"
    echo "  Total: 9 events (dropped 4), 1 KiB data"
    exit 0
}}
trap finish INT
for cpu in $(seq 0 {CPUS - 1}); do : > "$folder/$name.blktrace.$cpu"; done
while :; do sleep 0.01; done
"""
KILLS = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
"""
REFUSES = "#!/bin/sh\necho 'Thread 1 failed open trace1: 1/Operation not permitted' >&2\nexit 1\n"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    (tmp_path / "debug" / "sda").mkdir(parents=True)
    return tmp_path / "out" / "trace"


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "blktrace"
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def tracer(tmp_path: Path, out: Path) -> Blktrace:
    return Blktrace(Disk("sda"), out)


@pytest.fixture(autouse=True)
def kernel_that_keeps_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write each message into the trace, as the kernel does; keep journals in a folder of the test."""
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setattr("drivelab.trace.capturing.disk.SYS_BLOCK", tmp_path / "block")
    monkeypatch.setattr(blktrace, "DEBUG_BLOCK", tmp_path / "debug")

    def mark(self: Blktrace, text: bytes) -> bool:
        with (blktrace.DEBUG_BLOCK / self._disk.name / "msgs").open("ab") as file:
            file.write(text)
        return True

    monkeypatch.setattr(Blktrace, "_mark", mark)


@pytest.mark.parametrize(
    ("mark", "lost"), [(None, {}), (blktrace.START_MARK, {"start": 1}), (blktrace.END_MARK, {"end": 1})]
)
def test_drops_and_missing_marks_are_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path, mark: bytes | None, lost: dict[str, int]
) -> None:
    install(tmp_path, monkeypatch, WORKS.replace("cat ", f"sed 's/{mark.decode()}//' ") if mark else WORKS)
    capture = tracer(tmp_path, out)
    capture.start()
    assert capture.stop() == {"dropped_events": 4, "start": 0, "end": 0, "blktrace_failed": 0, **lost}
    assert mark or capture.remarks == []
    assert list((tmp_path / "run").glob("*.json")) == []


def test_a_killed_blktrace_is_reported_and_its_trace_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path
) -> None:
    install(tmp_path, monkeypatch, WORKS)
    capture = tracer(tmp_path, out)
    capture.start()
    (tmp_path / "block/sda/trace").mkdir(parents=True)
    (tmp_path / "block/sda/trace/enable").write_text("1\n")
    assert capture._process is not None
    capture._process.kill()
    (tmp_path / "bin/blktrace").write_text(KILLS)
    lost = capture.stop()
    assert {name for name, count in lost.items() if count} == {"blktrace_failed", "start", "end"}
    assert capture.remarks == [f"blktrace ended with status {-signal.SIGKILL}: no message"]
    assert (tmp_path / "bin/calls").read_text() == "-k /dev/sda\n"
    assert list((tmp_path / "run").glob("*.json")) == []


def journal(tmp_path: Path, pid: int, owner: int) -> Path:
    path = tmp_path / "run" / "blktrace-sda.json"
    path.parent.mkdir()
    body = {"boot_id": boot_id(), "pid": pid, "started": started(pid), "trace": str(tmp_path / "block/sda/trace"),
            "owner": owner, "owner_started": started(owner)}  # fmt: skip
    path.write_text(json.dumps(body))
    return path


def test_recovery_keeps_the_trace_of_a_running_capture(tmp_path: Path) -> None:
    path = journal(tmp_path, os.getpid(), os.getpid())
    blktrace.recover()
    assert path.exists()


def test_recovery_refuses_while_an_orphaned_blktrace_runs(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path = journal(tmp_path, os.getpid(), owner.pid)
    owner.kill()
    owner.wait()
    with pytest.raises(UserError, match="is still running"):
        blktrace.recover()
    assert path.exists()


def test_concurrent_captures_of_a_device_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path
) -> None:
    install(tmp_path, monkeypatch, WORKS)
    first = tracer(tmp_path, out)
    first.start()
    with pytest.raises(UserError, match="another drivelab process traces sda"):
        tracer(tmp_path, out).start()
    first.abandon()


def test_a_refusal_by_the_kernel_and_a_missing_blktrace_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: Path
) -> None:
    install(tmp_path, monkeypatch, REFUSES)
    with pytest.raises(RefusedError, match="Operation not permitted"):
        tracer(tmp_path, out).start()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RefusedError, match="blktrace is not installed"):
        tracer(tmp_path, out).start()
