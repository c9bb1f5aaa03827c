"""Files on file systems that drivelab makes on a virtual drive in real time: real mounts, real processes killed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from leftovers import processes
from made_plans import DRIVE, made_plan
from stages import conditioned
from waits import DRIVELAB, wait_until

from drivelab.cli.measure import runner
from drivelab.collect.collect import collect
from drivelab.collect.conditions import conditions
from drivelab.core import private
from drivelab.core.errors import UserError
from drivelab.core.units import parse_size
from drivelab.drives import signatures
from drivelab.fio.job_run import run_fio
from drivelab.plan.file_system import LEAST_BYTES, FileSystem
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run import file_system_device as making
from drivelab.run import guest_device
from drivelab.run.device import open_device
from drivelab.run.measure import measure
from drivelab.virtual import manage

pytestmark = [pytest.mark.device, pytest.mark.single, pytest.mark.usefixtures("run_directory")]

MIB = 1 << 20
CAPACITY = {"ext4": "32MiB", "xfs": "320MiB", "btrfs": "256MiB", "f2fs": "128MiB"}
FILL = {"pattern": "sequential", "block_size_bytes": MIB, "capacity_multiple": 1, "queue_depth": 4}
READ: dict[str, Any] = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 1,
                        "queue_depth": 4, "runtime_s": 0.1}  # fmt: skip
COMMIT = {**READ, "pattern": "sequential", "read_share": 0, "queue_depth": 1, "synchronous": True}


def missing(kind: str) -> str | None:
    """Return why this host cannot make and mount a type, or None."""
    try:
        making.refuse_unready(FileSystem(kind))
    except UserError as error:
        return str(error)
    return None


def plan_of(
    folder: Path, kind: str = "ext4", cells: tuple[dict[str, Any], ...] = (READ, COMMIT), **file_system: Any
) -> Plan:
    """Return a plan of one round of cells on a file system, on a drive without timing."""
    spec = FileSystem(kind, **file_system)
    loop = {"cells": [dict(cell) for cell in cells], "order": "fixed", "cold_rounds": 0, "until": {"rounds": 1}}
    plan = made_plan(
        folder, [{"loop": loop}], {"purge": "auto", "fill": FILL, "settle_s": 0.0}, clock="wall",
        model={"capacity": CAPACITY[kind], "enabled": False}, file_system=spec.to_mapping(),
    )  # fmt: skip
    return Plan({**plan.subject, "class": {**plan.subject["class"], "name": "client"}}, plan.context)


def mounted() -> list[str]:
    return [
        line for line in Path("/proc/mounts").read_text().splitlines() if f" {private.run_directory()}/mount." in line
    ]


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    assert mounted() == []
    assert list(private.run_directory().glob("mount*")) == []


@pytest.mark.parametrize("kind", LEAST_BYTES)
def test_a_file_on_a_new_file_system_is_measured(kind: str, tmp_path: Path) -> None:
    if (reason := missing(kind)) is not None:
        pytest.skip(reason)
    plan = plan_of(tmp_path, kind, mount=("noatime",))
    seal = conditioned(plan, tmp_path)
    assert json.loads(seal.read_text()) == {"stage": "nothing"}, "a mounted file system lasts in one process only"
    measure(plan, seal)
    lines = list(read_journal(plan.recording_path))
    assert [line["event"] for line in lines if line["event"] in ("purge", "file_system", "fill", "cell")] == [
        "purge", "file_system", "fill", "cell", "cell",
    ]  # fmt: skip
    (fill,) = [line for line in lines if line["event"] == "fill"]
    file_bytes = FileSystem(kind).file_bytes(parse_size(CAPACITY[kind]))
    assert fill["bytes"] == file_bytes, "the fill writes the file once"
    identity = json.loads((plan.recording_path / "identity.json").read_text())
    assert (identity["file_system"], identity["file_bytes"]) == (kind, file_bytes)
    assert "noatime" in identity["mount_options"].split(",")
    assert identity["composition"].startswith(kind)
    assert DRIVE in identity["composition"], "the drive below is named"
    facets = {row.facet: row.value for row in conditions([plan.recording_path], {}).itertuples()}
    assert facets["file system"] == kind
    assert facets["mkfs"].endswith(" ".join(making.arguments(FileSystem(kind))))
    cells = collect(plan.recording_path, reduced=False)["cells"]
    assert cells["unsound"].isna().all()
    assert (cells["iops"] > 0).all()


def test_the_reads_reach_the_drive_and_the_commits_flush_it(tmp_path: Path) -> None:
    """Sparse blocks or the page cache would leave the drive untouched."""
    plan = plan_of(tmp_path)
    measure(plan, conditioned(plan, tmp_path))
    read, commit = collect(plan.recording_path, reduced=False)["cells"].sort_values("cell").itertuples()
    counters = manage.counters(DRIVE)
    assert counters["host_read_bytes"] >= read.read_ios * 4096 > 0
    assert counters["host_write_bytes"] >= FileSystem("ext4").file_bytes(32 * MIB) + commit.write_ios * 4096


def test_the_drive_is_held_and_locked_against_others_while_it_is_mounted(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    with open_device(plan) as device:
        device.make_file_system()
        (line,) = mounted()
        with pytest.raises(OSError, match="busy"):
            os.open(line.split()[0], os.O_RDONLY | os.O_EXCL)
        with pytest.raises(UserError, match="used by another drivelab process"), open_device(plan):
            pass
    assert mounted() == []


@pytest.mark.skipif(missing("btrfs") is not None, reason=str(missing("btrfs")))
def test_a_btrfs_left_on_the_drive_does_not_lock_it_out(tmp_path: Path) -> None:
    """A btrfs of one drive belongs to no other drive, so the guard approves the drive for the next measurement."""
    plan = plan_of(tmp_path, "btrfs")
    with open_device(plan) as device:
        device.make_file_system()
        name = device.name
    (left,) = signatures.read([name])
    assert (left.kind, left.membership) == ("btrfs", None)
    with open_device(plan) as device:  # as another measurement, whose protocol does not purge
        device.make_file_system()


def test_a_re_made_file_system_is_the_only_one(tmp_path: Path) -> None:
    """The mark of an earlier btrfs lies where mkfs.ext4 does not write."""
    if (reason := missing("btrfs")) is not None:
        pytest.skip(reason)
    plan = plan_of(tmp_path, "btrfs")
    for kind in ("btrfs", "ext4"):
        subject = {**plan.subject, "file_system": FileSystem(kind).to_mapping()}
        with open_device(Plan(subject, plan.context)) as device:
            device.make_file_system()
            name = device.name
        assert [signature.kind for signature in signatures.read([name])] == [kind]


def test_a_bad_option_is_refused_with_the_message_of_mkfs_or_mount(tmp_path: Path) -> None:
    for file_system, message in (
        ({"mkfs": ("-I", "7")}, "making the file system ext4 on /dev/loop.*invalid inode size.*Correct 'mkfs'"),
        ({"mount": ("nosuchoption",)}, "mounting /dev/loop.*bad option.*Correct 'mkfs' or 'mount'"),
    ):
        plan = plan_of(tmp_path, **file_system)
        with pytest.raises(UserError, match=message):
            measure(plan, conditioned(plan, tmp_path))
        assert mounted() == []


def test_a_word_of_mkfs_names_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mke2fs takes its first word without a dash as the device; in the project's folder this would be a file."""
    monkeypatch.chdir(tmp_path)
    Path("study").write_bytes(bytes(16 * MIB))
    plan = plan_of(tmp_path, mkfs=("study",))
    with pytest.raises(UserError, match="making the file system ext4"):
        measure(plan, conditioned(plan, tmp_path))
    assert Path("study").read_bytes() == bytes(16 * MIB)


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, file_share=0.95)
    with pytest.raises(UserError, match=r"a file of 30 MiB does not fit on the new file system ext4.*smaller 'file'"):
        measure(plan, conditioned(plan, tmp_path))


