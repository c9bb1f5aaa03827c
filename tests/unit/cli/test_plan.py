"""`drivelab plan`: totals and exit status; and the studies in the docs, which must be valid."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from doc_pages import blocks

from drivelab.campaign.check import check
from drivelab.campaign.outlook import outlook
from drivelab.campaign.planning import Campaign
from drivelab.cli.main import main
from drivelab.cli.measure import plan as command
from drivelab.core.units import format_duration

STUDY = """\
name: mine
results: results
clock: virtual
drives: [op7, op28]
measurements: [{protocol: pts-write-saturation, scale: demo}]
"""


@pytest.fixture
def own(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project in which commands run."""
    monkeypatch.setattr("drivelab.cli.measure.run.ROOT", project)
    return project


def planned(study: str, *options: str) -> int:
    Path("config/mine.yaml").write_text(study)
    return main(["plan", "config/mine.yaml", *options])


def test_plan_over_budget_shows_everything_and_exits_with_2(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(STUDY + "budget: {written: 1MB}\n") == 2
    printed = capsys.readouterr()
    assert printed.out.count("Over budget: drive") == 2
    assert printed.out.index("\nop28   pts-write-saturation") < printed.out.index("Over budget")
    assert re.search(r"^drivelab: config/mine.yaml: key 'budget' .*op28.*; raise the budget, or", printed.err)
    assert not Path("results").exists()


def test_plan_has_a_line_for_each_test_and_commands_on_demand(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(f"{STUDY}runs: 3\n") == 0
    lines = capsys.readouterr().out.splitlines()
    (test,) = [line for line in lines if line.startswith("op28 ")]
    assert test.split()[:4] == ["op28", "pts-write-saturation", "3", "3"]
    assert test.endswith("reduced")
    assert not any("preconditioning" in line for line in lines)
    assert planned(STUDY, "--commands") == 0
    assert "op28/pts-write-saturation/" in capsys.readouterr().out


def test_plan_as_json_has_the_same_numbers(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert planned(STUDY, "--json") == 0
    body = json.loads(capsys.readouterr().out)
    assert [test["drive"] for test in body["tests"]] == [drive["drive"] for drive in body["drives"]] == ["op7", "op28"]
    keys = ("least_s", "most_s", "least_bytes", "most_bytes")
    assert [[drive[key] for key in keys] for drive in body["drives"]] == [
        [test[key] for key in keys] for test in body["tests"]
    ]
    assert body["over_budget"] == []


@pytest.mark.parametrize(("drives", "places", "share"), [("op7", 4, 1), ("op7, op28", 4, 1), ("op7, op28", 1, 2)])
def test_host_takes_at_least_as_long_as_its_drives(project: Path, drives: str, places: int, share: int) -> None:
    study = STUDY.replace("op7, op28", drives) + f"runs: 3\nconcurrency: {places}\n"
    Path("config/mine.yaml").write_text(study)
    campaign = Campaign.load("config/mine.yaml")
    rows = outlook(campaign)
    least, most = (format_duration(share * span_s) for span_s in (rows[0].estimate.least_s, rows[0].estimate.most_s))
    (line,) = command._totals(campaign, rows)
    assert re.fullmatch(rf"Total: \d drives?, {least} to {most},.*", line)


SHOWN = "a difference of {} % or more with probability 80 %, tested alone, if recordings scatter by 3.0 % (assumed)"


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        (1, "none with 1 recording of each drive and measurement; 3 would show " + SHOWN.format("9.5")),
        (3, f"{SHOWN.format('9.5')}; 8 would show the margin of 5.0 %."),
        (8, f"Verdicts: 8 recordings of each drive and measurement show {SHOWN.format('4.6')}."),
    ],
)
def test_the_difference_that_a_study_can_show_is_printed(
    runs: int, sentence: str, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planned(f"{STUDY}runs: {runs}\n") == 0
    assert sentence in capsys.readouterr().out


def test_campaign_of_the_docs_is_valid(project: Path) -> None:
    """Its drives are not attached; full length, real time, within its budget."""
    for block in blocks("docs/how-to/campaign.md"):
        kind, _, path = block.directive.partition(" ")
        if kind == "file":
            Path(path).write_text(block.text)
    campaign, remarks = check("config/campaign.yaml")
    assert campaign.study.budget.time_s
    assert campaign.study.budget.written_bytes
    assert {planned.plan.clock for planned in campaign.wanted} == {"wall"}
    assert "not attached here" in remarks[0]
