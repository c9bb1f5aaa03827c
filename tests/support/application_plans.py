"""Build plans that run an application, without a study; each test changes the parts that it checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from made_plans import made_plan
from stages import lines, run_stages

from drivelab.campaign.traces import add_application
from drivelab.plan.plan import Plan

DRIVE = "apptest"
AGREE = {"threshold": 0.05, "metric": "duration_s"}
MODEL = {"capacity": "64MiB", "slc_cache": "16MiB"}


def plan_of(
    application: str,
    clock: str,
    *,
    drive: str = DRIVE,
    until: dict[str, Any] | None = None,
    cold_runs: int = 1,
    fill: float | None = 1,
    **model: Any,
) -> Plan:
    """Return a plan in the current project folder and write its drive sheet; `model` changes MODEL."""
    condition: dict[str, Any] = {}
    if fill is not None:
        condition["fill"] = {"pattern": "sequential", "block_size_bytes": 131072, "capacity_multiple": fill,
                             "queue_depth": 32}  # fmt: skip
    steps = [{"application": {"cold_runs": cold_runs, "until": until or AGREE}}]
    drive_class = {"threads": 1, "queue_depth": 1, "active_range": 1.0, "name": "client"}
    plan = made_plan(
        Path("config"), steps, condition, clock=clock, name=drive, model={**MODEL, **model}, write_cache=None,
        **{"class": drive_class},
    )  # fmt: skip
    return add_application(plan, application, "the test", Path("traces"))


def measured(plan: Plan) -> list[dict[str, Any]]:
    """Run the whole measurement and return the journal's lines of the runs."""
    return runs_of(run_stages(plan))


def runs_of(recording: Path) -> list[dict[str, Any]]:
    return lines(recording, "application")
