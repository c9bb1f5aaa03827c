"""A study is archived only while nothing works on it, and no run starts meanwhile."""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from drivelab.cli.main import parser
from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.plan.study import Study, load_study
from drivelab.recording.writer import write_json
from drivelab.run.progress import Progress, Status

REFUSED = "; wait for it or stop it, then archive the study$"


@pytest.fixture
def study(project: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The demo study with a recording, in its own project folder."""
    monkeypatch.setattr("drivelab.cli.measure.run.ROOT", project)
    study = load_study(Path("config/demo.yaml"))
    plan = study.results / "recordings/op7/pts-iops/0123456789ab-run1/plan.json"
    plan.parent.mkdir(parents=True)
    plan.write_text("{}")
    (study.results / "status").mkdir()
    return study


def archive() -> None:
    options = parser().parse_args(["archive", "create", "config/demo.yaml", "-o", "out/archive"])
    assert options.handler(options) == 0


def assert_refused(reason: str) -> None:
    """Check that no archive is written, and that the study is unchanged."""
    Path("out").mkdir()
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    with pytest.raises(UserError, match=f"^study 'demo' {reason}{REFUSED}"):
        archive()
    assert {path: path.stat().st_mtime_ns for path in Path().rglob("*")} == before


def assert_archived() -> None:
    Path("out").mkdir()
    archive()
    assert Path("out/archive").exists()


def status(results: Path, seconds_ago: float) -> None:
    report = Status("op7/m/k", "measure", "round 1", 0.1, 7, time.time() - seconds_ago, host="far", boot_id="b")
    write_json(results / "status/op7.json", asdict(report))


def test_running_study_is_refused(study: Study) -> None:
    with (study.results / ".run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert_refused("is running and cannot be archived now")


def test_study_with_running_stage_is_refused(study: Study) -> None:
    plan = Plan({"drive": {"serial": "S"}, "clock": "wall"},
                {"drive": "op7", "measurement": "m", "run": 1, "results": str(study.results)})  # fmt: skip
    with Progress(plan, "measure"):
        assert_refused(rf"cannot be archived now: measure of op7/m/\S+ is running \(process {os.getpid()} on \S+\)")
    Path("out").rmdir()
    assert_archived()


def test_study_with_stage_on_another_host_is_refused(study: Study) -> None:
    status(study.results, 0)
    assert_refused(r"cannot be archived now: measure of op7/m/k is running \(process 7 on far\)")


def test_no_run_starts_while_archiving(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    from drivelab.archive import create

    path = study.results / ".run.lock"
    path.touch()
    checked, tried = create.refuse_changes, []

    def run_begins() -> None:
        with path.open("w") as lock:  # as drivelab.cli.measure.runner does
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def meanwhile(*arguments: object) -> None:
        tried.append(True)
        with pytest.raises(BlockingIOError):
            run_begins()
        checked(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(create, "refuse_changes", meanwhile)
    assert_archived()
    assert tried
    run_begins()


def test_no_lock_file_is_created(study: Study) -> None:
    assert_archived()
    assert not (study.results / ".run.lock").exists()