def test_a_full_file_system_fails_the_measurement_clearly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(tmp_path)

    def full(*arguments: Any, **options: Any) -> Any:
        (line,) = mounted()
        folder = Path(line.split()[1])
        free = os.statvfs(folder)
        with (folder / "another").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bfree * free.f_frsize - MIB)
        monkeypatch.setattr(guest_device, "run_fio", run_fio)
        return run_fio(*arguments, **options)

    monkeypatch.setattr(guest_device, "run_fio", full)
    with pytest.raises(UserError, match=r"preconditioning failed:.*[Nn]o space left on device"):
        measure(plan, conditioned(plan, tmp_path))


def test_missing_programs_are_reported_before_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(tmp_path)
    monkeypatch.setattr(making, "program", lambda name: name)
    with pytest.raises(UserError, match=r"mkfs.ext4 is not installed.*Nothing was written.*apt-get install e2fsprogs"):
        measure(plan, conditioned(plan, tmp_path))
    assert manage.status() == []


@pytest.fixture
def at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Plan, Path, subprocess.Popen[bytes]]]:
    """A measuring process in the middle of a cell of ten minutes."""
    monkeypatch.chdir(tmp_path)
    plan = plan_of(tmp_path, cells=({**READ, "runtime_s": 600.0},))
    seal = conditioned(plan, tmp_path)
    (tmp_path / "plan.json").write_text(plan.to_json())
    process = subprocess.Popen([*DRIVELAB, "measure", "plan.json", "--after", str(seal)])
    part = plan.recording_path.with_name(f"{plan.recording_path.name}.part")
    try:
        wait_until(lambda: list(part.glob("cells/*/job.fio")) and len(mounted()) == 1 and processes("fio"), process)
        yield plan, seal, process
    finally:
        process.kill()
        process.wait()
        for pid in processes("fio"):
            os.kill(pid, 9)


