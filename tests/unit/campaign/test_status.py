"""Progress of a study from its files alone, whatever happened to processes, hosts and files."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from stages import plans_of, run_stages

from drivelab.campaign.status import DriveStatus, campaign_of, study_status
from drivelab.cli.main import main
from drivelab.cli.measure.study import status_lines
from drivelab.core import heartbeat
from drivelab.core.errors import UserError
from drivelab.plan.plan import Plan
from drivelab.plan.study import load_study
from drivelab.recording.folders import worked_s
from drivelab.recording.writer import Recording, write_json
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.run.places import RESERVED_S
from drivelab.run.progress import Progress, Status, read_status, state_now, status_path
from drivelab.trace.capturing.capture_report import started

STUDY = """\
name: mine
results: results
clock: auto
drives: [op7, op28]
measurements:
  - protocol: pts-iops
    scale: demo
    set:
      loop:
        runtime: 50ms
        cells: {read_share: [100, 0], block_size: [4KiB]}
        until: {steady_state: {track: [{read_share: 0, block_size: 4KiB, metric: iops}]}}
"""
_AGAIN = STUDY.partition("measurements:\n")[2].replace("protocol: pts-iops", "name: again\n    protocol: pts-iops")
TWICE = STUDY.replace("auto", "virtual").replace("[op7, op28]", "[op7]") + _AGAIN
"""A study of two measurements of one drive."""


@pytest.fixture
def plans(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    monkeypatch.setattr("drivelab.virtual.manage.possible", lambda: "it is a test")
    Path("config/mine.yaml").write_text(STUDY)
    return [planned.plan for planned in campaign_of(load_study(Path("config/mine.yaml"))).plans]


def rows() -> dict[str, DriveStatus]:
    statuses = study_status(campaign_of(load_study(Path("config/mine.yaml"))))
    return {row.drive: row for row in statuses}


def a_status(plan: Plan, **changes: Any) -> Status:
    with Progress(plan, "measure"):
        pass
    (status,) = (status for status in read_status(Path("results")) if status.drive == plan.drive)
    return replace(status, **{"state": "running", "text": "round 2 of at most 25", "fraction": 0.1, **changes})


def put(plan: Plan, **changes: Any) -> None:
    write_json(status_path(plan), asdict(a_status(plan, **changes)))


@contextmanager
def ended_process() -> Iterator[tuple[int, str]]:
    """Yield process ID and start time of a process that is gone."""
    process = subprocess.Popen(["sleep", "60"])
    start = started(process.pid)
    process.kill()
    process.wait()
    yield process.pid, start


def test_status_before_the_start(plans: list[Plan]) -> None:
    assert {(row.state, row.done, row.planned) for row in rows().values()} == {("to do", 0, 1)}
    assert [row.left_s for row in rows().values()] == [None, None], "simulated time does not predict the waiting time"


def test_status_before_the_start_in_real_time(plans: list[Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drivelab.virtual.manage.possible", lambda: None)
    assert all((row.left_s or 0) > 0 for row in rows().values())


def test_done_and_to_do(plans: list[Plan]) -> None:
    run_stages(plans[0])
    by_drive = rows()
    assert (by_drive["op7"].state, by_drive["op7"].done, by_drive["op7"].left_s) == ("done", 1, 0)
    assert by_drive["op28"].state == "to do"


def test_the_recordings_determine_the_clock(plans: list[Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    run_stages(plans[0])
    monkeypatch.setattr("drivelab.virtual.manage.possible", lambda: None)
    assert rows()["op7"].state == "done"


def test_a_running_drive_shows_its_round_and_time_left(plans: list[Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[DriveStatus] = []
    say = Progress.say

    def spy(self: Progress, text: str, fraction: float) -> None:
        say(self, text, fraction)
        if text.startswith("round 3"):
            seen.append(rows()["op7"])

    monkeypatch.setattr(Progress, "say", spy)
    run_stages(plans[1])
    run_stages(plans[0])
    row = seen[-1]
    assert (row.state, row.stage) == ("running", "measure")
    assert row.recording == plans[0].recording
    assert 0 < (row.left_s or 0) < worked_s(plans[1].recording_path)
    (line,) = status_lines("mine", [row], time.time())[1:]
    assert "running" in line
    assert "round 3 of at most" in line
    assert "left" in line


def line_of(row: DriveStatus, now_s: float) -> str:
    (line,) = status_lines("mine", [row], now_s)[1:]
    return line


def test_between_two_stages_of_a_chain(plans: list[Plan]) -> None:
    purge(plans[0], Path("purged"))
    row = rows()["op7"]
    assert (row.state, row.done, row.planned, row.stage) == ("between stages", 0, 1, "purge")
    assert (row.next_recording, row.next_stage) == (plans[0].recording, "precondition")
    line = line_of(row, (row.seen_s or 0.0) + 5)
    assert "between stages  0 of 1; pts-iops, purge: done 5 s ago; next precondition;" in line
    precondition(plans[0], Path("purged"), Path("sealed"))
    row = rows()["op7"]
    assert row.next_stage == "measure"
    later = replace(a_status(plans[0], state="done", stage="precondition"), at_s=time.time() - 2 * RESERVED_S)
    write_json(status_path(plans[0]), asdict(later))
    row = rows()["op7"]
    assert (row.state, row.next_stage) == ("to do", "measure"), "no process will start it soon"
    write_json(status_path(plans[0]), asdict(replace(later, at_s=time.time())))
    assert "1 between stages, 1 to do" in status_lines("mine", list(rows().values()), time.time())[0]
    measure(plans[0], Path("sealed"))
    row = rows()["op7"]
    assert (row.state, row.next_recording) == ("done", None)


def test_between_two_recordings_the_next_one_is_shown(project: Path) -> None:
    Path("config/mine.yaml").write_text(TWICE + "runs: 3\norder: {random: 1}\n")
    campaign = campaign_of(load_study(Path("config/mine.yaml")))
    plans = sorted((planned.plan for planned in campaign.plans), key=campaign.order)
    assert [(plan.measurement, plan.run) for plan in plans[:3]] == [("again", 1), ("pts-iops", 1), ("again", 2)]
    run_stages(plans[0])
    run_stages(plans[1])
    row = rows()["op7"]
    assert (row.state, row.done, row.planned) == ("between stages", 2, 6)
    assert (row.next_recording, row.next_stage) == (plans[2].recording, "purge")
    assert "pts-iops, measure: done 3 s ago; next again run 2, purge" in line_of(row, (row.seen_s or 0.0) + 3)
    status_path(plans[0]).unlink()  # as in a copy without the status file
    row = rows()["op7"]
    assert (row.state, row.next_recording) == ("to do", plans[2].recording)
    assert "2 of 6; next again run 2, purge; about" in line_of(row, 0.0)


def test_a_status_of_a_removed_measurement_is_ignored(plans: list[Plan]) -> None:
    put(plans[0], recording=plans[0].recording.replace("pts-iops", "pts-latency"), state="done", stage="purge")
    assert rows()["op7"].state == "to do"


def test_a_failure_shows_its_reason_until_the_next_stage(plans: list[Plan]) -> None:
    with pytest.raises(UserError), Progress(plans[0], "purge"):
        raise UserError("drive 'op7': the purge failed; fix it")
    row = rows()["op7"]
    assert (row.state, row.stage, row.reason) == ("failed", "purge", "drive 'op7': the purge failed; fix it")
    assert rows()["op28"].state == "to do"
    assert "1 failed, 1 to do" in status_lines("mine", list(rows().values()), time.time())[0]
    with Progress(plans[0], "purge"):
        assert rows()["op7"].state == "running"


@pytest.fixture
def two_plans(project: Path) -> list[Plan]:
    """Two plans of one drive, in their order."""
    return plans_of(TWICE)


def test_a_failure_is_shown_next_to_the_present_measurement(two_plans: list[Plan]) -> None:
    first, second = two_plans
    with pytest.raises(UserError), Progress(first, "purge"):
        raise UserError("drive 'op7': is not the one of the sheet; fix it")
    with Progress(second, "measure"):
        row = rows()["op7"]
    assert (row.state, row.recording) == ("running", second.recording)
    (failed,) = row.unfinished
    assert (failed.recording, failed.state, failed.stage) == (first.recording, "failed", "purge")
    assert failed.reason == "drive 'op7': is not the one of the sheet; fix it"
    head, live, before = status_lines("mine", [row], time.time())
    assert head.endswith("drives: 1 running; before: 1 failed")
    assert "again, measure" in live
    assert before.split(maxsplit=1) == ["failed", f"pts-iops, purge; seen 0 s ago; {failed.reason}"]
    assert json.loads(json.dumps(asdict(row)))["unfinished"][0]["state"] == "failed"


def test_a_failure_is_shown_until_it_is_fixed(two_plans: list[Plan]) -> None:
    first, second = two_plans
    with pytest.raises(UserError), Progress(first, "purge"):
        raise UserError("no; fix it")
    run_stages(second)
    row = rows()["op7"]
    assert (row.state, row.done, row.planned, row.reason, row.unfinished) == ("failed", 1, 2, "no; fix it", ())
    assert row.recording == first.recording
    with Progress(first, "purge"):
        assert (rows()["op7"].state, rows()["op7"].unfinished) == ("running", ())
    run_stages(first)
    assert rows()["op7"].state == "done"


def test_a_killed_stage_is_shown_while_the_drive_continues(two_plans: list[Plan]) -> None:
    first, second = two_plans
    with ended_process() as (pid, start):
        namespace = a_status(first).process.partition("@")[2]
        put(first, pid=pid, process=f"{start}@{namespace}", stage="purge")
        with Progress(second, "purge"):
            pass
    row = rows()["op7"]
    assert (row.state, row.next_stage) == ("between stages", "precondition")
    assert [(measurement.recording, measurement.state) for measurement in row.unfinished] == [
        (first.recording, "interrupted")
    ]


def test_an_unfinished_recording_is_shown_without_a_status_file(two_plans: list[Plan]) -> None:
    """Recordings of an earlier version, and copied ones, have no status file."""
    first, second = two_plans
    purge(first, Path("purged"))
    with Progress(second, "measure"):
        (unfinished,) = rows()["op7"].unfinished
        assert (unfinished.state, unfinished.recording) == ("interrupted", first.recording)
        Recording(first).append("failed", step=0, reason="RND 4KiB 0/100 T2Q8: Input/output error")
        (unfinished,) = rows()["op7"].unfinished
    assert (unfinished.state, unfinished.stage, unfinished.reason) == (
        "failed",
        "measure",
        "RND 4KiB 0/100 T2Q8: Input/output error",
    )


def test_results_of_another_study_are_refused(
    plans: list[Plan], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivelab.cli.measure.run.ROOT", Path.cwd())
    Path("results").mkdir()
    Path("results/study.txt").write_text("theirs\n")
    for command in (["study", "status"], ["watch"]):
        assert main([*command, "config/mine.yaml"]) == 2
        assert "key 'results' is results, which belongs to study 'theirs'; name" in capsys.readouterr().err


def test_two_studies_of_one_name_are_refused(
    plans: list[Plan], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path.cwd()
    monkeypatch.setattr("drivelab.cli.measure.run.ROOT", folder)
    Path("config/other.yaml").write_text(STUDY.replace("results: results", "results: results/other"))
    for command in (["study", "status", "--json"], ["watch"]):
        monkeypatch.chdir(folder / "config")
        assert main([*command, "mine.yaml", "other.yaml"]) == 2
        output = capsys.readouterr()
        assert (output.out, "have the name 'mine'; name each study once" in output.err) == ("", True)


def test_an_unexpected_exception_is_shown(plans: list[Plan]) -> None:
    with pytest.raises(ZeroDivisionError), Progress(plans[0], "measure"):
        1 / 0  # noqa: B018
    assert "ZeroDivisionError" in (rows()["op7"].reason or "")


def test_a_stage_interrupted_by_the_user(plans: list[Plan]) -> None:
    with pytest.raises(KeyboardInterrupt), Progress(plans[0], "measure"):
        raise KeyboardInterrupt
    assert rows()["op7"].state == "interrupted"


def test_a_local_process_that_was_killed(plans: list[Plan]) -> None:
    with ended_process() as (pid, start):
        namespace = a_status(plans[0]).process.partition("@")[2]
        put(plans[0], pid=pid, process=f"{start}@{namespace}")
        assert rows()["op7"].state == "interrupted"
        put(plans[0], pid=os.getpid(), process=f"{start}@{namespace}")  # the process ID recurred
        assert rows()["op7"].state == "interrupted"


def test_the_reason_of_a_killed_stage_comes_from_its_log(plans: list[Plan]) -> None:
    with ended_process() as (pid, start):
        put(plans[0], pid=pid, process=f"{start}@{a_status(plans[0]).process.partition('@')[2]}")
    log = Path(f"results/logs/measure/{plans[0].recording}.log")
    log.parent.mkdir(parents=True)
    log.write_text("something\ndrivelab: results: No space left on device; make room\n")
    assert rows()["op7"].reason == "results: No space left on device; make room"


def test_a_host_that_was_restarted(plans: list[Plan]) -> None:
    put(plans[0], boot_id="of the last boot")
    assert rows()["op7"].state == "interrupted"


@pytest.mark.parametrize(("age", "state"), [(1, "running"), (2.9, "running"), (3.1, "silent"), (1000, "silent")])
def test_a_remote_stage_without_signs_of_life_is_silent(plans: list[Plan], age: float, state: str) -> None:
    now_s = time.time()
    with ended_process() as (pid, _):  # a local process with this ID is unrelated
        status = a_status(plans[0], host="bench-b", boot_id="theirs", pid=pid, at_s=now_s - age * heartbeat.PERIOD_S)
    assert state_now(status, now_s) == state
    write_json(status_path(plans[0]), asdict(status))
    row = rows()["op7"]
    assert row.host == "bench-b"
    assert ("silent for" in status_lines("mine", [row], now_s)[1]) == (row.state == "silent")


def test_a_process_of_another_container_is_not_checked(plans: list[Plan]) -> None:
    with ended_process() as (pid, start):
        assert state_now(a_status(plans[0], pid=pid, process=f"{start}@1", host="container")) == "running"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"recording": 1}', "\0" * 64])
def test_a_broken_status_hides_nothing_else(plans: list[Plan], text: str) -> None:
    run_stages(plans[0])
    status_path(plans[0]).write_text(text)
    status_path(plans[1]).write_text(text)
    assert {name: row.state for name, row in rows().items()} == {"op7": "done", "op28": "to do"}


def test_an_unfinished_measurement_without_a_process_is_interrupted(plans: list[Plan]) -> None:
    purge(plans[0], Path("purged"))
    status_path(plans[0]).unlink()
    row = rows()["op7"]
    assert row.state == "interrupted"
    assert "no process reports" in (row.reason or "")


def test_a_broken_manifest_does_not_stop_the_status(plans: list[Plan]) -> None:
    run_stages(plans[0])
    (plans[0].recording_path / "recording.json").write_text("{")
    assert rows()["op7"].state == "done"
    assert (rows()["op28"].left_s or 0) > 0


def test_a_status_of_an_older_version_is_read(plans: list[Plan]) -> None:
    old = {key: asdict(a_status(plans[0]))[key] for key in ("recording", "stage", "text", "fraction", "pid", "at_s")}
    write_json(status_path(plans[0]), old | {"at_s": time.time() - 3600})
    assert rows()["op7"].state == "silent"


def test_a_stage_shows_that_it_is_alive(plans: list[Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "PERIOD_S", 0.01)
    with Progress(plans[0], "measure"):
        first_s = rows()["op7"].seen_s or 0.0
        deadline_s = time.monotonic() + 60
        while (rows()["op7"].seen_s or 0.0) <= first_s and time.monotonic() < deadline_s:
            pass
        assert (rows()["op7"].seen_s or 0.0) > first_s


def test_no_status_is_written_for_a_drive_of_another_host(plans: list[Plan]) -> None:
    elsewhere = replace(plans[0], context={**plans[0].context, "host": "bench-b"})
    with pytest.raises(UserError, match="bench-b"), Progress(elsewhere, "purge"):
        pass
    assert not Path("results").exists()
