"""Drives measured at the same time on the virtual clock: one process each, all recordings or none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import in_memory
import pytest
from head_to_head import protocol
from stages import measured_together

from drivelab.campaign.planning import Campaign
from drivelab.core.errors import UserError
from drivelab.plan.places import ROOT
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording, read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.run.together import measure_together

PROTOCOL = protocol("100ms", "500ms", "300ms", queue_depth=4)
STUDY = """\
name: mine
results: results
clock: virtual
drives: [op7, op28]
measurements:
  - {protocol: head-to-head}
  - {protocol: head-to-head, name: alone, drives: [op28]}
"""


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the measuring processes use the tested library."""
    import drivelab

    monkeypatch.setenv("PYTHONPATH", str(Path(drivelab.__file__).parents[1]))


def planned() -> list[Plan]:
    Path("config/protocols/head-to-head.yaml").write_text(PROTOCOL)
    Path("config/mine.yaml").write_text(STUDY)
    return [entry.plan for entry in Campaign.load("config/mine.yaml").plans]


@pytest.fixture
def plans(project: Path) -> list[Plan]:
    return planned()


@pytest.fixture(scope="module")
def finished() -> Iterator[Path]:
    """A project whose first two plans were measured together, with their plan files and seals."""
    with in_memory.folder() as folder, pytest.MonkeyPatch.context() as patch:
        for name in ("config", "traces"):
            shutil.copytree(ROOT / name, folder / name)
        patch.chdir(folder)
        patch.setenv("PYTHONPATH", str(ROOT / "scripts"))
        measured_together(planned()[:2])
        yield folder


@pytest.fixture
def both(plans: list[Plan], finished: Path) -> list[Plan]:
    """The first two plans, already measured together."""
    shutil.copytree(finished, Path.cwd(), dirs_exist_ok=True)
    return plans[:2]


def files_of(plans: list[Plan]) -> tuple[list[Path], list[Path]]:
    """Return the plan files and seals of conditioned drives."""
    return [Path(f"{plan.drive}.plan") for plan in plans], [Path(f"{plan.drive}.sealed") for plan in plans]


def files(plans: list[Plan]) -> tuple[list[Path], list[Path]]:
    """Condition the drives of plans; return the plan files and seals."""
    for plan, file, sealed in zip(plans, *files_of(plans), strict=True):
        file.write_text(plan.to_json())
        purge(plan, Path(f"{plan.drive}.purged"))
        precondition(plan, Path(f"{plan.drive}.purged"), sealed)
    return files_of(plans)


def events(plan: Plan, event: str, folder: Path | None = None) -> list[dict[str, Any]]:
    return [line for line in read_journal(folder or plan.recording_path) if line["event"] == event]


def part_of(plan: Plan) -> Path:
    return plan.recording_path.with_name(plan.recording_path.name + ".part")


def abandoned(plan: Plan) -> list[str]:
    folders = sorted(plan.recording_path.parent.glob("*.abandoned-*"))
    return [str(line["reason"]) for folder in folders for line in events(plan, "abandoned", folder)]


def test_a_plan_lists_the_drives_measured_with_it(plans: list[Plan]) -> None:
    assert [plan.subject.get("simultaneous") for plan in plans[:2]] == [["VIRTUAL-OP28", "VIRTUAL-OP7"]] * 2
    assert "simultaneous" not in plans[2].subject, "a drive that is measured alone"


def test_one_job_measures_all_drives(plans: list[Plan]) -> None:
    first, second, _ = (plan.recording for plan in plans)
    groups = Campaign.load("config/mine.yaml").together
    assert {name: [plan.recording for plan in group] for name, group in groups.items()} == {
        first: [first, second], second: [first, second]
    }  # fmt: skip


