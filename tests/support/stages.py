"""The stages of a plan, one after another, as a study runs them."""

from __future__ import annotations

from pathlib import Path

from drivelab.plan.plan import Plan
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.run.together import measure_together


def run_stages(plan: Plan) -> None:
    """Purge, precondition and measure; the seals are in the current folder."""
    purge(plan, Path("purged.json"))
    precondition(plan, Path("purged.json"), Path("conditioned.json"))
    measure(plan, Path("conditioned.json"))


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
