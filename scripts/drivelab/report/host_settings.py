"""Host settings that deviate from the study's scenario."""

from __future__ import annotations

from drivelab.report.inputs import Inputs
from drivelab.report.view import Cell, Column, Table


def host_settings(inputs: Inputs) -> Table | None:
    """Return a row for each setting and state; None if all recordings used the virtual clock."""
    checked = [plan for plan in inputs.plans if plan.get("settings") is not None]
    if not checked:
        return None
    recordings_by_state: dict[tuple[str, ...], list[str]] = {}
    for plan in checked:
        for row in plan["settings"]:
            scope = "host" if row["scope"] == "host" else f"drive {plan['drive']}"
            key = (row["name"], scope, row["state"], row["wanted"], row["effect"])
            recordings_by_state.setdefault(key, []).append(plan["recording"])
    rows = [
        (
            Cell(name, small=scope),
            Cell(state, tone="mark"),
            Cell(wanted),
            Cell(effect),
            Cell("all" if len(set(recordings)) == len(checked) else f"{len(set(recordings))} of {len(checked)}"),
        )
        for (name, scope, state, wanted, effect), recordings in recordings_by_state.items()
    ]
    if not rows:
        rows = [(Cell("All settings"), Cell("as wanted"), Cell(""), Cell(""), Cell("all"))]
    scenarios = ", ".join(dict.fromkeys(str(plan.get("scenario")) for plan in checked))
    return Table(
        id="host-settings",
        caption=f"Host settings that differ from the scenario ({scenarios})",
        columns=tuple(Column(name, numeric=False) for name in ("Setting", "State", "Wanted", "Effect", "Recordings")),
        rows=tuple(rows),
        note="Run 'drivelab doctor' to see all settings and how to change them. With 'host_settings: apply', the study "
        "changes what can be changed while it runs.",
    )
