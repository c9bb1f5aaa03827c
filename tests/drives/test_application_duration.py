"""Applications timed in real time on a virtual drive: real file systems, real processes killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from application_plans import DRIVE, measured, plan_of, runs_of
from captures import running as processes_with
from stages import conditioned
from waits import DRIVELAB, wait_until

from drivelab.campaign.check import check_engines
from drivelab.collect.collect import collect
from drivelab.core import private
from drivelab.core.errors import UserError
from drivelab.drives.guard import HeldDevice
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.block_device import BlockDevice
from drivelab.run.measure import measure
from drivelab.trace.capturing.capture_report import started
from drivelab.virtual import manage
from drivelab.virtual.faults import Fault

pytestmark = [pytest.mark.device, pytest.mark.single, pytest.mark.usefixtures("run_directory")]

ONCE: dict[str, Any] = {"cold_runs": 0, "until": {"passes": 1}, "fill": None}


@pytest.fixture(autouse=True)
def _nothing_left(project: Path, run_directory: Path) -> Iterator[None]:
    yield
    assert mounts() == []
    assert list(private.run_directory().glob("mount*")) == []


def mounts() -> list[str]:
    devices = [f"{drive.device} " for drive in manage.status()]
    return [line for line in Path("/proc/mounts").read_text().splitlines() if line.startswith(tuple(devices) or "\0")]


def entry(command: list[str], **more: Any) -> str:
    """Configure an application with this command, and return its name."""
    body = {"title": "t", "file_system": "ext4", "size": "24MiB", "command": command, **more}
    Path("config/applications.yaml").write_text(yaml.safe_dump({"mine": body}))
    return "mine"


def shell(script: str, **more: Any) -> str:
    return entry(["sh", "-ec", script], **more)


def evidence(plan: Plan, line: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads((plan.recording_path / line["directory"] / "application.json").read_text()))


def part_of(plan: Plan) -> Path:
    return plan.recording_path.with_name(f"{plan.recording_path.name}.part")


def test_a_shipped_application_runs_and_is_timed() -> None:
    plan = plan_of("sqlite-inserts", "wall", until={"passes": 1})
    cold, warm = measured(plan)
    assert (cold["cold"], warm["cold"]) == (True, False)
    for line in (cold, warm):
        assert line["exit_status"] == 0
        assert "remark" not in line, "the run is marked as simulated"
        assert line["duration_s"] == pytest.approx(line["command_s"] + line["sync_s"])
        assert 0 < line["duration_s"] <= line["ended_s"] - line["started_s"]
        assert min(line["read_bytes"], line["write_bytes"]) > 1 << 20
        whole = evidence(plan, line)
        assert whole["command"][1].endswith("sqlite_inserts.py")
        assert whole["stat_after"]["discard_ios"] == whole["stat_before"]["discard_ios"]
    frame = collect(plan.recording_path, reduced=False)["application_runs"]
    assert frame["counted"].tolist() == [False, True]
    assert frame["duration_s"].tolist() == [cold["duration_s"], warm["duration_s"]]
    assert frame["simulated_from"].isna().all()


def test_the_final_sync_counts() -> None:
    plan = plan_of(shell("dd if=/dev/zero of=data bs=1M count=8"), "wall", **ONCE)
    seal = conditioned(plan)
    manage.set_fault(DRIVE, Fault("delay", "flush", delay_us=200_000))
    measure(plan, seal)
    (line,) = runs_of(plan.recording_path)
    assert line["write_bytes"] >= 8 << 20
    assert line["sync_s"] >= 0.2


def test_runs_discard_no_conditioned_data() -> None:
    """Deleted files and new file systems do not change how full the drive is."""
    script = "dd if=/dev/zero of=data bs=1M count=8 conv=fsync; rm data; sync --file-system ."
    plan = plan_of(shell(script), "wall", until={"passes": 2})
    seal = conditioned(plan)
    before = manage.counters(DRIVE)
    measure(plan, seal)
    after = manage.counters(DRIVE)
    assert after["trimmed_bytes"] == before["trimmed_bytes"]
    assert after["mapped_pages"] == before["mapped_pages"]


def test_every_run_starts_with_a_fresh_file_system() -> None:
    name = shell("test ! -e new; cat given; echo > new", set_up=[["sh", "-c", "echo 42 > given"]], cache="cold")
    plan = plan_of(name, "wall", fill=None, until={"passes": 2})
    for line in measured(plan):
        assert (plan.recording_path / line["directory"] / "stdout").read_text() == "42\n"
        assert line["read_ios"] > 0, "the file was still in memory"


HELD = """
import fcntl, os, sys
device = next(line.split()[0] for line in open("/proc/mounts") if line.split()[1] == sys.argv[1])
locked = os.open(device, os.O_RDONLY)
try:
    fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("locked")
try:
    os.open(device, os.O_RDONLY | os.O_EXCL)
except OSError as error:
    print(error.strerror)
