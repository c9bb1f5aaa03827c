"""In real time: processes of a running study are killed, its drive fails, and it is completed all the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from chaos_results import interrupted, unfinished
from faults import (
    DRIVE,
    FaultStudy,
    cells_of,
    check_nothing_left,
    in_the_middle,
    journal,
    kept_cells,
    outcome,
    wait_until,
)
from leftovers import afflict, end_processes, kill, leftovers, processes

from drivelab.plan.plan import Plan
from drivelab.recording.checksums import altered
from drivelab.virtual import manage
from drivelab.virtual.faults import Fault

pytestmark = pytest.mark.device
SEED = int(os.environ.get("CHAOS_SEED", "8"))
KILLS = ["measure", "snakemake", "fio", "run", "drive"]
"""`drive` is the server of the virtual drive, with which the drive's state is lost."""
ROUNDS = 18
FAULTS = [Fault("error", "write"), Fault("hang")]


@pytest.fixture
def study(tmp_path: Path, run_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultStudy]:
    one = FaultStudy(tmp_path / "project")
    monkeypatch.chdir(one.folder)
    one.shorten_watchdog()
    path = one.folder / "config/one.yaml"
    text = path.read_text().partition("        until:")[0].replace("runtime: 250ms", "runtime: 1s")
    path.write_text(text + f"        until: {{rounds: {ROUNDS}}}\n")
    yield one
    manage.stop(force=True)
    found = leftovers()
    end_processes()
    assert found == []


def test_it_is_completed_with_a_cell_lost_for_each_kill_at_the_most(study: FaultStudy) -> None:
    print(f"CHAOS_SEED={SEED}")
    chance = random.Random(SEED)
    deck: list[str | Fault] = [*KILLS, *FAULTS]
    chance.shuffle(deck)
    plan = study.plan()
    lost_state = 0
    played = 0
    for one in deck:
        running = study.start_run()
        wait_until(partial(_so_far, plan, len(cells_of(plan)) + chance.randrange(3), running))
        if running.poll() is not None:  # on a host that is slow to kill the study may be complete before
            done = outcome(running)
            assert done.status == 0, done.output
            break
        played += 1
        kept = kept_cells(plan)
        if isinstance(one, Fault):
            manage.set_fault(DRIVE, one)
        elif one == "fio":
            afflict("fio", signal.SIGKILL, running)  # between two cells there is none to kill
        else:
            kill(*([running.pid] if one == "run" else [_server()] if one == "drive" else processes(one)))
        done = outcome(running)
        assert "Traceback" not in done.output, done.output
        wait_until(lambda: processes("measure") == processes("snakemake") == processes("fio") == [])
        assert set(kept.values()) <= _evidence(plan), "a finished cell is lost"
        if isinstance(one, Fault) and one.kind == "error":
            manage.start(DRIVE, study.model(), kept=study.folder / "results/one/virtual")
            manage.clear_faults(DRIVE)
        lost_state += one == "drive" or (isinstance(one, Fault) and one.kind == "hang")
    done = study.drivelab_run()
    assert done.status == 0, done.output
    check_nothing_left()
    aside = list(plan.recording_path.parent.glob(f"{plan.recording_path.name}.abandoned-*"))
    assert len(aside) <= lost_state, "begun anew without need"
    places = [plan.recording_path, *aside]
    lost = [cell for place in places for cell in interrupted(place) if cell.startswith("cells")]
    assert len(lost) <= played
    assert played > len(deck) // 2, f"{played} of {deck}"
    lines = journal(plan)
    resumed = sum(line["event"] == "measure" for line in lines) - 1
    assert sum(line["event"] == "gap" for line in lines) >= resumed
    assert altered(plan.recording_path) == {}
    assert unfinished(study.folder / "results/one") == []


def _so_far(plan: Plan, cells: int, running: subprocess.Popen[str]) -> bool:
    """Also `drivelab run` itself has a process of fio, which tells its version."""
    at_work = bool(processes("measure")) and in_the_middle(plan) and len(cells_of(plan)) >= cells
    return at_work or running.poll() is not None


def _evidence(plan: Plan) -> set[bytes]:
    """Documents of all cells, in the recording or beside it."""
    documents = plan.recording_path.parent.glob(f"{plan.recording_path.name}*/cells/*/fio.json")
    return {one.read_bytes() for one in documents}


def _server() -> int:
    (drive,) = manage.status()
    return drive.pid
