"""The stages of a plan, one after another, as a study runs them."""

from __future__ import annotations

from pathlib import Path

from drivelab.plan.plan import Plan
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure


def run_stages(plan: Plan) -> None:
    """Purge, precondition and measure; the seals are in the current folder."""
    purge(plan, Path("purged.json"))
    precondition(plan, Path("purged.json"), Path("conditioned.json"))
    measure(plan, Path("conditioned.json"))
