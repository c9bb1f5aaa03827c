"""A process is killed or stopped: fio, the measuring process, Snakemake, the run; and two studies at once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from faults import (
    FaultStudy,
    check_complete,
    check_failed,
    check_nothing_left,
    complete,
    in_the_middle,
    kept_cells,
    outcome,
    wait_until,
)
from leftovers import afflict, kill, leftovers, processes

from drivelab.plan.plan import Plan
from drivelab.run.progress import read_status

pytestmark = pytest.mark.device


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, "fio was killed by signal 9"), (signal.SIGSTOP, "fio issued nothing")]
)
def test_fio_is_killed_or_hangs(conditioned: FaultStudy, number: signal.Signals, words: str) -> None:
    conditioned.shorten_watchdog()
    plan = conditioned.plan()
    running = conditioned.start_measuring()
    wait_until(lambda: in_the_middle(plan), running)
    afflict("fio", number, running)
    check_failed(outcome(running), "drive 'tiny', pts-iops", words, "run again")
    assert processes("fio") == []
    check_complete(plan, conditioned.measure(), kept_cells(plan), gaps=1)


@pytest.mark.parametrize("victim", ["measure", "Snakemake", "drivelab run"])
def test_a_process_of_the_run_is_killed(study: FaultStudy, victim: str) -> None:
    plan = study.plan()
    running = study.start_run()
    wait_until(lambda: in_the_middle(plan), running)
    kill(*([running.pid] if victim == "drivelab run" else processes(victim.lower())))
    done = outcome(running)
    if victim == "drivelab run":
        wait_until(lambda: processes("measure") == processes("snakemake") == processes("fio") == [])
    else:
        check_failed(done, victim, "run again")
        check_nothing_left()
    assert not complete(plan), "an orphan continued to the end"
    kept = kept_cells(plan)
    check_complete(plan, study.drivelab_run(), kept, gaps=1)
    assert leftovers() == []
    study.check_tables()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_cleanly(study: FaultStudy, number: signal.Signals) -> None:
    """Only the run itself gets the signal, as from kill(1); from a terminal, all its processes get it."""
    plan = study.plan()
    running = study.start_run()
    wait_until(lambda: in_the_middle(plan), running)
    running.send_signal(number)
    done = outcome(running)
    check_failed(done, "interrupted", "run again")
    assert done.status == 130
    check_nothing_left()
    kept = kept_cells(plan)
    check_complete(plan, study.drivelab_run(), kept, gaps=1)
    assert leftovers() == []


def test_two_studies_at_once_on_one_drive(study: FaultStudy) -> None:
    """Two studies in one folder take turns."""
    plan = study.plan()
    study.add_study("two")
    first = study.start_run()
    wait_until(lambda: in_the_middle(plan), first)
    (measuring,) = processes("drivelab", "measure")
    os.kill(measuring, signal.SIGSTOP)  # so that the first study still runs when the second one starts
    kept = kept_cells(plan)
    second, other = study.start_run("two"), study.plan("two")
    wait_until(lambda: waits_for_its_turn(other), second)
    os.kill(measuring, signal.SIGCONT)
    check_complete(plan, outcome(first), kept, gaps=0)
    check_complete(other, outcome(second), {}, gaps=0)
    assert leftovers() == []


def waits_for_its_turn(plan: Plan) -> bool:
    """Return whether the status of a plan's study says that it waits for its turn."""
    return any("waits for its turn" in status.text for status in read_status(Path(plan.context["results"])))
