from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from watched import NOW_S, MadeDrive, facts

from drivelab.config.study import PARTS
from drivelab.watch.study import StudyWatch


@pytest.fixture
def made(tmp_path: Path) -> MadeDrive:
    return MadeDrive(tmp_path, "op7").begin()


@pytest.fixture
def watch(made: MadeDrive) -> StudyWatch:
    return StudyWatch(facts(made.results, made))


def only(watch: StudyWatch) -> dict[str, Any]:
    (drive,) = watch.state()["drives"]
    return dict(drive)


def iops(watch: StudyWatch, made: MadeDrive) -> list[float]:
    return [point.iops for point in watch.drives[made.drive].history.get(made.recording, ())]


def test_before_anything_is_there_all_is_to_do(tmp_path: Path) -> None:
    made = MadeDrive(tmp_path / "results", "op7")
    watch = StudyWatch(facts(made.results, made))
    assert watch.poll() == {}
    assert watch.state()["standing"] == "waiting"
    assert only(watch)["standing"] == "waiting"


def test_a_running_drive(made: MadeDrive, watch: StudyWatch) -> None:
    made.second()
    made.second(1500)
    made.cell(1, 0, 1500)
    made.status()
    news = watch.poll()["op7"]
    assert [point.iops for point in news.points[made.recording]] == [1500]
    assert [text for _, text in news.lines] == [
        "measurement begins",
        "round 1: RND 4KiB 0/100 T2Q8, 1,500 IOPS, 5.9 MiB/s, 10.7 ms",
    ]
    state = only(watch)
    assert (state["standing"], state["measurement"], state["reduced"]) == ("running", "pts-iops", True)
    assert state["progress"]["cell"] == 2
    assert 80 <= state["left_s"] <= 100  # a tenth took ten seconds
    assert watch.poll() == {}
    made.second(1700)
    assert [point.since_s for point in watch.poll()["op7"].points[made.recording]] == [3]


def test_a_recording_that_is_complete_goes_on_under_its_new_name(made: MadeDrive, watch: StudyWatch) -> None:
    made.status()
    made.second()
    watch.poll()
    made.second(500)
    made.complete()
    assert [text for _, text in watch.poll()["op7"].lines] == ["recording complete"]
    assert iops(watch, made) == [500]
    state = watch.state()
    assert (state["standing"], state["done"], only(watch)["standing"]) == ("finished", 1, "measured")


def test_a_recording_that_begins_anew_forgets_what_was(made: MadeDrive, watch: StudyWatch) -> None:
    made.status()
    for _ in range(3):
        made.second()
    watch.poll()
    assert len(iops(watch, made)) == 2
    made.part.rename(made.part.with_name("run1.abandoned-1"))
    assert watch.poll() == {}
    made.begin()
    made.second()
    made.second(77)
    assert watch.poll()["op7"].anew == [made.recording]
    assert iops(watch, made) == [77]


def test_who_comes_late_sees_what_was_measured_before(made: MadeDrive) -> None:
    made.second()
    made.second(800)
    made.complete()
    watch = StudyWatch(facts(made.results, made))
    watch.poll()
    assert iops(watch, made) == [800]
    assert watch.state()["standing"] == "finished"


def test_history_of_days_is_not_read_whole(made: MadeDrive) -> None:
    made.status()
    for _ in range(10_000):
        made.second()
    watch = StudyWatch(facts(made.results, made))
    watch.poll()
    points = watch.drives["op7"].history[made.recording]
    assert 1000 < len(points) <= 3600
    assert points[-1].since_s == 10_000


@pytest.mark.parametrize(
    ("changes", "standing", "failure"),
    [
        ({"state": "failed", "reason": "fio ended with 1"}, "failed", "fio ended with 1"),
        ({"state": "interrupted"}, "interrupted", None),
        ({"host": "another", "boot_id": "other", "at_s": NOW_S - 1e9}, "silent", None),
        ({"host": os.uname().nodename, "boot_id": "before"}, "interrupted", None),
        ({"state": "done", "stage": "purge"}, "between", None),
    ],
)
def test_a_drive_that_does_not_run(
    made: MadeDrive, watch: StudyWatch, changes: Any, standing: str, failure: str | None
) -> None:
    made.status(**changes)
    watch.poll()
    assert (only(watch)["standing"], only(watch)["failure"]) == (standing, failure)