def test_each_run_on_each_platform_is_a_job(plans: list[Plan]) -> None:
    study = Path("config/mine.yaml")
    study.write_text(STUDY + "runs: 3\nplatforms: {a: {host: any}, b: {host: any, scenario: real-world}}\n")
    groups = Campaign.load(study).together
    assert len(groups) == 12
    for group in groups.values():
        assert [plan.sheet_drive for plan in group] == ["op7", "op28"]
        assert len({(plan.drive.partition("@")[2], plan.run) for plan in group}) == 1, "no job mixes platforms or runs"


def test_all_drives_are_measured_and_record_the_others(both: list[Plan]) -> None:
    for plan, other in zip(both, ("op28", "op7"), strict=True):
        assert (plan.recording_path / "recording.json").exists()
        met = events(plan, "together")
        assert [(line["step"], line["with"], line["waited_s"]) for line in met] == [
            (step, [other], 0.0) for step in range(3)
        ]
        assert events(plan, "started-together") == [], "there is no skew in simulated time"
        order = [line["event"] for line in read_journal(plan.recording_path)]
        assert order.index("together") < order.index("soak-begins")
        assert [line["slices"] for line in events(plan, "soak")] == [5, 3]
    before = {path: path.stat().st_mtime_ns for path in Path("results/recordings").rglob("journal.jsonl")}
    (both[0].recording_path / "recording.json").unlink()
    measure_together(*files(both))
    assert not (both[0].recording_path / "recording.json").exists(), "left to the job of the drive"
    measure(both[0], files_of(both)[1][0])
    assert (both[0].recording_path / "recording.json").exists()
    assert {path: path.stat().st_mtime_ns for path in Path("results/recordings").rglob("journal.jsonl")} == before


@pytest.mark.usefixtures("both")
def test_the_result_equals_that_of_a_drive_alone(plans: list[Plan]) -> None:
    """Simulated drives share nothing, so the slices of one must not depend on the others."""
    together = sorted(path.read_text() for path in plans[1].recording_path.rglob("fio.json"))
    Path("results/virtual/VIRTUAL-OP28.state").unlink()
    (_,), (seal,) = files(plans[2:])
    measure(plans[2], seal)
    assert sorted(path.read_text() for path in plans[2].recording_path.rglob("fio.json")) == together


def test_a_lost_recording_repeats_all_drives(both: list[Plan]) -> None:
    shutil.rmtree(both[1].recording_path)
    measure_together(*files(both))
    assert (both[0].recording_path / "recording.json").exists()
    assert Recording(both[1]).complete
    (reason,) = abandoned(both[0])
    assert "start together" in reason
    assert events(both[0], "purge"), "its drive was conditioned again"


def test_a_recording_past_the_last_barrier_is_only_finished(both: list[Plan]) -> None:
    whole, cut = both[0].recording_path, both[1].recording_path
    cut.rename(part_of(both[1]))
    journal = part_of(both[1]) / "journal.jsonl"
    journal.write_text("".join(line for line in journal.read_text().splitlines(True) if '"complete"' not in line))
    before = (whole / "journal.jsonl").read_bytes()
    measure_together(files_of(both)[0], [Path("nothing")] * 2)
    assert Recording(both[1]).complete
    assert (whole / "journal.jsonl").read_bytes() == before


