"""Resolve the steps of a protocol: from fields without `each` to a step of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from drivelab.core.units import parse_amount, parse_duration, parse_size
from drivelab.plan.loop_cells import cell
from drivelab.plan.loops import load, loop, repeats, steady_soak
from drivelab.plan.value_types import MisfitError, Values, at, duration_s, share_of

if TYPE_CHECKING:
    from drivelab.plan.replay_choice import TimingChoice


def replay(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the step for a plan; `choice` is a mapping of `ReplayChoice`.

    Raises MisfitError for an impossible choice.
    """
    from drivelab.plan.replay_choice import (  # imports pyarrow, which is slow
        MOST_IN_FLIGHT,
        MappingChoice,
        ReplayChoice,
    )

    with at():
        choice = ReplayChoice(
            timing=timing(fields["timing"]),
            mapping=MappingChoice(fields.get("mapping", "auto")),
            dependencies=fields.get("dependencies", "none"),
        )
    with at("until"):
        until = repeats(fields["until"])
    return {
        "choice": choice.to_mapping(),
        "engine": "native",  # of a former option, as `watched`: keeps the digests of plans
        "prefill": fields.get("prefill", "none"),
        "watched": "cold",
        "on_error": fields.get("on_error", "stop"),
        "depth_limit": fields.get("depth_limit", MOST_IN_FLIGHT),
        "cold_runs": fields["cold_runs"],
        "until": until,
        **({"issued": sorted(fields["issued"])} if "issued" in fields else {}),
        **({"least_written_bytes": round(parse_amount(fields["least_written"]))} if "least_written" in fields else {}),
    }


def timing(wanted: str | Mapping[str, Any]) -> TimingChoice:
    """Return the choice for a protocol's `timing`: a mode, or a mode with its value."""
    from drivelab.plan.replay_choice import TimingChoice

    if isinstance(wanted, str):
        return TimingChoice(wanted)
    ((mode, value),) = wanted.items()
    if mode == "scaled":
        return TimingChoice(mode, factor=float(value))
    if mode == "idle-capped":
        return TimingChoice(mode, idle_cap_s=parse_duration(value))
    return TimingChoice(mode, depth=int(value))


def _soak(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    rule, until = fields["until"], {}
    if "volume" in fields:
        raise MisfitError("a soak ends by its 'until'; give a capacity_multiple there", ("volume",))
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
    "load": load,
}
"""Functions by step kind; each raises MisfitError with keys within the step."""


_DEFAULT_DEPTH = 32
_MULTIPLES = ("capacity_multiple", "raw_capacity_multiple")


def condition(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the condition for a plan. Raises MisfitError for a pass without an amount to write."""
    resolved: dict[str, Any] = {"purge": fields["purge"]}
    if fields.get("scenario") == "required":
        resolved["scenario_required"] = True
    for key in ("settle", "rest"):
        if key in fields:
            resolved[f"{key}_s"] = duration_s(fields, key)
    if "fill" in fields:
        with at("fill"):
            if passes := _passes(fields["fill"]):
                resolved["fill"] = passes
    return resolved


def _passes(fill: Mapping[str, Any] | list[Mapping[str, Any]]) -> dict[str, Any] | list[dict[str, Any]]:
    """Return the passes that write something."""
    if isinstance(fill, Mapping):
        resolved_pass = _pass(fill)
        return resolved_pass if resolved_pass.get("range_share", 1) else {}
    resolved = []
    for index, fields in enumerate(fill):
        with at(index):
            resolved.append(_pass(fields))
    return [each for each in resolved if each.get("range_share", 1)]


def _pass(fields: Mapping[str, Any]) -> dict[str, Any]:
    multiples = {key: fields[key] for key in _MULTIPLES if key in fields}
    if len(multiples) != 1:
        raise MisfitError("needs either 'capacity_multiple' or 'raw_capacity_multiple'; give exactly one")
    with at("block_size"):
        size = parse_size(fields["block_size"])
    return {
        "pattern": fields["pattern"],
        "block_size_bytes": size,
        **multiples,
        "queue_depth": fields.get("queue_depth", _DEFAULT_DEPTH),
        **({"operation": fields["operation"]} if "operation" in fields else {}),
        **({"range_share": share_of(fields, "range", zero=True)} if "range" in fields else {}),
    }
