"""Progress of a run on the terminal: correct, with at most one check per recording."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from drivelab.campaign.planning import Campaign
from drivelab.cli.measure import progress_view
from drivelab.cli.measure.progress_view import ProgressView
from drivelab.plan.plan import Plan

ROOT = Path(__file__).resolve().parents[3]
HEAD = "drive\tdevice\tserial\tdestructive\tnote\n"
DRIVES = [f"d{number}" for number in range(1, 9)]
STUDY = f"""\
name: many
results: results
drives_sheet: many.tsv
drives: [{", ".join(DRIVES)}]
measurements: [{{protocol: pts-iops}}, {{protocol: qos-nines}}]
"""


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    (tmp_path / "config").symlink_to(ROOT / "config")
    monkeypatch.chdir(tmp_path)
    rows = [f"{name}\t/dev/disk/by-id/{name}\tS-{name}\tyes\t\n" for name in DRIVES]
    Path("many.tsv").write_text(HEAD + "".join(rows))
    Path("study.yaml").write_text(STUDY)
    return Campaign.load("study.yaml")


def recorded(plan: Plan) -> None:
    """Write a recording that took an hour."""
    plan.recording_path.mkdir(parents=True)
    hours = {"purge": 10, "complete": 11}
    lines = [{"event": event, "at": f"2026-05-01T{hour}:00:00+00:00"} for event, hour in hours.items()]
    (plan.recording_path / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (plan.recording_path / "recording.json").touch()


def at_work(plan: Plan, stage: str, **more: float) -> None:
    path = Path(f"results/status/{plan.drive}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    now = {"at_s": time.time() + 1, "pid": 1, "fraction": 0.0}
    body = {**now, "recording": plan.recording, "stage": stage, "text": "begins", **more}
    path.write_text(json.dumps(body))


def test_time_left_comes_from_finished_measurements(
    campaign: Campaign, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_view, "_SHARE", float("inf"))  # checks on every update
    plans = [planned.plan for planned in campaign.plans]
    iops, nines = ([plan for plan in plans if plan.measurement == name] for name in ("pts-iops", "qos-nines"))
    view = ProgressView(campaign)
    at_work(iops[1], "purge")
    recorded(iops[0])
    recorded(nines[0])
    view.update()
    assert "[2 of 16 measurements done, about 14 h" in capsys.readouterr().out
    recorded(iops[1])
    at_work(nines[1], "purge")
    view.update()
    assert "[3 of 16 measurements done, about 13 h" in capsys.readouterr().out


def test_analysis_is_announced_once_after_the_last_measurement(
    campaign: Campaign, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_view, "_SHARE", float("inf"))
    plans = [planned.plan for planned in campaign.plans]
    for plan in plans[1:]:
        recorded(plan)
    view = ProgressView(campaign)
    at_work(plans[0], "measure")
    view.update()
    assert "tables, figures and report" not in capsys.readouterr().out
    recorded(plans[0])  # no status changes any more
    view.update()
    line = "16 of 16 measurements done, making missing tables, figures and report\n"
    assert capsys.readouterr().out == line
    view.update()
    assert capsys.readouterr().out == ""


def test_simulated_time_is_estimated_only_from_finished_measurements(
    campaign: Campaign, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_view, "_SHARE", float("inf"))
    monkeypatch.setattr(Plan, "clock", property(lambda plan: "virtual"))
    plans = [planned.plan for planned in campaign.plans]
    view = ProgressView(campaign)
    at_work(plans[0], "purge")
    view.update()
    assert "[0 of 16 measurements done]" in capsys.readouterr().out
    recorded(next(plan for plan in plans if plan.measurement == "pts-iops"))
    recorded(next(plan for plan in plans if plan.measurement == "qos-nines"))
    at_work(plans[1], "measure")
    view.update()
    assert "[2 of 16 measurements done, about 14 h" in capsys.readouterr().out
