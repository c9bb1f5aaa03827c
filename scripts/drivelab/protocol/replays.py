"""The replay step resolved: when, where and in what order requests are issued, and how often the trace is replayed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.stop_rules import repeats
from drivelab.units import parse_duration

if TYPE_CHECKING:
    from drivelab.replay.choice import TimingChoice


def replay(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The step for a plan; `choice` is a mapping of `ReplayChoice`.

    Raises MisfitError for a choice that cannot be, and for one that fio's replay does not know.
    """
    from drivelab.replay.choice import MappingChoice, ReplayChoice  # with pyarrow, which other plans must not wait for
    from drivelab.replay.records import MOST_IN_FLIGHT

    dependencies = fields.get("dependencies", "none")
    engine, on_error = fields.get("engine", "native"), fields.get("on_error", "stop")
    beyond_fio = {"dependencies": dependencies != "none", "going on after an error": on_error != "stop",
                  "depth limit": "depth_limit" in fields}  # fmt: skip
    if engine == "fio" and any(beyond_fio.values()):
        what = next(words for words, wanted in beyond_fio.items() if wanted)
        raise MisfitError(f"fio's replay knows no {what}; take engine native, or leave that out", ("engine",))
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
    """A protocol's `timing`: a word, or a word with its value."""
    from drivelab.replay.choice import TimingChoice

    if isinstance(wanted, str):
        return TimingChoice(wanted)
    ((mode, value),) = wanted.items()
    if mode == "scaled":
        return TimingChoice(mode, factor=float(value))
    if mode == "idle-capped":
        return TimingChoice(mode, idle_cap_s=parse_duration(value))
    return TimingChoice(mode, depth=int(value))
