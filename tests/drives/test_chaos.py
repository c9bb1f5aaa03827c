"""Chaos test in real time: processes of a study are killed and its drive fails, but the study completes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from functools import partial

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
from leftovers import afflict, kill, processes

from drivelab.plan.plan import Plan
from drivelab.recording.checksums import altered
from drivelab.virtual import manage
from drivelab.virtual.faults import Fault

pytestmark = pytest.mark.device
SEED = int(os.environ.get("CHAOS_SEED", "8"))
KILLS = ["measure", "snakemake", "fio", "run", "drive"]
"""`drive` is the server of the virtual drive; killing it loses the drive's state."""
ROUNDS = 16
FAULTS = [Fault("error", "write"), Fault("hang")]


@pytest.mark.long
def test_the_study_completes_and_each_kill_costs_at_most_one_cell(study: FaultStudy) -> None:
    print(f"CHAOS_SEED={SEED}")
    study.shorten_watchdog()
    study.lengthen(ROUNDS)
    chance = random.Random(SEED)
    deck: list[str | Fault] = [*KILLS, chance.choice(FAULTS)]  # tests/drives/faults has each fault
    chance.shuffle(deck)
    plan = study.plan()
    lost_state = 0
    played = 0
    for blow in deck:
        running = study.start_run()
        wait_until(partial(_so_far, plan, len(cells_of(plan)) + chance.randrange(3), running))
        if running.poll() is not None:  # on a slow host the study may complete before the kill
            done = outcome(running)
            assert done.status == 0, done.output
            break
        played += 1
        kept = kept_cells(plan)
        if isinstance(blow, Fault):
            manage.set_fault(DRIVE, blow)
        elif blow == "fio":
            afflict("fio", signal.SIGKILL, running)  # between two cells there is no fio to kill
        else:
            kill(*([running.pid] if blow == "run" else [_server()] if blow == "drive" else processes(blow)))
        done = outcome(running)
        assert "Traceback" not in done.output, done.output
        wait_until(lambda: processes("measure") == processes("snakemake") == processes("fio") == [])
        assert set(kept.values()) <= _evidence(plan), "a finished cell is lost"
        if isinstance(blow, Fault) and blow.kind == "error":
            manage.start(DRIVE, study.model(), kept=study.folder / "results/one/virtual")
            manage.clear_faults(DRIVE)
        lost_state += blow == "drive" or (isinstance(blow, Fault) and blow.kind == "hang")
    done = study.drivelab_run()
    assert done.status == 0, done.output
    check_nothing_left()
    aside = list(plan.recording_path.parent.glob(f"{plan.recording_path.name}.abandoned-*"))
    assert len(aside) <= lost_state, "a recording was restarted without need"
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
    """Check for the measuring process too, because `drivelab run` itself starts fio to get its version."""
    at_work = bool(processes("measure")) and in_the_middle(plan) and len(cells_of(plan)) >= cells
    return at_work or running.poll() is not None


def _evidence(plan: Plan) -> set[bytes]:
    """Return the documents of all cells, in the recording and in abandoned ones."""
    documents = plan.recording_path.parent.glob(f"{plan.recording_path.name}*/cells/*/fio.json")
    return {document.read_bytes() for document in documents}


def _server() -> int:
    (drive,) = manage.status()
    return drive.pid
