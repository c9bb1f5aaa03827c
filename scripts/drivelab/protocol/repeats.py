"""Expand repeated steps, which run several times or once per value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drivelab.config.yaml_file import Keys
from drivelab.protocol.misfit import MisfitError

POINT = "point"
_OF_POINT = ("of", "response_time")


@dataclass(frozen=True)
class ExpandedStep:
    """One step in the expanded order."""

    kind: str
    fields: Mapping[str, Any]
    keys: Keys
    """Path to the fields in the protocol."""
    phase: Mapping[str, Any] = field(default_factory=dict)
    """`phase`, `phase_pass` (from 1) and, with values, `phase_value`, for the plan; empty outside repeats."""
    key: str | None = None
    """Key of the repeat's values, such as `time`; None for a repeat with `times`."""
    value: Any = None
    """Value for this step."""
    over: Mapping[str, Any] = field(default_factory=dict)
    """The repeat's whole `over`."""
    after: int | None = None
    """Index among the expanded steps of the last loop before the repeat; points are chosen from it."""


def refuse_unclear(measure: Sequence[Mapping[str, Any]]) -> None:
    """Raise MisfitError for a repeat without a clear number of repetitions."""
    for number, step in enumerate(measure):
        if "repeat" not in step:
            continue
        keys = ("measure", number, "repeat")
        if ("times" in step["repeat"]) == ("over" in step["repeat"]):
            raise MisfitError("needs either 'times' or 'over'; give exactly one", keys)
        if len(keys_of(step["repeat"].get("over", {"one": []}))) != 1:
            raise MisfitError("needs values of exactly one key; write a separate repeat for each key", (*keys, "over"))


def keys_of(over: Mapping[str, Any]) -> list[str]:
    """Return the keys of a repeat's values; a valid repeat has one."""
    return [key for key in over if key not in _OF_POINT]


def expanded(measure: Sequence[Mapping[str, Any]]) -> Iterator[ExpandedStep]:
    """Yield the steps of a protocol in order, with repeats expanded."""
    count, last_loop = 0, None
    for number, step in enumerate(measure):
        ((kind, fields),) = step.items()
        keys = ("measure", number, kind)
        steps = list(_repeated(fields, keys, last_loop)) if kind == "repeat" else [ExpandedStep(kind, fields, keys)]
        yield from steps
        loops = [count + index for index, expanded_step in enumerate(steps) if expanded_step.kind == "loop"]
        last_loop = loops[-1] if loops else last_loop
        count += len(steps)


def _repeated(repeat: Mapping[str, Any], keys: Keys, after: int | None) -> Iterator[ExpandedStep]:
    over = repeat.get("over", {})
    key = next(iter(keys_of(over)), None)
    values = [None] * repeat["times"] if key is None else over[key]
    for number, value in enumerate(values, start=1):
        phase: dict[str, Any] = {"phase": repeat["phase"], "phase_pass": number}
        if key is not None:
            phase["phase_value"] = _text(value)
        for index, inner in enumerate(repeat["steps"]):
            ((kind, fields),) = inner.items()
            yield ExpandedStep(kind, fields, (*keys, "steps", index, kind), phase, key, value, over, after)


def _text(value: Any) -> str:
    """Return a value as text for tables.

    A distribution of block sizes gives sizes and shares.
    """
    return " ".join(f"{size} {share}" for size, share in value.items()) if isinstance(value, Mapping) else str(value)
