"""The host fails: a full disk for the results, a clock that jumps."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
from faults import (
    FaultStudy,
    Outcome,
    check_complete,
    check_failed,
    check_nothing_left,
    in_the_middle,
    journal,
    kept_cells,
    outcome,
    wait_until,
)
from leftovers import leftovers

from drivelab.collect.collect import collect
from drivelab.core.programs import Timing, run_program
from drivelab.fio import job_run
from drivelab.recording import writer
from drivelab.run.measure import measure

pytestmark = pytest.mark.device


@pytest.fixture
def small_disk(study: FaultStudy) -> Iterator[Path]:
    """A file system of 48 MiB for the results."""
    results = study.folder / "results"
    results.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(results)], check=True)
    yield results
    subprocess.run(["umount", str(results)], check=True)


def fill(disk: Path) -> Path:
    """Fill the disk with a file."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return ballast
    raise AssertionError("the disk cannot be filled")


def test_a_full_results_disk(study: FaultStudy, small_disk: Path) -> None:
    plan = study.plan()
    running = study.start_run()
    wait_until(lambda: in_the_middle(plan), running)
    ballast = fill(small_disk)
    kept = kept_cells(plan)
    check_failed(outcome(running), "results/one", "No space left on device", "run again")
    check_nothing_left()
    ballast.unlink()
    check_complete(plan, study.drivelab_run(), kept, gaps=None)
    assert not list(study.folder.glob("results/**/.*.json.*")), "half-written files"
    assert leftovers() == []
    study.check_tables()


@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(days=400)], ids=["back", "forward"])
def test_the_clock_jumps(conditioned: FaultStudy, monkeypatch: pytest.MonkeyPatch, jump: timedelta) -> None:
    plan = conditioned.plan()
    offset = timedelta(0)
    real_time_s = time.time

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + offset

    def run_program_by_that_clock(command: Any, directory: Path, *rest: Any, **options: Any) -> Timing:
        """Let the clock jump while fio of round 2 runs, right after fio prints its time."""
        nonlocal offset
        timing = run_program(command, directory, *rest, **options)
        document = json.loads((directory / "fio.json").read_text())
        document["timestamp_ms"] += round(offset.total_seconds() * 1000)
        (directory / "fio.json").write_text(json.dumps(document))
        if "round02" in str(directory):
            offset = jump
        return timing

    monkeypatch.setattr(writer, "datetime", Clock)
    monkeypatch.setattr(time, "time", lambda: real_time_s() + offset.total_seconds())
    monkeypatch.setattr(job_run, "run_program", run_program_by_that_clock)
    measure(plan, Path("conditioned.json"))
    assert offset == jump
    check_complete(plan, Outcome(0, ""), {}, gaps=0)
    elapsed_s = collect(plan.recording_path, reduced=True)["cells"]["elapsed_s"]
    assert elapsed_s.max() < 60 * len(elapsed_s)
    manifest = json.loads((plan.recording_path / "recording.json").read_text())
    assert manifest["cells"] == sum(line["event"] == "cell" for line in journal(plan))
