"""Command, disk, guardian and mounts, without a tracer."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from captures import background
from faults import wait_until

from drivelab.plan.places import ROOT
from drivelab.trace.capturing import command, disk, guardian, mounts
from drivelab.trace.capturing.capture_report import MARK, Outcome, alive, marked, started
from drivelab.trace.capturing.disk import Disk


def run(command_line: list[str], output: Path) -> Outcome:
    pids: list[int] = []
    outcome = command.run(command_line, None, output, lambda: None, 0.05, pids.append)
    assert len(pids) == 1
    return outcome


def test_usage_includes_the_commands_children(tmp_path: Path) -> None:
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + 200_000_000
    work = f'import hashlib; hashlib.sha256(b"x" * {size}).digest()'
    outcome = run(["sh", "-c", f"{sys.executable} -c '{work}'; true"], tmp_path)
    assert outcome.exit_status == 0
    assert outcome.user_s + outcome.system_s > 0.05
    assert outcome.max_rss_bytes is not None
    assert outcome.max_rss_bytes > size
    assert outcome.duration_s > 0


def test_memory_below_the_own_maximum_is_unknown(tmp_path: Path) -> None:
    assert run(["true"], tmp_path).max_rss_bytes is None


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("kill -9 $$", -9)])
def test_the_exit_status_is_reported(tmp_path: Path, script: str, status: int) -> None:
    assert run(["sh", "-c", script], tmp_path).exit_status == status


def test_a_signal_during_the_start_of_a_command_ends_it(tmp_path: Path) -> None:
    process = background(
        f"""
import os, signal, subprocess
from pathlib import Path
from drivelab.trace.capturing import command
class Signalled(subprocess.Popen):
    def __init__(self, *facts, **options):
        super().__init__(*facts, **options)
        os.kill(os.getpid(), signal.SIGINT)
subprocess.Popen = Signalled
try:
    command.run(["sleep", "1000"], None, Path({str(tmp_path)!r}), lambda: None, 0.05, lambda pid: None)
except KeyboardInterrupt:
    print("children:", Path("/proc/thread-self/children").read_text())
""",
        stdout=subprocess.PIPE,
    )
    assert process.communicate()[0] == b"children: \n"


def test_processes_left_by_a_command_are_killed(tmp_path: Path) -> None:
    outcome = run(["sh", "-c", "sleep 1000 & echo $!"], tmp_path)
    assert outcome.exit_status == 0
    left = int((tmp_path / "stdout").read_text())
    while Path(f"/proc/{left}").exists() and Path(f"/proc/{left}/stat").read_text().split()[2] != "Z":
        time.sleep(0.01)


class Sysfs:
    """Block devices in an imitated sysfs."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, **files: str) -> Disk:
        for file, text in files.items():
            path = self.root / name / file.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        return Disk(name)


STAT = "5 0 40 1 7 2 900 1 0 0 0 3 0 64 1 9 1"


def test_disk_facts_come_from_sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "SYS_BLOCK", tmp_path)
    sda = Sysfs(tmp_path).put("sda", size="2048", dev="259:5", stat=STAT, queue__logical_block_size="4096", diskseq="7")
    assert sda.facts() == disk.Facts(1 << 20, 0, 4096, "7")
    assert sda.number == 259 << 20 | 5
    assert sda.completed() == 5 + 7 + 3, "reads, writes and discards, without merges and flushes"


def test_a_missing_disk_has_no_facts() -> None:
    missing = Disk("sdz")
    assert missing.facts() == disk.Facts(0, 0, 0, "")
    assert missing.completed() == 0
    missing.settle()


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["true"])
    start = started(process.pid)
    while Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
        time.sleep(0.01)
    assert not alive(process.pid, start)
    process.wait()
    assert alive(os.getpid(), started(os.getpid()))
    assert not alive(os.getpid(), "0"), "the PID was reused"


def test_recovery_unmounts_only_for_dead_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    for name, start in (("living", started(os.getpid())), ("dead", "0")):
        (tmp_path / f"mount.{name}").mkdir()
        body = {"pid": os.getpid(), "started": start, "mount": str(tmp_path / f"mount.{name}")}
        (tmp_path / f"mount-1-{name}.json").write_text(json.dumps(body))
    mounts.recover_mounts()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mount-1-living.json", "mount.living"]


def test_a_process_that_ends_during_the_search_does_not_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says ESRCH, not ENOENT, for a path below a process that has just ended."""
    monkeypatch.setenv(MARK, "1.2")
    process = subprocess.Popen(["sleep", "1000"])
    # The kernel fills it in a moment after the start.
    wait_until(lambda: bool(Path(f"/proc/{process.pid}/environ").read_bytes()))

    stat = os.stat

    def gone(path: Any, **options: Any) -> os.stat_result:
        if Path(path).name == "environ":
            raise ProcessLookupError
        return stat(path, **options)

    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "stat", gone)
            pids = marked("1.2")
    finally:
        process.kill()
        process.wait()
    assert process.pid in pids


def test_the_guardian_starts_quickly() -> None:
    """Check that the guardian, started with every capture, imports nothing heavy."""
    code = """
import sys
import drivelab.trace.capturing.guardian
print(*sorted({"numpy", "pyarrow", "pandas"} & set(sys.modules)))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == ""


def test_the_guardian_cleans_up_only_after_the_parents_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process closes its files, which wakes the guardian, a moment before its journals count as left."""
    states = [True, True, False]
    monkeypatch.setattr(sys, "argv", ["guardian", "1.5"])
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    monkeypatch.setattr(guardian.signal, "signal", lambda *_: None)
    monkeypatch.setattr(guardian.time, "sleep", lambda _: None)
    monkeypatch.setattr(guardian, "alive", lambda pid, start: (pid, start) == (1, "5") and states.pop(0))
    monkeypatch.setattr(guardian, "recover", lambda: states.append("recovered"))
    guardian.main()
    assert states == ["recovered"]
