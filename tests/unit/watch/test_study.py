from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from watched import CELLS, NOW_S, MadeDrive, facts

from drivelab.watch.study_view import StudyWatch


@pytest.fixture
def drive(tmp_path: Path) -> MadeDrive:
    return MadeDrive(tmp_path, "op7").begin()


@pytest.fixture
def watch(drive: MadeDrive) -> StudyWatch:
    return StudyWatch(facts(drive.results, drive))


def only(watch: StudyWatch) -> dict[str, Any]:
    (drive,) = watch.state()["drives"]
    return dict(drive)


def iops(watch: StudyWatch, drive: MadeDrive) -> list[float]:
    return [point.iops for point in watch.drives[drive.drive].points]


def said(watch: StudyWatch) -> list[str]:
    return [text for _, _, text in watch.lines]


def test_without_files_everything_is_to_do(tmp_path: Path) -> None:
    drive = MadeDrive(tmp_path / "results", "op7")
    watch = StudyWatch(facts(drive.results, drive))
    watch.poll()
    assert watch.state()["standing"] == "waiting"
    assert only(watch)["standing"] == "waiting"


def test_a_running_drive(drive: MadeDrive, watch: StudyWatch) -> None:
    drive.second()
    drive.second(1500)
    drive.cell(1, 0, 1500)
    drive.status()
    watch.poll()
    assert iops(watch, drive) == [1500]
    assert said(watch) == ["measurement begins", "round 1: RND 4KiB 0/100 T2Q8, 1,500 IOPS, 5.9 MiB/s, 10.7 ms"]
    state = only(watch)
    assert (state["standing"], state["measurement"], state["reduced"]) == ("running", "pts-iops", True)
    assert 80 <= state["left_s"] <= 100  # a tenth took ten seconds
    drive.second(1700)
    watch.poll()
    assert iops(watch, drive) == [1500, 1700]


def test_a_completed_recording_is_followed_under_its_new_name(drive: MadeDrive, watch: StudyWatch) -> None:
    drive.status()
    drive.second()
    watch.poll()
    drive.second(500)
    drive.complete()
    watch.poll()
    assert said(watch)[-1] == "recording complete"
    assert iops(watch, drive) == [500]
    state = watch.state()
    assert (state["standing"], state["done"], only(watch)["standing"]) == ("finished", 1, "measured")


def test_a_restarted_recording_discards_its_points(drive: MadeDrive, watch: StudyWatch) -> None:
    drive.status()
    for _ in range(3):
        drive.second()
    watch.poll()
    assert len(iops(watch, drive)) == 2
    drive.part.rename(drive.part.with_name("run1.abandoned-1"))
    watch.poll()
    drive.begin()
    drive.second()
    drive.second(77)
    watch.poll()
    assert iops(watch, drive) == [77]


def test_a_history_of_days_is_read_only_in_part(drive: MadeDrive) -> None:
    drive.status()
    for number in range(10_000):
        drive.second(number)
    watch = StudyWatch(facts(drive.results, drive))
    watch.poll()
    assert 300 < len(iops(watch, drive)) <= 600
    assert iops(watch, drive)[-1] == 9_999


@pytest.mark.parametrize(
    ("changes", "standing", "failure"),
    [
        ({"state": "failed", "reason": "fio ended with 1"}, "failed", "fio ended with 1"),
        ({"state": "interrupted"}, "interrupted", None),
        ({"host": "another", "boot_id": "other", "at_s": NOW_S - 1e9}, "silent", None),
        ({"host": os.uname().nodename, "boot_id": "before"}, "interrupted", None),
        ({"state": "done", "stage": "purge"}, "done", None),
    ],
)
def test_a_drive_that_does_not_run(
    drive: MadeDrive, watch: StudyWatch, changes: Any, standing: str, failure: str | None
) -> None:
    drive.status(**changes)
    watch.poll()
    assert (only(watch)["standing"], only(watch)["failure"]) == (standing, failure)


def test_a_failed_cell_is_shown_until_the_measurement_resumes(drive: MadeDrive, watch: StudyWatch) -> None:
    drive.journal("failed", reason="no space")
    drive.status(state="failed", reason="no space")
    watch.poll()
    assert only(watch)["failure"] == "no space"
    drive.journal("gap", reason="resumed")
    drive.status()
    watch.poll()
    assert only(watch)["failure"] is None


@pytest.mark.parametrize("recording", ["../../etc", "a/../b", "op7", ""])
def test_a_status_with_an_invalid_recording_is_ignored(drive: MadeDrive, watch: StudyWatch, recording: str) -> None:
    drive.status(recording=recording)
    watch.poll()
    assert only(watch)["standing"] == "waiting"


