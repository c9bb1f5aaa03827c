"""The drive fails: I/O errors, a hang, a disappearance."""

from __future__ import annotations

import os
import signal

import pytest
from faults import (
    DRIVE,
    SHORT_GRACE,
    FaultStudy,
    cells_of,
    check_complete,
    check_failed,
    check_nothing_left,
    in_the_middle,
    kept_cells,
    outcome,
    wait_until,
)
from leftovers import leftovers

from drivelab.virtual import manage
from drivelab.virtual.faults import Fault

pytestmark = pytest.mark.device


@pytest.mark.parametrize("operation", ["read", "write"])
def test_an_io_error(conditioned: FaultStudy, operation: str) -> None:
    plan = conditioned.plan()
    running = conditioned.start_measuring()
    wait_until(lambda: bool(cells_of(plan)), running)
    manage.set_fault(DRIVE, Fault("error", operation))
    check_failed(outcome(running), "drive 'tiny', pts-iops", "Input/output error", "run again")
    kept = kept_cells(plan)
    assert kept
    manage.clear_faults(DRIVE)
    check_complete(plan, conditioned.measure(), kept, gaps=1)


def test_an_error_during_preconditioning(study: FaultStudy) -> None:
    manage.start(DRIVE, study.model())
    manage.set_fault(DRIVE, Fault("error", "write"))
    check_failed(study.condition(), "drive 'tiny': preconditioning failed", "Input/output error", "run again")
    assert not (study.folder / "conditioned.json").exists()
    manage.clear_faults(DRIVE)
    assert study.condition().status == 0
    check_complete(study.plan(), study.measure(), {}, gaps=0)


def test_a_hang(study: FaultStudy) -> None:
    study.shorten_watchdog()
    plan = study.plan()
    running = study.start_run()
    wait_until(lambda: in_the_middle(plan), running)
    kept = kept_cells(plan)
    manage.set_fault(DRIVE, Fault("hang"))
    check_failed(outcome(running), "drive 'tiny', pts-iops", "the drive completed nothing", "run again")
    check_nothing_left()
    # Stopping the drive by force lost its data, so the measurement restarts, next to the old evidence.
    check_complete(plan, study.drivelab_run(), kept, gaps=0)
    assert leftovers() == []
    study.check_tables()


def test_a_hang_between_two_stages(conditioned: FaultStudy) -> None:
    conditioned.shorten_watchdog()
    manage.set_fault(DRIVE, Fault("hang"))
    check_failed(conditioned.measure(), "drive 'tiny'", f"did not answer within {SHORT_GRACE}")
    manage.clear_faults(DRIVE)
    check_complete(conditioned.plan(), conditioned.measure(), {}, gaps=0)


@pytest.mark.parametrize("how", ["gone", "killed"])
def test_a_disappearance(conditioned: FaultStudy, how: str) -> None:
    plan = conditioned.plan()
    running = conditioned.start_measuring()
    wait_until(lambda: in_the_middle(plan), running)
    (drive,) = manage.status()
    if how == "gone":
        manage.set_fault(DRIVE, Fault("gone"))
    else:
        os.kill(drive.pid, signal.SIGKILL)
    check_failed(outcome(running), "drive 'tiny', pts-iops", "run again")
    kept = kept_cells(plan)
    manage.stop(DRIVE)
    check_complete(plan, conditioned.measure(), kept, gaps=0)
