"""Build plans for a small virtual drive, with the conditions and steps of each test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from drivelab.plan.plan import Plan
from drivelab.virtual.model import DriveModel

DRIVE, SERIAL = "mine", "MINE-1"
MODEL: Mapping[str, Any] = {
    "serial": SERIAL, "capacity": "16MiB", "over_provisioning": "28%", "slc_cache": "0B",
}  # fmt: skip
CAPACITY_BYTES = 16 << 20


def made_plan(
    folder: Path,
    measure: Sequence[Mapping[str, Any]] = (),
    condition: Mapping[str, Any] | None = None,
    *,
    clock: str = "virtual",
    model: Mapping[str, Any] | None = None,
    **subject: Any,
) -> Plan:
    """Return a plan with results in `folder`, and write its drive sheet there; `model` changes the drive's model."""
    sheet = folder / "drives.tsv"
    sheet.write_text(f"drive\tdevice\tserial\tdestructive\tnote\n{DRIVE}\tvirtual:{DRIVE}\t{SERIAL}\tyes\t\n")
    drive = DriveModel.from_mapping(DRIVE, {**MODEL, **(model or {})})
    return Plan(
        {
            "drive": {"serial": SERIAL, "virtual": drive.to_mapping(), "over_provisioning": drive.over_provisioning},
            "clock": clock,
            "scenario": "real-world",
            "protocol": "made-up",
            "write_cache": "unchanged",
            "class": {"threads": 1, "queue_depth": 8, "active_range": 1.0},
            "condition": {"purge": "auto", **(condition or {})},
            "measure": list(measure),
            **subject,
        },
        {
            "drive": DRIVE,
            "device": f"virtual:{DRIVE}",
            "drives_sheet": str(sheet),
            "measurement": "made-up",
            "run": 1,
            "results": str(folder / "results"),
            "taint": {},
            "meter": {},
        },
    )
