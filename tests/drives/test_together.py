"""Two virtual drives measured at the same time, in real time: they start together and run in parallel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from head_to_head import protocol

import drivelab
from drivelab.campaign.planning import Campaign
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.together import measure_together

pytestmark = pytest.mark.device

PROTOCOL = protocol("1s", "3s", "2s", queue_depth=2)
MODEL = "{{serial: TOGETHER-{0}, capacity: 16MiB, over_provisioning: 28%, slc_cache: 0B}}"
DRIVES = ("together-a", "together-b")


@pytest.fixture
def plans(project: Path, run_directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    monkeypatch.setenv("PYTHONPATH", str(Path(drivelab.__file__).parents[1]))
    Path("config/protocols/head-to-head.yaml").write_text(PROTOCOL)
    with Path("config/virtual_drives.yaml").open("a") as models, Path("config/drives.tsv").open("a") as sheet:
        for name in DRIVES:
            models.write(f"{name}: {MODEL.format(name[-1].upper())}\n")
            sheet.write(f"{name}\tvirtual:{name}\tTOGETHER-{name[-1].upper()}\tyes\t\n")
    Path("config/mine.yaml").write_text(
        f"name: mine\nresults: results\nclock: wall\ndrives: [{', '.join(DRIVES)}]\n"
        "measurements: [{protocol: head-to-head}]\n"
    )
    return [planned.plan for planned in Campaign.load("config/mine.yaml").plans]


def lines(plan: Plan, event: str) -> list[dict[str, Any]]:
    return [line for line in read_journal(plan.recording_path) if line["event"] == event]


def test_drives_start_together_and_run_in_parallel(plans: list[Plan]) -> None:
    plan_files, seals = [], []
    for plan in plans:
        plan_files.append(Path(f"{plan.drive}.plan"))
        plan_files[-1].write_text(plan.to_json())
        purge(plan, Path(f"{plan.drive}.purged"))
        precondition(plan, Path(f"{plan.drive}.purged"), Path(f"{plan.drive}.sealed"))
        seals.append(Path(f"{plan.drive}.sealed"))
    measure_together(plan_files, seals)
    first, second = (lines(plan, "soak") for plan in plans)
    skews_s = [[line["skew_s"] for line in lines(plan, "started-together")] for plan in plans]
    assert skews_s[0] == skews_s[1]
    for step in range(2):
        skew_s = abs(first[step]["started_s"] - second[step]["started_s"])
        assert skews_s[0][step] == pytest.approx(skew_s, abs=1e-3)
        both_s = min(first[step]["ended_s"], second[step]["ended_s"]) - max(
            first[step]["started_s"], second[step]["started_s"]
        )
        assert both_s > 0.8 * (first[step]["ended_s"] - first[step]["started_s"]), "the soaks overlap too little"
        assert skew_s < 0.1 * both_s
    print("skew, ms:", [round(1000 * skew_s, 3) for skew_s in skews_s[0]])
    met = lines(plans[0], "together")
    assert [line["with"] for line in met] == [["together-b"]] * 3
    assert all(line["waited_s"] >= 0 for line in met)
