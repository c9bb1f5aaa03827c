from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from watched import MadeDrive, facts

from drivelab.watch.rates import Point
from drivelab.watch.study import StudyWatch
from drivelab.watch.text import changes, doing_words, screen, sparkline
from drivelab.watch.words import latency_words


def running(folder: Path) -> tuple[MadeDrive, StudyWatch]:
    made = MadeDrive(folder, "op7").begin()
    made.cell(1, 0, 1500)
    made.second()
    made.second(1500, cpu_steal_s=0)
    made.status("round 1 of at most 25, cell 2 of 2")
    watch = StudyWatch(facts(folder, made))
    watch.poll()
    return made, watch


def shown(watch: StudyWatch, columns: int) -> str:
    console = Console(file=StringIO(), width=columns)
    console.print(screen([watch], columns))
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def test_a_screen_has_rates_sparks_labels_and_the_log(tmp_path: Path) -> None:
    _, watch = running(tmp_path)
    text = shown(watch, 100)
    for words in (
        "A made study: running, 0 of 1",
        "1,500 IOPS",
        "5.9 MiB/s",
        "2 ms",
        "█",
        "op7 [reduced protocol]\n",
        "round 1: RND",
    ):
        assert words in text


def test_a_narrow_screen_is_no_wider_than_it_is(tmp_path: Path) -> None:
    _, watch = running(tmp_path)
    assert max(len(line) for line in shown(watch, 50).splitlines()) <= 50


def test_in_a_pipe_a_line_for_each_change(tmp_path: Path) -> None:
    made, watch = running(tmp_path)
    said: dict[str, tuple[str, float]] = {}
    first = list(changes([watch.state()], said, 0.0))
    assert first[0] == "op7: reduced protocol"
    assert first[1].startswith(
        "op7: pts-iops, measure: round 1 of at most 25, cell 2 of 2, 0 of 1 steady, at most about "
    )
    assert first[1].endswith(" left of this stage, 1,500 IOPS, 5.9 MiB/s, 2 ms")
    assert first[2] == "A made study: running, 0 of 1 measurements done"
    made.second(10)
    watch.poll()
    assert list(changes([watch.state()], said, 1.0)) == []
    assert "10 IOPS" in next(changes([watch.state()], said, 11.0))
    made.complete()
    watch.poll()
    assert list(changes([watch.state()], said, 12.0)) == [
        "op7: pts-iops: measured",
        "A made study: finished, 1 of 1 measurements done",
    ]


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        ({"fixed": False}, "at most about 1 min 30 s left of this stage"),
        ({"fixed": True}, "about 1 min 30 s left of this stage"),
        (None, "about 1 min 30 s left of this stage"),  # a fill, for one
    ],
)
def test_what_a_stop_rule_may_end_earlier_takes_at_most_so_long(progress: Any, words: str) -> None:
    drive = {"standing": "running", "measurement": "pts-iops", "stage": "measure", "text": "round 1", "left_s": 90.0}
    assert doing_words({**drive, "progress": progress}) == f"pts-iops, measure: round 1, {words}"


def test_drives_without_a_status_are_measured_when_all_of_their_recordings_are(tmp_path: Path) -> None:
    drives = [MadeDrive(tmp_path, name).begin() for name in ("op7", "op28")]
    for one in drives:
        one.complete()
    (tmp_path / "status/op7.json").unlink()
    (tmp_path / "status/op28.json").write_text('{"recording": "op28/pts')
    watch = StudyWatch(facts(tmp_path, *drives))
    watch.poll()
    assert [line.strip() for line in shown(watch, 100).splitlines()] == [
        "A made study: finished, 2 of 2 measurements done",
        "op7",
        "measured",
        "op28",
        "measured",
    ]
    assert list(changes([watch.state()], {}, 0.0)) == [
        "op7: measured",
        "op28: measured",
        "A made study: finished, 2 of 2 measurements done",
    ]


def test_the_next_measurement_says_no_label_anew_and_keeps_the_sparks(tmp_path: Path) -> None:
    first, second = (MadeDrive(tmp_path, "op7", clock="virtual", measurement=name) for name in ("first", "second"))
    watch = StudyWatch(facts(tmp_path, first, second))
    first.begin().cell(1, 0, 1500, directory="cells/1", io_started_s=0.0, io_ended_s=0.5)
    (first.part / "cells/1").mkdir(parents=True)
    first.status()
    watch.poll()
    said: dict[str, tuple[str, float]] = {}
    assert "op7: virtual clock, reduced protocol" in list(changes([watch.state()], said, 0.0))
    first.complete()
    second.status("begins", 0.0, stage="purge")
    watch.poll()
    lines = list(changes([watch.state()], said, 1.0))
    assert [line for line in lines if "reduced" in line or "virtual" in line] == []
    assert "█" in shown(watch, 100)


def test_a_failure_is_told_in_words(tmp_path: Path) -> None:
    made, watch = running(tmp_path)
    made.status(state="failed", reason="fio ended with 1")
    watch.poll()
    assert "failed, fio ended with 1" in shown(watch, 100)


def test_sparks_reach_from_zero_to_the_highest() -> None:
    points = [Point(0, 0, iops, 0, None) for iops in (0, 50, 100)]
    assert sparkline(points) == " ▄█"
    assert sparkline([]) == ""
    assert sparkline(points[:1]) == " "


def test_latency_in_the_unit_that_suits() -> None:
    assert [latency_words(one) for one in (None, 8.25, 999.6, 1500.0, 1.2e6)] == [
        "-",
        "8.25 µs",
        "1 ms",
        "1.5 ms",
        "1.2 s",
    ]
