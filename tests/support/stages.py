"""The stages of a plan, one after another, as a study runs them, and what its journal says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drivelab.campaign.planning import Campaign
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.run.together import measure_together


def planned(measurements: str, drives: str = "op7", more: str = "") -> list[Plan]:
    """Write the study `one` of these measurements, in real time, to the current project; return its plans."""
    Path("config/one.yaml").write_text(
        f"name: one\nresults: results\nclock: wall\ndrives: [{drives}]\n"
        f"traces: {{sqlite: {{shipped: sqlite-inserts}}}}\n{more}measurements:\n{measurements}"
    )
    return [planned.plan for planned in Campaign.load("config/one.yaml").plans]


def plans_of(study: str) -> list[Plan]:
    """Write a study to the project that is the current folder, and return its plans."""
    Path("config/mine.yaml").write_text(study)
    return [planned.plan for planned in Campaign.load("config/mine.yaml").plans]


def plan_of(measurement: str, more: str = "") -> Plan:
    """Return the plan of one measurement of drive op7 on the virtual clock; `more` has other keys of the study."""
    return plans_of(
        f"name: mine\nresults: results\nclock: virtual\ndrives: [op7]\n{more}measurements:\n  - {measurement.strip()}\n"
    )[0]


def conditioned(plan: Plan, folder: Path = Path()) -> Path:
    """Purge and precondition, and return the seal; files are in the folder."""
    purge(plan, folder / "purged.json")
    precondition(plan, folder / "purged.json", folder / "conditioned.json")
    return folder / "conditioned.json"


def run_stages(plan: Plan, folder: Path = Path()) -> Path:
    """Purge, precondition and measure, and return the recording; the seals are in the folder."""
    measure(plan, conditioned(plan, folder))
    return plan.recording_path


def part_of(plan: Plan) -> Path:
    """Return the folder of an unfinished recording."""
    return plan.recording_path.with_name(f"{plan.recording_path.name}.part")


def lines(of: Plan | Path, *events: str) -> list[dict[str, Any]]:
    """Return the journal's lines of these events, or all, of a plan's recording or a folder."""
    folder = of.recording_path if isinstance(of, Plan) else of
    return [line for line in read_journal(folder) if not events or line["event"] in events]


def measured_together(plans: list[Plan]) -> None:
    """Run the stages, the last one for all plans at the same time; files are in the current folder."""
    plan_files, seals = [], []
    for plan in plans:
        plan_files.append(Path(f"{plan.drive}.plan"))
        plan_files[-1].write_text(plan.to_json())
        purge(plan, Path(f"{plan.drive}.purged"))
        precondition(plan, Path(f"{plan.drive}.purged"), Path(f"{plan.drive}.sealed"))
        seals.append(Path(f"{plan.drive}.sealed"))
    measure_together(plan_files, seals)
    for plan, sealed in zip(plans, seals, strict=True):
        measure(plan, sealed)
