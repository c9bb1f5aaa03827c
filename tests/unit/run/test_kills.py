"""A chain on the virtual clock is killed before each of its file changes and run again: the result is the same.

The chain runs in a separate process and gets SIGKILL, so that no handler runs and nothing is flushed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import in_memory
import pytest
from chaos_results import essence, interrupted, unfinished
from made_chain import chain, in_a_process, plan_in

from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.checksums import altered
from drivelab.recording.writer import Recording, read_journal
from drivelab.run.condition import purge
from drivelab.virtual.faults import Fault, set_faults
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

CHANGES = {"os.rename", "os.remove", "os.link", "os.truncate", "os.mkdir", "os.rmdir"}


def killed_at(plan: Plan, folder: Path, number: int) -> bool:
    """Kill the chain before its file change `number`, from 0; return False if it has fewer changes."""

    def act() -> None:
        changes = 0
        results = str(folder / "results")

        def look(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal changes
            writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if not writes and event not in CHANGES:
                return
            if not str(arguments[0]).startswith(results) or "/status" in str(arguments[0]):
                return
            if changes == number:
                os.kill(os.getpid(), signal.SIGKILL)
            changes += 1

        sys.addaudithook(look)
        chain(plan, folder)

    status = in_a_process(act)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    with in_memory.folder() as made:
        plan = plan_in(made / "study")
        chain(plan, made / "study")
        return essence(plan.recording_path)


@pytest.mark.long
def test_a_chain_killed_anywhere_gives_the_undisturbed_recording(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    number = 0
    while True:
        folder = tmp_path / str(number)
        plan = plan_in(folder)
        if not killed_at(plan, folder, number):
            break
        chain(plan, folder)
        assert essence(plan.recording_path) == undisturbed, f"killed before change {number}"
        assert len([name for name in interrupted(plan.recording_path) if name.startswith("cells")]) <= 1
        assert unfinished(folder / "results") == []
        assert altered(plan.recording_path) == {}
        number += 1
    assert number > 100, "the chain must change files this often"
    events = [line["event"] for line in read_journal(plan.recording_path)]
    assert "resumed" not in events


def test_a_chain_killed_at_every_cell_still_finishes(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """Each run finishes at most one more cell."""
    folder = tmp_path / "study"
    plan = plan_in(folder)
    kills = 0
    for number in range(40, 400, 9):
        if not killed_at(plan, folder, number % 60):
            break
        kills += 1
    chain(plan, folder)
    assert kills > 5
    assert essence(plan.recording_path) == undisturbed
    assert unfinished(folder / "results") == []


def test_a_measurement_does_not_depend_on_what_preceded_the_purge(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    folder = tmp_path / "study"
    plan = plan_in(folder)
    state = folder / "results/virtual/MINE-1.state"
    state.parent.mkdir(parents=True)
    drive = VirtualClockDrive(DriveModel.from_mapping("mine", plan.subject["drive"]["virtual"]), state)
    drive.idle(12.34)
    chain(plan, folder)
    assert essence(plan.recording_path) == undisturbed
    assert drive.now_us == 12.34e6


def test_another_run_differs(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    folder = tmp_path / "study"
    first = plan_in(folder)
    second = Plan(first.subject, {**first.context, "run": 2})
    chain(second, folder)
    repeated, before = essence(second.recording_path), undisturbed
    assert repeated["evidence"].keys() == before["evidence"].keys()
    assert repeated["journal"] != before["journal"]


@pytest.fixture
def killed(tmp_path: Path) -> Plan:
    """A measurement of the study that was killed after its first cell."""
    plan = plan_in(tmp_path / "study")
    planned = Path(plan.context["results"], "plans", f"{plan.recording}.json")
    planned.parent.mkdir(parents=True)
    planned.write_text(plan.to_json())

    def act() -> None:
        append = Recording.append

        def and_die(recording: Recording, event: str, **fields: Any) -> None:
            append(recording, event, **fields)
            if event == "cell":
                os.kill(os.getpid(), signal.SIGKILL)

        Recording.append = and_die  # type: ignore[method-assign]  # this process ends soon
        chain(plan, tmp_path / "study")

    assert in_a_process(act) == signal.SIGKILL
    return plan


def test_a_killed_measurement_reserves_its_drive(killed: Plan, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """After a kill the run continues, and the drive's next measurement would purge the drive."""
    other = Plan(killed.subject, {**killed.context, "run": 2})
    with pytest.raises(UserError, match=f"is reserved for {killed.recording}, which was interrupted.*Run again"):
        purge(other, tmp_path / "other.json")
    assert not other.recording_path.parent.joinpath(f"{other.recording_path.name}.part").exists()
    chain(killed, tmp_path / "study")
    assert essence(killed.recording_path) == undisturbed
    assert [path.name for path in killed.recording_path.parent.iterdir()] == [killed.recording_path.name]
    purge(other, tmp_path / "other.json")


def test_a_killed_measurement_without_a_plan_releases_its_drive(killed: Plan, tmp_path: Path) -> None:
    Path(killed.context["results"], "plans", f"{killed.recording}.json").unlink()
    purge(Plan(killed.subject, {**killed.context, "run": 2}), tmp_path / "other.json")


def other_run(plan: Plan) -> Plan:
    return Plan(plan.subject, {**plan.context, "run": 2})


def fail_by_a_fault(plan: Plan, folder: Path) -> None:
    """Run the chain while the drive fails all writes."""
    state = folder / "results/virtual/MINE-1.state"
    set_faults(state, Fault("error", "write"))
    with pytest.raises(UserError, match="Input/output error"):
        chain(plan, folder)
    set_faults(state)


def test_a_failed_measurement_reserves_its_drive_and_resumes(
    killed: Plan, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    fail_by_a_fault(killed, tmp_path / "study")
    with pytest.raises(UserError, match=f"is reserved for {killed.recording}, which failed.*Run again.*remove "):
        purge(other_run(killed), tmp_path / "other.json")
    chain(killed, tmp_path / "study")
    assert essence(killed.recording_path) == undisturbed
    assert [path.name for path in killed.recording_path.parent.iterdir()] == [killed.recording_path.name]
    purge(other_run(killed), tmp_path / "other.json")


def test_a_measurement_that_failed_twice_releases_its_drive(killed: Plan, tmp_path: Path) -> None:
    """Otherwise it would fail again, and block all other measurements of the drive."""
    fail_by_a_fault(killed, tmp_path / "study")
    fail_by_a_fault(killed, tmp_path / "study")
    purge(other_run(killed), tmp_path / "other.json")


def test_a_failed_measurement_that_was_removed_releases_its_drive(killed: Plan, tmp_path: Path) -> None:
    fail_by_a_fault(killed, tmp_path / "study")
    shutil.rmtree(killed.recording_path.with_name(f"{killed.recording_path.name}.part"))
    purge(other_run(killed), tmp_path / "other.json")
