"""Settings of the host that were not as the scenario of the study wants them."""

from __future__ import annotations

from drivelab.report.inputs import Inputs
from drivelab.report.view import Cell, Column, Table


def host_settings(inputs: Inputs) -> Table | None:
    """A row for each setting and state; None where all recordings are of the virtual clock."""
    looked = [plan for plan in inputs.plans if plan.get("settings") is not None]
    if not looked:
        return None
    found: dict[tuple[str, ...], list[str]] = {}
    for plan in looked:
        for row in plan["settings"]:
            scope = "host" if row["scope"] == "host" else f"drive {plan['drive']}"
            key = (row["name"], scope, row["state"], row["wanted"], row["effect"])
            found.setdefault(key, []).append(plan["recording"])
    rows = [
        (
            Cell(name, small=scope),
            Cell(state, tone="mark"),
            Cell(wanted),
            Cell(effect),
            Cell("all" if len(set(recordings)) == len(looked) else f"{len(set(recordings))} of {len(looked)}"),
        )
        for (name, scope, state, wanted, effect), recordings in found.items()
    ]
    if not rows:
        rows = [(Cell("All settings"), Cell("as wanted"), Cell(""), Cell(""), Cell("all"))]
    scenarios = ", ".join(dict.fromkeys(str(plan.get("scenario")) for plan in looked))
    return Table(
        id="host-settings",
        caption=f"Host settings that differ from the scenario ({scenarios})",
        columns=tuple(Column(name, numeric=False) for name in ("Setting", "State", "Wanted", "Effect", "Recordings")),
        rows=tuple(rows),
        note="Run 'drivelab doctor' to see all settings and how to change them; 'host_settings: apply' in the study "
        "sets those that can be set while it runs.",
    )
