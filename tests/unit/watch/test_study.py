from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from watched import CELLS, NOW_S, MadeDrive, facts

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
    assert watch.poll()["op7"].restarted == [made.recording]
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


def test_preconditioning_is_told_second_by_second_and_apart_from_the_measurement(tmp_path: Path) -> None:
    made = MadeDrive(tmp_path, "op7").precondition(seconds=3, writes=500)
    watch = StudyWatch(facts(tmp_path, made))
    made.status("fill 2 x, 40%", 0.4, stage="precondition")
    watch.poll()
    points = watch.drives["op7"].history[made.recording]
    assert [(point.since_s, point.iops, point.conditioning) for point in points] == [(s, 500, True) for s in (2, 3, 4)]
    assert only(watch)["latest"][2] == 500
    made.begin()
    made.status(stage="measure")
    watch.poll()
    assert only(watch)["latest"] is None  # the last second of preconditioning is none of the measurement's
    made.second()
    made.second(700)
    (point,) = watch.poll()["op7"].points[made.recording]
    assert (point.since_s, point.iops, point.conditioning) == (2, 700, False)
    assert only(watch)["latest"][2] == 700
    late = StudyWatch(facts(tmp_path, made))
    late.poll()
    assert iops(late, made) == [500, 500, 500, 700]


def test_a_purge_has_a_begin_and_an_end_and_no_values(made: MadeDrive, watch: StudyWatch) -> None:
    made.second()
    made.second()
    made.status("erasing", 0.5, stage="purge", since_s=NOW_S)
    watch.poll()
    assert (only(watch)["purges"][0][0], only(watch)["latest"]) == (NOW_S, None)
    made.status("done", 1.0, stage="purge", since_s=NOW_S, at_s=NOW_S + 60, state="done")
    watch.poll()
    made.status(stage="precondition")
    watch.poll()
    assert only(watch)["purges"] == [(NOW_S, NOW_S + 60)]
    made.status("erasing", 0.5, stage="purge", recording=made.recording.replace("run1", "run2"), since_s=NOW_S + 90)
    watch.poll()
    assert [begin for begin, _ in only(watch)["purges"]] == [NOW_S, NOW_S + 90]


