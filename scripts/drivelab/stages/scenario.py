"""The host as the study's scenario wants it: for a protocol that asks for it, the condition of beginning at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.errors import UserError
from drivelab.host.settings import HOST, deviations, snapshot
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording
from drivelab.stages.device import Device


def require_scenario(plan: Plan, device: Device) -> dict[str, Any] | None:
    """What the journal says of the host's settings; None if the protocol does not ask for a scenario.

    On the virtual clock no host takes part. A setting that cannot be read here does not deviate; how many there are
    is told. Raises UserError, before anything is touched, that names what deviates.
    """
    if not plan.subject["condition"].get("scenario_required"):
        return None
    scenario = plan.subject["scenario"]
    if plan.clock == "virtual":
        return {"scenario": scenario, "checked": False, "reason": "on the virtual clock no host takes part"}
    rows = snapshot([device.name], scenario)
    wrong = deviations(rows)
    if wrong:
        told = "; ".join(_words(row) for row in wrong)
        raise UserError(
            f"drive '{plan.drive}': {plan.measurement} asks for a host set as for scenario '{scenario}', and "
            f"{len(wrong)} of its settings are not: {told}. Put `host_settings: apply` into the study, or set them by "
            "hand as docs/host_settings.md says, and run again; nothing was touched"
        )
    return {"scenario": scenario, "checked": True, "deviations": [], "settings": len(rows),
            "unknown": sum(row["deviation"] is None for row in rows)}  # fmt: skip


def note_scenario(recording: Recording, stage: str, facts: Mapping[str, Any] | None) -> None:
    """Enter into the journal what `require_scenario` found, if it was asked."""
    if facts is not None:
        recording.append("scenario", stage=stage, **facts)


def _words(row: dict[str, Any]) -> str:
    name = row["name"] if row["scope"] == HOST else f"{row['name']} of {row['scope']}"
    return f"{name} is {row['state']}, wanted {row['wanted']}"