"""


def test_the_drive_is_locked_and_held_while_the_application_runs() -> None:
    plan = plan_of(entry(["{python}", "-c", HELD, "{mount}"]), "wall", **ONCE)
    (line,) = measured(plan)
    assert (plan.recording_path / line["directory"] / "stdout").read_text() == "locked\nDevice or resource busy\n"


def test_a_failed_application_keeps_finished_runs(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    name = shell(f"test ! -e {broken} || {{ echo disk on fire >&2; exit 3; }}")
    plan = plan_of(name, "wall", cold_runs=1, fill=None, until={"passes": 2})
    seal = conditioned(plan)
    run, runs = BlockDevice.application, []

    def breaking(self: BlockDevice, *arguments: Any) -> Any:
        runs.append(1)
        if len(runs) == 2:
            broken.touch()
        return run(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BlockDevice, "application", breaking)
        with pytest.raises(UserError, match=r"run 2 \(warm\).*'mine' ended with status 3: disk on fire"):
            measure(plan, seal)
    assert mounts() == []
    assert [line["event"] for line in read_journal(part_of(plan))][-1] == "failed"
    kept = runs_of(part_of(plan))
    broken.unlink()
    measure(plan, seal)
    lines = runs_of(plan.recording_path)
    assert (lines[:1], [line["run"] for line in lines]) == (kept, [1, 2, 3, 4])
    assert [line["cold"] for line in lines] == [True, True, False, False], (
        "the first run after an interruption must be cold"
    )


def test_a_failed_set_up_leaves_no_mount() -> None:
    plan = plan_of(shell("true", set_up=[["sh", "-c", "echo no cheese >&2; exit 4"]]), "wall", **ONCE)
    with pytest.raises(UserError, match="failed with status 4: no cheese"):
        measure(plan, conditioned(plan))
    assert mounts() == []


def test_a_re_attached_drive_gets_no_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(shell("true"), "wall", **ONCE)
    seal = conditioned(plan)
    written = manage.counters(DRIVE)["host_write_bytes"]
    original = BlockDevice.__init__

    def another(self: BlockDevice, held: HeldDevice, *arguments: Any) -> None:
        original(self, replace(held, node=replace(held.node, diskseq="0")), *arguments)

    monkeypatch.setattr(BlockDevice, "__init__", another)
    with pytest.raises(UserError, match="was swapped or re-attached"):
        measure(plan, seal)
    assert manage.counters(DRIVE)["host_write_bytes"] == written


def test_a_drive_without_permission_gets_no_file_system() -> None:
    """The guard checks again just before drivelab makes each file system."""
    sheet = Path("config/drives.tsv").absolute()
    plan = plan_of(shell(f"sed -i s/yes/no/ {sheet}"), "wall", fill=None, until={"passes": 1})
    with pytest.raises(UserError, match=r"has destructive: no.*Nothing was written"):
        measured(plan)
    assert len(runs_of(part_of(plan))) == 1


def test_missing_programs_are_reported_before_any_write() -> None:
    plan = plan_of(shell("true", requires={"nosuchprogram": "nosuchpackage"}), "wall", **ONCE)
    with pytest.raises(UserError, match=r"nosuchprogram.*apt-get install nosuchpackage. Nothing was written"):
        check_engines([plan])
    with pytest.raises(UserError, match="Nothing was written"):
        conditioned(plan)
    assert manage.status() == []


@pytest.fixture
def at_work(tmp_path: Path) -> Iterator[tuple[Plan, Path, subprocess.Popen[bytes], str]]:
    """A measurement whose application hangs in its second run, until it is killed."""
    span = f"1003.{os.getpid()}"
    flag = tmp_path / "flag"
    script = f"if test -e {flag}; then touch {flag}2; rm {flag}; sleep {span} & sleep {span}; fi; touch {flag}"
    plan = plan_of(shell(f"test -e {flag}2 && exit 0; {script}"), "wall", fill=None, until={"passes": 1})
    seal = conditioned(plan)
    Path("plan.json").write_text(plan.to_json())
    process = subprocess.Popen([*DRIVELAB, "measure", "plan.json", "--after", str(seal)])
    try:
        wait_until(lambda: len(processes_with("sleep", span)) == 2, process)
        assert len(mounts()) == 1
        yield plan, seal, process, span
    finally:
        process.kill()
        process.wait()
        for pid in processes_with("sleep", span):
            os.kill(pid, signal.SIGKILL)


def test_an_interrupted_stage_unmounts_before_it_ends(at_work: tuple[Plan, Path, subprocess.Popen[bytes], str]) -> None:
    plan, _, process, span = at_work
    process.terminate()
    process.wait()
    assert (mounts(), processes_with("sleep", span)) == ([], [])
    assert [line["run"] for line in runs_of(part_of(plan))] == [1]


def test_after_kill_9_the_drive_is_unmounted_and_the_run_repeated(
    at_work: tuple[Plan, Path, subprocess.Popen[bytes], str],
) -> None:
    plan, seal, process, span = at_work
    process.kill()
    process.wait()
    wait_until(lambda: not mounts() and not list(private.run_directory().glob("mount*")))
    assert processes_with("sleep", span) == []
    kept = runs_of(part_of(plan))
    assert [line["run"] for line in kept] == [1]
    measure(plan, seal)
    lines = runs_of(plan.recording_path)
    assert (lines[:1], [line["run"] for line in lines]) == (kept, [1, 2, 3])
    assert [line["cold"] for line in lines] == [True, True, False]
    assert [line["event"] for line in read_journal(plan.recording_path)].count("gap") == 1


def test_the_next_stage_unmounts_after_kill_9_of_the_guardian(
    at_work: tuple[Plan, Path, subprocess.Popen[bytes], str],
) -> None:
    plan, seal, process, span = at_work
    (guardian,) = processes_with("drivelab.trace.capturing.guardian", f"{process.pid}.{started(process.pid)}")
    for pid in (guardian, process.pid, *processes_with("sleep", span)):
        os.kill(pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: not processes_with("sleep", span))
    assert len(mounts()) == 1
    measure(plan, seal)
    assert [line["run"] for line in runs_of(plan.recording_path)] == [1, 2, 3]