def test_a_failed_cell_is_told_until_the_measurement_goes_on(made: MadeDrive, watch: StudyWatch) -> None:
    made.journal("failed", reason="no space")
    made.status(state="failed", reason="no space")
    watch.poll()
    assert only(watch)["failure"] == "no space"
    made.journal("gap", reason="resumed")
    made.status()
    watch.poll()
    assert only(watch)["failure"] is None


def test_files_that_make_no_sense_hold_up_no_other_drive(tmp_path: Path) -> None:
    bad, good = MadeDrive(tmp_path, "bad").begin(), MadeDrive(tmp_path, "good").begin()
    for one in (bad, good):
        one.status()
        one.second()
        one.second()
    bad.journal("cell", step=0, round=1)
    watch = StudyWatch(facts(tmp_path, bad, good))
    watch.poll()
    states = {drive["drive"]: drive for drive in watch.state()["drives"]}
    assert "cannot be read" in states["bad"]["trouble"]
    assert states["good"]["trouble"] is None
    assert states["good"]["latest"][2] == 1000


@pytest.mark.parametrize("recording", ["../../etc", "a/../b", "op7", ""])
def test_a_status_that_leads_elsewhere_is_none(made: MadeDrive, watch: StudyWatch, recording: str) -> None:
    made.status(recording=recording)
    watch.poll()
    assert only(watch)["standing"] == "waiting"


def test_simulated_seconds_come_from_the_logs_of_finished_cells(tmp_path: Path) -> None:
    made = MadeDrive(tmp_path, "op7", clock="virtual").begin()
    for number in (1, 2):
        folder = made.part / f"cells/{number}"
        folder.mkdir(parents=True)
        for name, value in (("iops", 100 * number), ("bw", 400 * number), ("lat", 5_000_000)):
            lines = "".join(f"{1000 * second}, {value}, 1, 4096, 0\n" for second in (1, 2))
            (folder / f"series_{name}.1.log").write_text(lines)
        made.cell(number, 0, 100 * number, directory=f"cells/{number}")
    made.cell(3, 0, 50, directory="cells/3", io_started_s=10.0, io_ended_s=10.5)  # no whole second
    made.status()
    watch = StudyWatch(facts(tmp_path, made))
    watch.poll()
    points = watch.drives["op7"].history[made.recording]
    assert [(point.since_s, point.iops, point.latency_us) for point in points] == [
        (1, 100, 5000), (2, 100, 5000), (3, 200, 5000), (4, 200, 5000), (4.5, 50, pytest.approx(1e6 * 16 / 50)),
    ]  # fmt: skip
    assert only(watch)["simulated"]


def test_a_drive_of_a_fleet_has_a_results_folder_of_its_own(tmp_path: Path) -> None:
    made = MadeDrive(tmp_path / PARTS / "op7", "op7").begin()
    made.status()
    made.second()
    made.second(900)
    watch = StudyWatch(facts(tmp_path, made))
    watch.poll()
    assert iops(watch, made) == [900]


def test_the_state_is_json(made: MadeDrive, watch: StudyWatch) -> None:
    made.second(temperature_c=41.5)
    made.second()
    made.status()
    watch.poll()
    assert json.loads(json.dumps(watch.state()))["drives"][0]["telemetry"]["temperature_c"] == 41.5


@pytest.mark.parametrize(("ago_s", "standing"), [(5, "running"), (500, "stopped")])
def test_between_two_measurements_a_study_runs_on_for_a_while(made: MadeDrive, ago_s: float, standing: str) -> None:
    made.complete()
    made.status(state="done", at_s=NOW_S)
    wanted = replace(facts(made.results, made), recordings={made.recording: False, "op7/pts-latency/1-run1": False})
    watch = StudyWatch(wanted, clock_s=lambda: NOW_S + ago_s)
    watch.poll()
    state = watch.state()
    assert (state["done"], state["recordings"], state["standing"]) == (1, 2, standing)
