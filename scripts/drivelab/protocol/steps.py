"""Resolve the steps of a protocol: from fields without `each` to a step of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drivelab.protocol.cells import cell
from drivelab.protocol.loops import loop
from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.replays import replay
from drivelab.protocol.stop_rules import repeats, steady_soak
from drivelab.protocol.values import Values, duration_s


def _soak(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    rule, until = fields["until"], {}
    resolved = cell({key: value for key, value in fields.items() if key != "until"}, values, None)
    with at("until"):
        if "capacity_multiple" in rule:
            if "beside" in resolved:
                raise MisfitError("a cell with a workload beside it cannot end by volume; give a 'time'")
            until["capacity_multiple"] = rule["capacity_multiple"]
        if "time" in rule:
            until["time_s"] = duration_s(rule, "time")
        if "steady_state" in rule:
            with at("steady_state"):
                until["steady_state"] = steady_soak(rule["steady_state"], resolved["slice_s"])
        if "steady_state" in until and not {"capacity_multiple", "time_s"} & until.keys():
            raise MisfitError(
                "a drive that never becomes steady would be written forever; add a 'time' or 'capacity_multiple'"
            )
    if resolved["slice_s"] > until.get("time_s", resolved["slice_s"]):
        raise MisfitError(
            f"a slice of {resolved['slice_s']:g} s is longer than the soak of {until['time_s']:g} s; shorten it",
            ("slice",),
        )
    return {"cell": resolved, "until": until}


def _idle(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    return {"time_s": duration_s(fields, "time")}


def _application(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    with at("until"):
        return {"cold_runs": fields["cold_runs"], "until": repeats(fields["until"])}


def _replay(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    return replay(fields)


STEPS: dict[str, Callable[[Mapping[str, Any], Values], dict[str, Any]]] = {
    "loop": loop,
    "soak": _soak,
    "idle": _idle,
    "replay": _replay,
    "application": _application,
}
"""Functions by step kind; each raises MisfitError with keys within the step."""
