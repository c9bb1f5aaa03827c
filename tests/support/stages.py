"""Plans of a study in real time, and their stages, one after another, as a study runs them."""

from __future__ import annotations

from pathlib import Path

from drivelab.campaign.planning import Campaign
from drivelab.plan.plan import Plan
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


def conditioned(plan: Plan, folder: Path = Path()) -> Path:
    """Purge and precondition; return the seal that this leaves in a folder."""
    purge(plan, folder / "purged.json")
    precondition(plan, folder / "purged.json", folder / "conditioned.json")
    return folder / "conditioned.json"


def run_stages(plan: Plan, folder: Path = Path()) -> None:
    """Purge, precondition and measure; the seals are in a folder."""
    measure(plan, conditioned(plan, folder))


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