def test_simulated_seconds_come_from_the_logs_of_finished_cells(tmp_path: Path) -> None:
    made = MadeDrive(tmp_path, "op7", clock="virtual").begin()
    for number in (0, 1, 2):
        folder = made.part / (f"cells/{number}" if number else "condition/fill")
        folder.mkdir(parents=True)
        for name, value in (("iops", 100 * number), ("bw", 400 * number), ("lat", 5_000_000)):
            lines = "".join(f"{1000 * second}, {value}, 1, 4096, 0\n" for second in (1, 2))
            (folder / f"series_{name}.1.log").write_text(lines)
        if number:
            made.cell(number, 0, 100 * number, directory=f"cells/{number}")
        else:
            made.journal("fill", directory="condition/fill", bytes=4096, cell=CELLS[0])
    made.cell(3, 0, 50, directory="cells/3", io_started_s=10.0, io_ended_s=10.5)  # no whole second
    made.status()
    watch = StudyWatch(facts(tmp_path, made))
    watch.poll()
    points = watch.drives["op7"].history[made.recording]
    assert [point.conditioning for point in points] == [True, True, False, False, False, False, False]
    assert [point.since_s for point in points][:2] == [1, 2]
    assert [(point.since_s, point.iops, point.latency_us) for point in points][2:] == [
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


def test_a_new_measurement_does_not_make_earlier_ones_forgotten(tmp_path: Path) -> None:
    made = [MadeDrive(tmp_path, "op7", measurement=name, at_s=NOW_S + 9 * at) for at, name in enumerate("abcdefg")]
    watch = StudyWatch(facts(tmp_path, *made))
    for number, one in enumerate(made, 1):
        one.begin()
        (one.part / "identity.json").write_text(json.dumps({"model": "drive of a test", "firmware": "F1"}))
        for _ in range(3):
            one.second(100 * number)
        one.status()
        if number % 3:  # somebody watches
            watch.poll()
        if one is not made[-1]:
            one.complete()
    watch.poll()
    told = {name: [point.iops for point in points] for name, points in watch.drives["op7"].history.items()}
    assert told == {one.recording: [100 * number] * 2 for number, one in enumerate(made, 1)}
    assert list(told) == [one.recording for one in made]


def test_before_a_new_measurement_tells_anything_what_is_known_of_the_drive_holds(tmp_path: Path) -> None:
    first, second = (MadeDrive(tmp_path, "op7", clock="virtual", measurement=name) for name in ("first", "second"))
    watch = StudyWatch(facts(tmp_path, first, second))
    first.begin()
    (first.part / "identity.json").write_text(json.dumps({"model": "drive of a test", "firmware": "F1"}))
    first.status()
    watch.poll()
    first.complete()
    second.status("begins", 0.0, stage="purge")
    watch.poll()
    state = only(watch)
    assert (state["measurement"], state["model"], state["firmware"]) == ("second", "drive of a test", "F1")
    assert (state["simulated"], state["virtual"]) == (True, False)


def test_labels_are_those_of_the_plan_before_the_recording_is_begun(tmp_path: Path) -> None:
    made = MadeDrive(tmp_path, "op7", clock="virtual")
    planned = tmp_path / "plans" / f"{made.recording}.json"
    planned.parent.mkdir(parents=True)
    planned.write_text(made.plan.to_json())
    made.status("begins", 0.0, stage="purge")
    watch = StudyWatch(facts(tmp_path, made))
    watch.poll()
    assert only(watch)["simulated"]


def test_history_has_no_more_points_than_are_kept_and_one_measurement(tmp_path: Path) -> None:
    made = [MadeDrive(tmp_path, "op7", measurement=name) for name in "abc"]
    watch = StudyWatch(facts(tmp_path, *made))
    for one in made:
        one.begin()
        for _ in range(2001):
            one.second()
        one.status()
        watch.poll()
        one.complete()
    watch.poll()
    assert [len(points) for points in watch.drives["op7"].history.values()] == [2000, 2000]


def test_a_drive_is_measured_when_all_of_it_is_and_the_share_is_of_all(tmp_path: Path) -> None:
    first, second = (MadeDrive(tmp_path, "op7", measurement=name).begin() for name in ("first", "second"))
    watch = StudyWatch(facts(tmp_path, first, second))
    said = []

    def say() -> None:
        watch.poll()
        said.append((only(watch)["standing"], only(watch)["share"]))

    first.status(stage="purge", fraction=1.0, state="done")
    say()
    first.status(stage="measure", fraction=0.5)
    say()
    first.complete()
    say()
    second.status(stage="precondition", fraction=0.5)
    say()
    second.complete()
    say()
    assert said == [("between", 0.1667), ("running", 0.4167), ("between", 0.5), ("running", 0.75), ("measured", 1.0)]


@pytest.mark.parametrize("left", [None, '{"recording": "op7/pts'])
def test_a_drive_whose_recordings_are_all_there_is_measured_whatever_became_of_its_status(
    tmp_path: Path, left: str | None
) -> None:
    done, other = MadeDrive(tmp_path, "op7").begin(), MadeDrive(tmp_path, "op28")
    done.complete()
    path = tmp_path / "status/op7.json"
    path.unlink() if left is None else path.write_text(left)
    alone, both = StudyWatch(facts(tmp_path, done)), StudyWatch(facts(tmp_path, done, other))
    for watch in (alone, both):
        watch.poll()
    assert (alone.state()["standing"], only(alone)["standing"], only(alone)["done"]) == ("finished", "measured", 1)
    state = both.state()
    assert (state["standing"], [one["standing"] for one in state["drives"]]) == ("stopped", ["measured", "waiting"])


def test_a_drive_with_some_of_its_recordings_and_no_status_is_to_do(tmp_path: Path) -> None:
    first, second = (MadeDrive(tmp_path, "op7", measurement=name) for name in ("first", "second"))
    first.begin().complete()
    (tmp_path / "status/op7.json").unlink()
    watch = StudyWatch(facts(tmp_path, first, second))
    watch.poll()
    assert (only(watch)["standing"], only(watch)["done"]) == ("waiting", 1)


def test_a_status_of_what_the_study_no_longer_wants_leaves_a_drive_measured(made: MadeDrive, watch: StudyWatch) -> None:
    made.complete()
    made.status(recording="op7/no-longer-wanted/1-run1", stage="purge", state="done")
    watch.poll()
    assert only(watch)["standing"] == "measured"