def test_preconditioning_has_its_own_points(tmp_path: Path) -> None:
    drive = MadeDrive(tmp_path, "op7").precondition(seconds=3, writes=500)
    watch = StudyWatch(facts(tmp_path, drive))
    drive.status("fill 2 x, 40%", 0.4, stage="precondition")
    watch.poll()
    assert [(point.iops, point.conditioning) for point in watch.drives["op7"].points] == [(500, True)] * 3
    assert only(watch)["latest"].iops == 500
    drive.begin()
    drive.status(stage="measure")
    watch.poll()
    assert only(watch)["latest"] is None  # the last second of preconditioning does not belong to the measurement
    drive.second()
    drive.second(700)
    watch.poll()
    assert not watch.drives["op7"].points[-1].conditioning
    assert only(watch)["latest"].iops == 700
    late = StudyWatch(facts(tmp_path, drive))
    late.poll()
    assert iops(late, drive) == [500, 500, 500, 700]


def test_simulated_points_are_those_of_finished_cells(tmp_path: Path) -> None:
    drive = MadeDrive(tmp_path, "op7", clock="virtual").begin()
    drive.journal("fill", directory="condition/fill", bytes=4096, cell=CELLS[0])
    for number in (1, 2):
        drive.cell(number, 0, 100 * number, directory=f"cells/{number}")
    drive.status()
    watch = StudyWatch(facts(tmp_path, drive))
    watch.poll()
    assert [(point.iops, point.latency_us) for point in watch.drives["op7"].points] == [(100, 160_000), (200, 80_000)]
    assert only(watch)["simulated"]


@pytest.mark.parametrize(("ago_s", "standing"), [(5, "running"), (500, "stopped")])
def test_between_two_measurements_a_study_runs_on_for_a_while(drive: MadeDrive, ago_s: float, standing: str) -> None:
    drive.complete()
    drive.status(state="done", at_s=NOW_S)
    wanted = replace(facts(drive.results, drive), recordings={drive.recording: False, "op7/pts-latency/1-run1": False})
    watch = StudyWatch(wanted, clock_s=lambda: NOW_S + ago_s)
    watch.poll()
    state = watch.state()
    assert (state["done"], state["recordings"], state["standing"]) == (1, 2, standing)


def test_a_new_measurement_keeps_the_points_of_earlier_ones(tmp_path: Path) -> None:
    drives = [MadeDrive(tmp_path, "op7", measurement=name, at_s=NOW_S + 9 * at) for at, name in enumerate("abcdefg")]
    watch = StudyWatch(facts(tmp_path, *drives))
    for number, drive in enumerate(drives, 1):
        drive.begin()
        drive.second(100 * number)
        drive.second(100 * number)
        drive.status()
        watch.poll()
        drive.second(100 * number)  # read when the next one has begun
        drive.complete()
    watch.poll()
    assert iops(watch, drives[0]) == [100 * number for number in range(1, 8) for _ in range(2)]
    assert said(watch).count("recording complete") == 7


def test_labels_come_from_the_plan_before_the_recording_starts(tmp_path: Path) -> None:
    drive = MadeDrive(tmp_path, "op7", clock="virtual")
    planned = tmp_path / "plans" / f"{drive.recording}.json"
    planned.parent.mkdir(parents=True)
    planned.write_text(drive.plan.to_json())
    drive.status("begins", 0.0, stage="purge")
    watch = StudyWatch(facts(tmp_path, drive))
    watch.poll()
    assert only(watch)["simulated"]


def test_a_drive_is_measured_when_all_its_recordings_are(tmp_path: Path) -> None:
    first, second = (MadeDrive(tmp_path, "op7", measurement=name).begin() for name in ("first", "second"))
    watch = StudyWatch(facts(tmp_path, first, second))
    shown = []

    def say() -> None:
        watch.poll()
        shown.append(only(watch)["standing"])

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
    assert shown == ["done", "running", "done", "running", "measured"]


@pytest.mark.parametrize("left", [None, '{"recording": "op7/pts'])
def test_a_drive_with_all_recordings_is_measured_whatever_its_status(tmp_path: Path, left: str | None) -> None:
    done, other = MadeDrive(tmp_path, "op7").begin(), MadeDrive(tmp_path, "op28")
    done.complete()
    path = tmp_path / "status/op7.json"
    path.unlink() if left is None else path.write_text(left)
    alone, both = StudyWatch(facts(tmp_path, done)), StudyWatch(facts(tmp_path, done, other))
    for watch in (alone, both):
        watch.poll()
    assert (alone.state()["standing"], only(alone)["standing"], alone.state()["done"]) == ("finished", "measured", 1)
    state = both.state()
    assert (state["standing"], [drive["standing"] for drive in state["drives"]]) == ("stopped", ["measured", "waiting"])


def test_a_status_of_a_removed_measurement_leaves_a_drive_measured(drive: MadeDrive, watch: StudyWatch) -> None:
    drive.complete()
    drive.status(recording="op7/no-longer-wanted/1-run1", stage="purge", state="done")
    watch.poll()
    assert only(watch)["standing"] == "measured"
