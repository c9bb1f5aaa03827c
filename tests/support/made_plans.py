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
    name: str = DRIVE,
    **subject: Any,
) -> Plan:
    """Return a plan with results in `folder`, and write its drive sheet there; `model` changes the drive's model."""
    sheet, serial = folder / "drives.tsv", f"{name.upper()}-1"
    sheet.write_text(f"drive\tdevice\tserial\tdestructive\tnote\n{name}\tvirtual:{name}\t{serial}\tyes\t\n")
    drive = DriveModel.from_mapping(name, {**MODEL, "serial": serial, **(model or {})})
    return Plan(
        {
            "drive": {"serial": serial, "virtual": drive.to_mapping(), "over_provisioning": drive.over_provisioning},
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
            "drive": name,
            "device": f"virtual:{name}",
            "drives_sheet": str(sheet),
            "measurement": "made-up",
            "run": 1,
            "results": str(folder / "results"),
            "taint": {},
            "meter": {},
        },
    )
