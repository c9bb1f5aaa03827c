"""Record measurements of virtual drives with made-up models on the virtual clock; the model gives the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from stages import plans_of, run_stages

from drivelab.analysis.detectors import DETECTORS, findings_table
from drivelab.collect.collect import collect

MODEL: dict[str, Any] = {"serial": "V-OWN", "capacity": "16MiB", "over_provisioning": "100%", "logical_block": "512B",
                         "copy_us": 1, "erase_us": 1}  # fmt: skip
"""Garbage collection costs almost nothing, so the rest of the model determines the result."""


def recorded(measurement: str, **model: Any) -> Path:
    """Record a measurement of a drive with this `model`, or of op7-512e without one."""
    drive = "own" if model else "op7-512e"
    if model:
        Path("config/virtual_drives.yaml").write_text(yaml.safe_dump({"own": {**MODEL, **model}}))
        Path("config/drives.tsv").write_text(
            "drive\tdevice\tserial\tdestructive\tnote\nown\tvirtual:own\tV-OWN\tyes\t\n"
        )
    (plan,) = plans_of(
        f"name: one\nresults: results\nclock: virtual\ndrives: [{drive}]\nmeasurements:\n  - {{{measurement}}}\n"
    )
    return run_stages(plan)


def findings(recording: Path, detector: str) -> list[dict[str, Any]]:
    result = findings_table(collect(recording, reduced=True), {detector: DETECTORS[detector]})
    return [dict(row) for row in result.to_dict("records")]
