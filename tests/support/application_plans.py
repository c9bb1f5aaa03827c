"""Build plans that run an application, without a study; each test changes the parts that it checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from made_plans import made_plan
from stages import lines, run_stages

from drivelab.campaign.traces import add_application
from drivelab.plan.plan import Plan
from drivelab.virtual.model import DriveModel

DRIVE = "apptest"
AGREE = {"threshold": 0.05, "metric": "duration_s"}
CLASS = {"threads": 1, "queue_depth": 1, "active_range": 1.0, "name": "client"}
FILL = {"pattern": "sequential", "block_size_bytes": 131072, "queue_depth": 32}
MODEL = {"serial": "APPTEST-1", "capacity": "64MiB", "over_provisioning": "28%", "slc_cache": "16MiB"}


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
    drive_model = DriveModel.from_mapping(drive, {**MODEL, "serial": f"{drive.upper()}-1", **model})
    row = f"{drive}\tvirtual:{drive}\t{drive_model.serial}\tyes\t\n"
    Path("config/drives.tsv").write_text(f"drive\tdevice\tserial\tdestructive\tnote\n{row}")
    steps = [{"application": {"cold_runs": cold_runs, "until": until or AGREE}}]
    filled = {} if fill is None else {"fill": {**FILL, "capacity_multiple": fill}}
    made = made_plan(Path(), steps, filled, clock=clock, **{"class": CLASS, "write_cache": None})
    subject = {**made.subject, "scenario": "synthetic", "protocol": "application-duration",
               "drive": {"serial": drive_model.serial, "virtual": drive_model.to_mapping()}}  # fmt: skip
    context = {**made.context, "drive": drive, "device": f"virtual:{drive}", "drives_sheet": "config/drives.tsv",
               "measurement": "application-duration", "taint": {"remeasure": 0}}  # fmt: skip
    return add_application(Plan(subject, context), application, "the test", Path("traces"))


def measured(plan: Plan) -> list[dict[str, Any]]:
    """Run the whole measurement and return the journal's lines of the runs."""
    return runs_of(run_stages(plan))


def runs_of(recording: Path) -> list[dict[str, Any]]:
    return lines(recording, "application")
