"""Build plans that run an application, without a study; each test changes the parts that it checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drivelab.campaign.traces import add_application
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.virtual.model import DriveModel

DRIVE = "apptest"
AGREE = {"threshold": 0.05, "metric": "duration_s"}
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
    condition: dict[str, Any] = {"purge": "auto"}
    if fill is not None:
        condition["fill"] = {"pattern": "sequential", "block_size_bytes": 131072, "capacity_multiple": fill,
                             "queue_depth": 32}  # fmt: skip
    subject = {
        "drive": {"serial": drive_model.serial, "virtual": drive_model.to_mapping()},
        "clock": clock,
        "scenario": "synthetic",
        "protocol": "application-duration",
        "write_cache": None,
        "class": {"threads": 1, "queue_depth": 1, "active_range": 1.0, "name": "client"},
        "condition": condition,
        "measure": [{"application": {"cold_runs": cold_runs, "until": until or AGREE}}],
    }
    context = {
        "drive": drive,
        "device": f"virtual:{drive}",
        "drives_sheet": "config/drives.tsv",
        "measurement": "application-duration",
        "run": 1,
        "results": "results",
        "taint": {"remeasure": 0},
        "meter": {},
    }
    return add_application(Plan(subject, context), application, "the test", Path("traces"))


def conditioned(plan: Plan) -> Path:
    purge(plan, Path("purged.json"))
    precondition(plan, Path("purged.json"), Path("conditioned.json"))
    return Path("conditioned.json")


def measured(plan: Plan) -> list[dict[str, Any]]:
    """Run the whole measurement and return the journal's lines of the runs."""
    measure(plan, conditioned(plan))
    return runs_of(plan.recording_path)


def runs_of(recording: Path) -> list[dict[str, Any]]:
    return [line for line in read_journal(recording) if line["event"] == "application"]
