"""A trend says what its recordings show, and no more: from archives to text, JSON, page and exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_archives import Result, made_archives, over_dates

from drivelab.analysis.verdict import CANNOT_TELL, IN_RECORDINGS, SAME, SLOWER_BEYOND
from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.trend.text import lines, method_words
from drivelab.trend.trend import Terms, Trend, trend

WRITE = ("RND 4KiB 0/100", "iops")


def of_writes(found: Trend) -> Any:
    return next(test for test in found.tests if (test.key.cell_label, test.key.metric) == WRITE)


NOISE = np.exp(np.random.default_rng(5).normal(0, 0.01, 20))


@pytest.fixture(scope="module")
def stepped(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    speeds = NOISE * np.where(np.arange(20) < 12, 1.0, 0.93)
    return made_archives(tmp_path_factory.mktemp("stepped"), *over_dates(speeds.tolist()))


def test_single_recordings_show_a_change_of_level_but_no_difference_of_dates(stepped: list[Path]) -> None:
    found = trend(stepped, Terms(margin_pct=3))
    test = of_writes(found)
    assert [(change.before, change.point) for change in test.changes] == [("2026-01-12", "2026-01-13")]
    assert test.changes[0].low_pct < -7 < test.changes[0].high_pct
    assert {point.outcome for point in test.points[1:]} == {IN_RECORDINGS}
    assert (test.outcome, test.because) == (SLOWER_BEYOND, "level since 2026-01-13")
    assert found.labels == ["single recording"]
    assert found.searched == 2, "IOPS and mean latency of a cell count once"
    assert [test.key.metric for test in found.shown] == ["iops", "iops"]


def test_without_a_change_single_recordings_have_no_verdict(tmp_path: Path) -> None:
    test = of_writes(trend(made_archives(tmp_path, *over_dates(NOISE[:8].tolist())), Terms()))
    assert (test.outcome, test.changes) == (IN_RECORDINGS, [])


def test_a_latest_date_is_no_surer_than_dates_vary(tmp_path: Path) -> None:
    few = made_archives(tmp_path, *over_dates([1.0, 0.97], recordings=3))
    assert of_writes(trend(few, Terms(margin_pct=1))).outcome == SLOWER_BEYOND, "how dates vary is not known"
    varying = [1.0, 1.03, 0.97, 1.02, 0.98, 1.01, 0.97]
    many = made_archives(tmp_path, *over_dates(varying, recordings=3))
    test = of_writes(trend(many, Terms(margin_pct=1)))
    assert (test.outcome, test.points[-1].outcome) == (CANNOT_TELL, SLOWER_BEYOND)
    assert test.since_low_pct < 0 < test.since_high_pct


def test_several_drives_are_the_unit_of_replication(tmp_path: Path) -> None:
    results = [
        Result(drive, firmware=firmware, date=f"2026-0{month}-01", speed=speed * own, recordings=3)
        for month, (firmware, speed) in enumerate([("F1", 1.0), ("F2", 0.9)], start=1)
        for drive, own in [("a", 1.0), ("b", 1.3 + month / 100), ("c", 0.8)]
    ]
    found = trend(made_archives(tmp_path, *results), Terms(by="firmware"))
    test = of_writes(found)
    assert [len(point.samples) for point in test.points] == [3, 3]
    assert (test.points[1].outcome, test.points[1].paired) == (SLOWER_BEYOND, True)
    assert [change.point for change in test.changes] == ["F2"], "each drive against itself"
    assert test.outcome == SLOWER_BEYOND
    one = of_writes(trend(sorted(tmp_path.glob("*.gz")), Terms(by="firmware", drive="b")))
    assert (one.points[1].outcome, one.points[1].paired) == (SLOWER_BEYOND, False)
    assert any("2 comparisons, 2 in pairs" in words for words in method_words(found))


def test_other_drives_are_not_compared_in_pairs(tmp_path: Path) -> None:
    """A serial number identifies a drive, not its name in a study."""
    results = [
        Result(drive, firmware=firmware, date=f"2026-0{month}-01", speed=speed * own, conditions={"serial": serial})
        for month, (firmware, speed, last) in enumerate([("F1", 1.0, "3"), ("F2", 0.9, "3"), ("F3", 0.9, "4")], start=1)
        for drive, own, serial in [(f"a{month}", 1.0, "1"), ("b", 1.3, "2"), ("c", 0.8, last)]
    ]
    found = trend(made_archives(tmp_path, *results), Terms(by="firmware"))
    assert [(point.outcome, point.paired) for point in of_writes(found).points] == [
        ("", False), (SLOWER_BEYOND, True), (CANNOT_TELL, False)]  # fmt: skip
    assert any("4 comparisons, 2 in pairs" in words for words in method_words(found))


def test_recordings_of_equal_names_are_not_pairs(tmp_path: Path) -> None:
    """Archives of the same name in two folders have recordings of the same names."""
    paths = []
    for result in over_dates([1.0, 0.9], recordings=3):
        folder = tmp_path / result.date
        folder.mkdir()
        paths += made_archives(folder, result)
    assert [point.paired for point in of_writes(trend(paths, Terms())).points] == [False, False]


def test_only_comparable_recordings_of_one_model_count(tmp_path: Path) -> None:
    good = made_archives(tmp_path, *over_dates([1.0, 1.0], recordings=3))
    others = made_archives(
        tmp_path, Result(date="2026-02-01", reduced=True), Result("b", "Maker M2"), Result(date="", firmware="F9")
    )
    copy = tmp_path / "copy.tar.gz"
    copy.write_bytes(good[0].read_bytes())
    with pytest.raises(UserError, match="of 2 models: Maker M1, 960 GB; Maker M2"):
        trend([*good, *others], Terms())
    found = trend([*good, *others, copy], Terms(model="m1"))
    assert of_writes(found).outcome == SAME
    assert sum(len(group.recordings) for group in found.groups) == 6
    reasons = " ".join(found.left_out.values())
    for words in ("only one of them is reduced", "another model: Maker M2", "its date is not recorded", "a copy of it"):
        assert words in reasons
    with pytest.raises(UserError, match=r"at least two firmwares\. There is 1 firmware \(F1\)"):
        trend(good, Terms(by="firmware"))
    with pytest.raises(UserError, match="did you mean '2026-01-02'"):
        trend(good, Terms(baseline="2026-01-20"))


def test_hosts_have_no_order(tmp_path: Path) -> None:
    results = [Result(recordings=3, date=f"2026-01-0{day}", conditions={"host": name})
               for day, name in enumerate("zxy", start=1)]  # fmt: skip
    found = trend(made_archives(tmp_path, *results), Terms(by="host", baseline="y"))
    assert [point.name for point in found.groups[0].points] == ["z", "x", "y"]
    assert of_writes(found).searched == "hosts have no order"
    assert [point.outcome for point in of_writes(found).points] == [SAME, SAME, ""]


def test_the_command_prints_80_columns_and_fails_as_asked(
    stepped: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = list(map(str, stepped))
    page = tmp_path / "pages/trend.html"
    assert main(["trend", *names, "--margin", "3%", "--fail-on", "slower,undecided", "-o", str(page)]) == 4
    output = capsys.readouterr()
    assert output.out.startswith("Maker M1, 960 GB, 20 dates against 2026-01-01: 2 tests slower beyond the margin;")
    assert max(map(len, output.out.splitlines())) <= 80
    assert "2 tests slower, which --fail-on refuses" in output.err
    assert main(["trend", *names, "--baseline", "2026-01-13", "--fail-on", "slower"]) == 0, "the level of the baseline"
    html = page.read_text()
    assert html.count("<img ") == 2
    assert "<script" not in html
    assert re.search(r"<title>Trend of Maker M1, 960 GB</title>", html)
    capsys.readouterr()
    assert main(["trend", *names, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == {SLOWER_BEYOND: 2}


def test_doubts_of_undecided_tests_are_printed(tmp_path: Path) -> None:
    found = trend(made_archives(tmp_path, *over_dates([1.0, 0.9], recordings=3, verdict="not steady")), Terms())
    assert any("not steady" in line for line, _ in lines(found, every=False))
