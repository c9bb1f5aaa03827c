"""The list of protocols: each in one family, with the time and bytes that it takes."""

from __future__ import annotations

import json

import pytest

from drivelab.campaign import protocol_page
from drivelab.campaign.protocol_page import START
from drivelab.cli.main import main
from drivelab.plan.grammar import PROTOCOLS, load


def test_every_shipped_protocol_has_a_family_and_an_estimate_on_a_large_drive(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["protocol", "list", "--json", "--capacity", "1TB"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert sorted(entry["name"] for entry in listed) == sorted(path.stem for path in PROTOCOLS.glob("*.yaml"))
    assert {entry["family"] for entry in listed} == set(protocol_page.FAMILIES)
    assert [entry["name"] for entry in listed if entry["start"]] == list(START)
    assert not [entry["unfit"] for entry in listed if entry["unfit"]]
    assert all(0 < entry["takes"]["least_s"] <= entry["takes"]["most_s"] for entry in listed)


def test_a_protocol_that_does_not_fit_the_drive_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol", "list", "--capacity", "1GiB"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("* quick ")]
    assert line.endswith("Quick look (does not fit this drive)")


def test_times_are_in_whole_minutes_or_hours() -> None:
    _, subject = protocol_page.imagined("1TB", 2000.0)
    entries = protocol_page.entries([load(PROTOCOLS / f"{name}.yaml") for name in ("pts-iops", "quick")], subject)
    assert [(entry.name, entry.time) for entry in entries] == [("quick", "3 to 4 min"), ("pts-iops", "5 to 24 h")]
