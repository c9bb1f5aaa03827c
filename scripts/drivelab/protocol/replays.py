"""Resolve the replay step: timing, mapping, order and number of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.stop_rules import repeats
from drivelab.units import parse_duration

if TYPE_CHECKING:
    from drivelab.replay.choice import TimingChoice


def replay(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the step for a plan; `choice` is a mapping of `ReplayChoice`.

    Raises MisfitError for an impossible choice, and for one that fio's replay does not support.
    """
    from drivelab.replay.choice import MappingChoice, ReplayChoice  # imports pyarrow, which is slow
    from drivelab.replay.records import MOST_IN_FLIGHT

    dependencies = fields.get("dependencies", "none")
    engine, on_error = fields.get("engine", "native"), fields.get("on_error", "stop")
    beyond_fio = {"dependencies": dependencies != "none", "continuing after an error": on_error != "stop",
                  "depth limit": "depth_limit" in fields}  # fmt: skip
    if engine == "fio" and any(beyond_fio.values()):
        feature = next(name for name, used in beyond_fio.items() if used)
        raise MisfitError(f"fio's replay does not support {feature}; use engine native or remove it", ("engine",))
    with at():
        choice = ReplayChoice(
            timing=timing(fields["timing"]),
            mapping=MappingChoice(fields.get("mapping", "auto")),
            dependencies=dependencies,
        )
    with at("until"):
        until = repeats(fields["until"])
    return {
        "choice": choice.to_mapping(),
        "engine": engine,
        "prefill": fields.get("prefill", "none"),
        "watched": fields.get("watched", "cold"),
        "on_error": on_error,
        "depth_limit": fields.get("depth_limit", MOST_IN_FLIGHT),
        "cold_runs": fields["cold_runs"],
        "until": until,
    }


def timing(wanted: str | Mapping[str, Any]) -> TimingChoice:
    """Return the choice for a protocol's `timing`: a mode, or a mode with its value."""
    from drivelab.replay.choice import TimingChoice

    if isinstance(wanted, str):
        return TimingChoice(wanted)
    ((mode, value),) = wanted.items()
    if mode == "scaled":
        return TimingChoice(mode, factor=float(value))
    if mode == "idle-capped":
        return TimingChoice(mode, idle_cap_s=parse_duration(value))
    return TimingChoice(mode, depth=int(value))
