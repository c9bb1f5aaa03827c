"""Platforms: the same drives on several hosts or host settings, planned, measured and compared."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from stages import run_stages

from drivelab.campaign.outlook import headline, outlook
from drivelab.campaign.planning import Campaign
from drivelab.collect.conditions import conditions
from drivelab.core.errors import UserError
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.workflow.scheduling import Scheduling

STUDY = """\
name: mine
results: results
clock: virtual
drives: [op7, op28]
platforms:
  bench-a: {host: host-a}
  bench-b: {host: host-b, scenario: real-world, write_cache: unchanged}
measurements:
  - {protocol: pts-write-saturation, scale: demo, set: {soak: {slice: 100ms, until: {time: 300ms}}}}
"""


def load(text: str = STUDY) -> Campaign:
    Path("config/mine.yaml").write_text(text)
    return Campaign.load("config/mine.yaml")


@pytest.fixture(autouse=True)
def _here(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "host-a")


def names(campaign: Campaign) -> tuple[list[str], list[str]]:
    return [planned.plan.drive for planned in campaign.plans], [planned.plan.drive for planned in campaign.elsewhere]


def test_every_measurement_is_planned_for_every_platform_and_left_out_elsewhere() -> None:
    campaign = load()
    assert names(campaign) == (["op7@bench-a", "op28@bench-a"], ["op7@bench-b", "op28@bench-b"])
    here, there = campaign.plans[0].plan, campaign.elsewhere[0].plan
    assert here.subject["platform"] == {"name": "bench-a", "host": "host-a"}
    assert (here.subject["scenario"], here.subject["write_cache"]) == ("synthetic", "off")
    assert (there.subject["scenario"], there.subject["write_cache"]) == ("real-world", None)
    assert here.recording.startswith("op7@bench-a/pts-write-saturation/")
    assert here.sheet_drive == there.sheet_drive == "op7"
    assert here.digest != there.digest
    assert campaign.study.basis == "op7@bench-a"


def test_notes_on_hosts_are_recorded_and_change_no_plan() -> None:
    plain = load()
    noted = load(STUDY.replace("{host: host-a}", "{host: host-a, note: water}") + "host_note: air\n")
    notes = [[p.plan.context.get("host_note") for p in plans] for plans in (noted.plans, noted.elsewhere)]
    assert notes == [["water", "water"], ["air", "air"]], "a platform's own note comes first"
    assert [p.plan.digest for p in noted.plans] == [p.plan.digest for p in plain.plans]
    plan = noted.plans[0].plan
    run_stages(plan)
    assert json.loads((plan.recording_path / "host.json").read_text())["note"] == "water"
    facets = conditions([plan.recording_path], {})
    assert facets.loc[facets["facet"] == "host note", "value"].tolist() == ["water"]


def test_the_headline_lists_measurements_left_on_other_hosts() -> None:
    words = headline(load())
    assert "2 drives on 2 platforms; this is host 'host-a', 2 measurements." in words
    assert re.search(
        r"Left out until .*/recordings:\n  drive .*\n  op7@bench-b   host-b  1 .*\n  op28@bench-b  host-b", words
    )
    assert "No deltas" not in words
    words = headline(load(STUDY + "basis: op28@bench-b\n"))
    assert "No deltas yet, because another host still has to measure the basis, op28@bench-b." in words


def test_a_drive_on_two_platforms_has_one_outlook() -> None:
    campaign = load(STUDY.replace("host-a", "any").replace("host-b", "any"))
    assert names(campaign)[1] == []
    (first, second) = outlook(campaign)
    assert (first.drive, first.to_do, second.drive, second.to_do) == ("op7", 2, "op28", 2)
    assert Scheduling(campaign).limits() == {"host_host_a": 1}


def test_a_copied_recording_from_another_host_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load().elsewhere[0].plan
    with monkeypatch.context() as patch:
        patch.setattr("platform.node", lambda: "host-b")
        run_stages(plan)
    campaign = load()
    assert names(campaign) == (["op7@bench-a", "op7@bench-b", "op28@bench-a"], ["op28@bench-b"])
    assert [plan.drive for plan in campaign.here] == ["op7@bench-a", "op28@bench-a"]
    table = headline(campaign).splitlines()[-3:]
    assert table[0].startswith("Left out until the recordings of these hosts are in ")
    assert table[2].split(maxsplit=3)[:3] == ["op28@bench-b", "host-b", "1"]
    assert "drivelab run " in table[2]


def test_no_stage_touches_a_drive_for_another_host() -> None:
    plan = load().elsewhere[0].plan
    for stage in (lambda: purge(plan, Path("x")), lambda: precondition(plan, Path("x"), Path("y")),
                  lambda: measure(plan, Path("x"))):  # fmt: skip
        with pytest.raises(UserError, match=r"belongs to host 'host-b', but this is 'host-a'.*Nothing was written"):
            stage()
    assert not Path("results").exists()


def test_a_host_with_nothing_to_do_names_the_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "laptop")
    with pytest.raises(UserError, match=r"(?s)has no measurement for this host.*host-a .*host-b "):
        load()


def test_one_run_sets_a_host_for_one_scenario_only() -> None:
    both = STUDY.replace("host-b", "any").replace("host-a", "any")
    assert load(both).scenarios == ["synthetic", "real-world"]
    assert load(STUDY + "host_settings: apply\n").scenarios == ["synthetic"], "each host's own run sets it"