def finish(plan: Plan, seal: Path) -> Path:
    """Finish the measurement with a short cell, and return the recording; the plan of `at_work` takes ten minutes."""
    loop = dict(plan.subject["measure"][0]["loop"])
    loop["cells"] = [{**loop["cells"][0], "runtime_s": 0.1}]
    short = Plan({**plan.subject, "measure": [{"loop": loop}]}, plan.context)
    measure(short, seal)
    return short.recording_path


def test_after_kill_9_the_guardian_unmounts(at_work: tuple[Plan, Path, subprocess.Popen[bytes]]) -> None:
    plan, seal, process = at_work
    process.kill()
    process.wait()
    wait_until(lambda: not mounted() and not list(private.run_directory().glob("mount*")))
    assert (finish(plan, seal) / "recording.json").exists()


def test_the_next_stage_unmounts_after_kill_9_of_the_guardian(
    at_work: tuple[Plan, Path, subprocess.Popen[bytes]],
) -> None:
    plan, seal, process = at_work
    guardians = processes("drivelab.trace.capturing.guardian")
    assert len(guardians) == 1
    for pid in (*guardians, process.pid):
        os.kill(pid, 9)
    process.wait()
    wait_until(lambda: not processes("fio"))
    assert len(mounted()) == 1
    assert (finish(plan, seal) / "recording.json").exists()
    assert mounted() == []


def test_a_run_unmounts_before_the_guard_checks_the_drives(
    at_work: tuple[Plan, Path, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard refuses a mounted drive, so nothing else would ever unmount it."""
    _, _, process = at_work
    for pid in (*processes("drivelab.trace.capturing.guardian"), process.pid):
        os.kill(pid, 9)
    process.wait()
    wait_until(lambda: not processes("fio"))
    for name in ("refuse_foreign_campaign", "check_engines"):
        monkeypatch.setattr(runner, name, lambda *_: None)
    seen: list[list[str]] = []
    campaign: Any = SimpleNamespace(to_do=[], approve_drives=lambda: seen.append(mounted()))
    runner._check(campaign)
    assert seen == [[]]


def test_an_interrupted_measurement_unmounts_and_restarts(at_work: tuple[Plan, Path, subprocess.Popen[bytes]]) -> None:
    plan, seal, process = at_work
    process.terminate()
    process.wait()
    assert mounted() == []
    part = plan.recording_path.with_name(f"{plan.recording_path.name}.part")
    assert part.exists()
    again = subprocess.Popen([*DRIVELAB, "measure", "plan.json", "--after", str(seal)], stdout=subprocess.PIPE)
    try:
        assert again.stdout is not None
        line = next(line for line in again.stdout if b"cannot resume" in line)
    finally:
        again.kill()
        again.wait()
    assert b"its file ended with the interrupted process; restarting" in line
    wait_until(lambda: not mounted())
