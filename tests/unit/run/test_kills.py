"""A chain on the virtual clock is killed before each of its file changes and run again: the result is the same.

The chain runs in a separate process and gets SIGKILL, so that no handler runs and nothing is flushed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chaos_results import essence, interrupted, unfinished
from made_plans import made_plan

from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.recording.checksums import altered
from drivelab.recording.writer import Recording, read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.virtual.faults import Fault, set_faults
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

WRITE = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 4}
STEPS: list[dict[str, Any]] = [
    {"loop": {"cells": [{**WRITE, "runtime_s": 0.02}, {**WRITE, "read_share": 100, "runtime_s": 0.02}],
              "until": {"rounds": 2}, "cold_rounds": 1, "pause_s": 1.5}},
    {"soak": {"cell": {**WRITE, "slice_s": 0.02}, "until": {"time_s": 0.06}}},
    {"idle": {"time_s": 2.5}},
]  # fmt: skip
CONDITION = {"fill": {"pattern": "sequential", "block_size_bytes": 131072, "queue_depth": 8, "capacity_multiple": 0.5},
             "settle_s": 0.5, "rest_s": 0.5}  # fmt: skip
MODEL = {
    "capacity": "1MiB", "over_provisioning": "50%", "pages_per_block": 16, "slc_cache": "128KiB",
    "throttle": {"ambient_c": 30, "limit_c": 31, "resume_c": 30.5, "heat_c_per_mib": 1, "cooling_s": 40, "slowdown": 4},
}  # fmt: skip
CHANGES = {"os.rename", "os.remove", "os.link", "os.truncate", "os.mkdir", "os.rmdir"}


def plan_in(folder: Path) -> Plan:
    folder.mkdir()
    return made_plan(folder, STEPS, CONDITION, model=MODEL)


def chain(plan: Plan, folder: Path) -> None:
    """Run the stages like the workflow: a finished stage does not run again, and an unfinished one loses its output."""
    purged, conditioned, manifest = folder / "purged.json", folder / "conditioned.json", folder / "manifest"
    stages: list[tuple[Path, Callable[[], None]]] = [
        (purged, lambda: purge(plan, purged)),
        (conditioned, lambda: precondition(plan, purged, conditioned)),
        (manifest, lambda: measure(plan, conditioned)),
    ]
    for output, act in stages:
        ended = folder / f"{output.name}.ended"
        if not ended.exists():
            output.unlink(missing_ok=True)
            act()
            ended.touch()


def in_a_process(act: Callable[[], None]) -> int:
    """Run `act` in a child process and return its wait status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


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
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed") / "study"
    plan = plan_in(folder)
    chain(plan, folder)
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
