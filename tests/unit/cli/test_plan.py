"""`drivelab plan`: its totals, and how it ends; and the studies of the pages, which must hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doc_pages import blocks

from drivelab.cli import plan as command
from drivelab.cli.main import main
from drivelab.stages.check import check
from drivelab.stages.outlook import outlook
from drivelab.stages.planning import Campaign
from drivelab.units import format_duration

STUDY = """\
name: mine
results: results
clock: virtual
drives: [op7, op28]
measurements: [{protocol: pts-write-saturation, scale: demo}]
"""


@pytest.fixture
def own(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project that commands are for."""
    monkeypatch.setattr("drivelab.cli.run.ROOT", project)
    return project


def planned(study: str, *options: str) -> int:
    Path("config/mine.yaml").write_text(study)
    return main(["plan", "config/mine.yaml", *options])


def test_beyond_the_budget_it_ends_with_2_after_all_was_shown(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(STUDY + "budget: {written: 1MB}\n") == 2
    told = capsys.readouterr()
    assert told.out.count("Beyond the budget: drive") == 2
    assert told.out.index("Beyond the budget") < told.out.index("\nop28/pts-write-saturation/")
    assert re.search(r"^drivelab: config/mine.yaml: key 'budget' .*op28.*; allow more, or measure less or", told.err)
    assert not Path("results").exists()


def test_likewise_where_measurements_are_too_many_to_be_shown(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_LARGE", 1)
    assert planned(STUDY + "budget: {written: 1MB}\n") == 2
    assert planned(STUDY) == 0


def test_within_the_budget_it_ends_with_0(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(STUDY + "budget: {written: 1TB}\n") == 0
    assert "Beyond" not in capsys.readouterr().out


@pytest.mark.parametrize(("drives", "places", "share"), [("op7", 4, 1), ("op7, op28", 4, 1), ("op7, op28", 1, 2)])
def test_a_host_is_no_sooner_done_than_any_of_its_drives(project: Path, drives: str, places: int, share: int) -> None:
    study = STUDY.replace("op7, op28", drives) + f"runs: 3\nconcurrency: {places}\n"
    Path("config/mine.yaml").write_text(study)
    campaign = Campaign.load("config/mine.yaml")
    rows = outlook(campaign)
    least, most = (format_duration(share * one) for one in (rows[0].estimate.least_s, rows[0].estimate.most_s))
    (told,) = command._totals(campaign, rows)
    assert re.fullmatch(rf"Together: \d drives?, {least} to {most},.*", told)


def test_the_campaign_of_the_page_holds(project: Path) -> None:
    """Its drives as they stand there, which are attached nowhere: full length, real time, within its budget."""
    for block in blocks("docs/how-to/campaign.md"):
        kind, _, path = block.directive.partition(" ")
        if kind == "file":
            Path(path).write_text(block.text)
    campaign, remarks = check("config/campaign.yaml")
    assert campaign.study.budget.time_s
    assert campaign.study.budget.written_bytes
    assert {one.plan.clock for one in campaign.wanted} == {"wall"}
    assert "not attached here" in remarks[0]
