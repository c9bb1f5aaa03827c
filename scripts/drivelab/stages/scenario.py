"""Require the host settings of the study's scenario, if the protocol demands it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.errors import UserError
from drivelab.host.settings import HOST, deviations, snapshot
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.stages.device import Device


def require_scenario(plan: Plan, device: Device) -> dict[str, Any] | None:
    """Return the journal's facts on the host's settings.

    None if the protocol requires no scenario. On the virtual clock the host has no effect. An unreadable setting does
    not deviate; the facts count such settings. Raises UserError with the settings that deviate, before drivelab writes
    to the drive.
    """
    if not plan.subject["condition"].get("scenario_required"):
        return None
    scenario = plan.subject["scenario"]
    if plan.clock == "virtual":
        return {"scenario": scenario, "checked": False, "reason": "on the virtual clock the host has no effect"}
    rows = snapshot([device.name], scenario)
    wrong = deviations(rows)
    if wrong:
        details = "; ".join(_deviation(row) for row in wrong)
        raise UserError(
            f"drive '{plan.drive}': {plan.measurement} requires the host settings of scenario '{scenario}', but "
            f"{len(wrong)} settings differ: {details}. Set `host_settings: apply` in the study, or change them by hand "
            "as docs/host_settings.md says, and run again. Nothing was written."
        )
    return {"scenario": scenario, "checked": True, "deviations": [], "settings": len(rows),
            "unknown": sum(row["deviation"] is None for row in rows)}  # fmt: skip


def note_scenario(recording: Recording, stage: str, facts: Mapping[str, Any] | None) -> None:
    """Append the facts of `require_scenario` to the journal, if there are any."""
    if facts is not None:
        recording.append("scenario", stage=stage, **facts)


def _deviation(row: dict[str, Any]) -> str:
    name = row["name"] if row["scope"] == HOST else f"{row['name']} of {row['scope']}"
    return f"{name} is {row['state']}, required {row['wanted']}"
