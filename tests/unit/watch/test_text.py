from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.console import Console
from watched import MadeDrive, facts

from drivelab.watch.study_view import StudyWatch
from drivelab.watch.text import COLUMNS, changes, screen, show, write_page


def running(folder: Path) -> tuple[MadeDrive, StudyWatch]:
    drive = MadeDrive(folder, "op7").begin()
    drive.cell(1, 0, 1500)
    drive.second()
    drive.second(1500, cpu_steal_s=0)
    drive.status("round 1 of at most 25, cell 2 of 2")
    watch = StudyWatch(facts(folder, drive))
    watch.poll()
    return drive, watch


def shown(watch: StudyWatch, columns: int) -> str:
    console = Console(file=StringIO(), width=columns)
    console.print(screen([watch], columns))
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def test_a_screen_has_rates_sparklines_labels_and_the_log(tmp_path: Path) -> None:
    _, watch = running(tmp_path)
    text = shown(watch, 100)
    for words in ("A made study: running, 0 of 1", "1,500 IOPS", "5.9 MiB/s", "2 ms", "█", "op7 [reduced protocol]\n",
                  "round 1: RND"):  # fmt: skip
        assert words in text


def test_lines_fit_a_narrow_screen(tmp_path: Path) -> None:
    _, watch = running(tmp_path)
    assert max(len(line) for line in shown(watch, 50).splitlines()) <= 50


def test_a_pipe_gets_a_line_per_change(tmp_path: Path) -> None:
    drive, watch = running(tmp_path)
    previous: dict[str, tuple[str, float]] = {}
    first = list(changes([watch.state()], previous, 0.0))
    assert first[0] == "op7: reduced protocol"
    assert first[1].startswith(
        "op7: pts-iops, measure: round 1 of at most 25, cell 2 of 2, 0 of 1 steady, at most about "
    )
    assert first[1].endswith(" left of this stage, 1,500 IOPS, 5.9 MiB/s, 2 ms")
    assert first[2] == "A made study: running, 0 of 1 measurements done"
    drive.second(10)
    watch.poll()
    assert list(changes([watch.state()], previous, 1.0)) == []
    assert "10 IOPS" in next(changes([watch.state()], previous, 11.0))
    drive.complete()
    watch.poll()
    assert list(changes([watch.state()], previous, 12.0)) == [
        "op7: pts-iops: measured",
        "A made study: finished, 1 of 1 measurements done",
    ]


def test_the_next_measurement_repeats_no_label_and_keeps_the_sparkline(tmp_path: Path) -> None:
    first, second = (MadeDrive(tmp_path, "op7", clock="virtual", measurement=name) for name in ("first", "second"))
    watch = StudyWatch(facts(tmp_path, first, second))
    first.begin().cell(1, 0, 1500, directory="cells/1", io_started_s=0.0, io_ended_s=0.5)
    (first.part / "cells/1").mkdir(parents=True)
    first.status()
    watch.poll()
    previous: dict[str, tuple[str, float]] = {}
    assert "op7: virtual clock, reduced protocol" in list(changes([watch.state()], previous, 0.0))
    first.complete()
    second.status("begins", 0.0, stage="purge")
    watch.poll()
    lines = list(changes([watch.state()], previous, 1.0))
    assert [line for line in lines if "reduced" in line or "virtual" in line] == []
    assert "█" in shown(watch, 100)


def test_the_page_has_the_view_and_reloads_until_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drive = MadeDrive(tmp_path, "op7").begin()
    drive.second()
    drive.second(1500)
    drive.status()
    watch = StudyWatch(replace(facts(tmp_path, drive), title="<b>\x1b[2J"))
    watch.poll()
    page = tmp_path / "pages/watch.html"
    write_page(screen([watch], COLUMNS), page, reloads=True)
    html = page.read_text()
    assert '<meta http-equiv="refresh"' in html
    for words in ("1,500 IOPS", "█", "reduced protocol", r"&lt;b&gt;\x1b[2J: running", "reloads every"):
        assert words in html
    drive.complete()
    show([watch], page)
    assert "1 of 1 measurements done" in capsys.readouterr().out
    html = page.read_text()
    assert "finished, 1 of 1" in html
    assert "watch ended" in html
    assert "refresh" not in html
    assert [path.name for path in page.parent.iterdir()] == ["watch.html"]


def test_the_page_of_an_interrupted_watch_does_not_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, watch = running(tmp_path / "results")
    monkeypatch.setattr("drivelab.watch.text.time.sleep", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        show([watch], tmp_path / "watch.html")
    assert "watch ended" in (tmp_path / "watch.html").read_text()