def test_an_interruption_restarts_all_drives(both: list[Plan]) -> None:
    """Both measurements are interrupted after different numbers of slices."""
    for plan, kept in zip(both, (1, 2), strict=True):
        plan.recording_path.rename(part_of(plan))
        journal = part_of(plan) / "journal.jsonl"
        lines = journal.read_text().splitlines(True)
        soaks = [number for number, line in enumerate(lines) if '"event":"soak"' in line]
        journal.write_text("".join(lines[: soaks[kept - 1] + 1]))
        (part_of(plan) / "recording.json").unlink()
    measure_together(*files_of(both))
    for plan in both:
        assert len(events(plan, "soak")) == 2
        assert events(plan, "gap") == []
        (reason,) = abandoned(plan)
        assert "none resumes" in reason


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, None], ids=["killed", "refuses"])
def test_a_failed_drive_ends_all_and_is_named(
    plans: list[Plan], signal_number: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A fault in the processes' library: the second soak of op28 ends its process."""
    both = plans[:2]
    plan_files, seals = files(both)
    act = "raise UserError('op28 is on fire')" if signal_number is None else f"os.kill(os.getpid(), {signal_number})"
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if 'op28.plan' in sys.argv:\n"
        "    from drivelab.core.errors import UserError\n"
        "    from drivelab.run import clock_device\n"
        "    original = clock_device.ClockDevice.run\n"
        "    def run(self, cell, *more, **words):\n"
        "        if cell.read_share == 100:\n"
        f"            {act}\n"
        "        return original(self, cell, *more, **words)\n"
        "    clock_device.ClockDevice.run = run\n"
    )
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ['PYTHONPATH']}")
        end = "was killed by signal SIGKILL" if signal_number else "failed"
        with pytest.raises(UserError, match=f"drive 'op28' {end}"):
            measure_together(plan_files, seals)
    for plan in both:
        assert not plan.recording_path.exists()
        assert len(events(plan, "soak", part_of(plan))) >= 1, "finished slices are kept"
    measure_together(plan_files, seals)
    assert all(Recording(plan).complete for plan in both)
    assert all(abandoned(plan) for plan in both)


def test_killing_the_conductor_ends_all_processes(plans: list[Plan], tmp_path: Path) -> None:
    plan_files, seals = files(plans[:2])
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "if 'measure' in sys.argv:\n"
        "    from drivelab.run import clock_device\n"
        "    def run(self, cell, *more, **words):\n"
        "        os.write(int(os.environ['TELL']), b'%d\\n' % os.getpid())\n"
        "        signal.pause()\n"
        "    clock_device.ClockDevice.run = run\n"
        "    from drivelab.run import together\n"
        "if 'measure-together' in sys.argv:\n"
        "    import subprocess\n"
        "    started = subprocess.Popen\n"
        "    def popen(*words, pass_fds=(), **more):\n"
        "        return started(*words, pass_fds=[*pass_fds, int(os.environ['TELL'])], **more)\n"
        "    subprocess.Popen = popen\n"
    )
    read, write = os.pipe()
    command = [sys.executable, "-c", "import sys; from drivelab.cli.main import main; sys.exit(main())"]
    running = subprocess.Popen(
        [*command, "measure-together", *map(str, plan_files), "--after", *map(str, seals)],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ['PYTHONPATH']}", "TELL": str(write)},
        pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as pipe:
        assert len({pipe.readline() for _ in plan_files}) == 2, "a process for each drive"
        running.kill()
        running.wait()
        assert pipe.read() == "", "the pipe closes when the last process ends"


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [([0], "name the plans of one measurement"), ([0, 2], "alone|at the same time"), ([2], "no other drive")],
)
def test_plans_of_different_measurements_are_refused(plans: list[Plan], chosen: list[int], reason: str) -> None:
    plan_files = []
    for number in chosen:
        plan_files.append(Path(f"{number}.json"))
        plan_files[-1].write_text(plans[number].to_json())
    with pytest.raises(UserError, match=reason):
        measure_together(plan_files, [Path("nothing")] * len(plan_files))
    with pytest.raises(UserError, match="give a seal for each plan"):
        measure_together(plan_files, [])


def test_a_simultaneous_plan_cannot_be_measured_alone(plans: list[Plan]) -> None:
    with pytest.raises(UserError, match="use 'drivelab measure-together'"):
        measure(plans[0], Path("nothing"))
    assert not Path("results").exists()


def test_real_and_simulated_drives_cannot_be_measured_together(plans: list[Plan]) -> None:
    sheet = Path("config/drives.tsv")
    sheet.write_text(sheet.read_text() + "fast\t/dev/disk/by-id/nvme-x\tS1\tyes\t\n")
    study = Path("config/mine.yaml")
    study.write_text(study.read_text().replace("[op7, op28]", "[op7, fast]").replace("[op28]", "[fast]"))
    with pytest.raises(UserError, match=r"measurements\[0\].*op7 would run in simulated time.*remove"):
        Campaign.load(study)
