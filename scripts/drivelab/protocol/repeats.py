"""Repeated steps written out: a phase of a test, carried out several times or once for each of some values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drivelab.config.yaml_file import Keys
from drivelab.protocol.misfit import MisfitError

POINT = "point"
_OF_POINT = ("of", "response_time")


@dataclass(frozen=True)
class Turn:
    """One step whose turn it is."""

    kind: str
    fields: Mapping[str, Any]
    keys: Keys
    """They lead to the fields in the protocol."""
    phase: Mapping[str, Any] = field(default_factory=dict)
    """`phase`, `phase_pass`, from 1, and with values `phase_value`, for the plan; empty for a step not repeated."""
    key: str | None = None
    """What the repeat has values of, such as `time`; None for a number of times."""
    value: Any = None
    """The one whose turn it is."""
    over: Mapping[str, Any] = field(default_factory=dict)
    """All that the repeat says about it."""
    after: int | None = None
    """Number, from 0, of the last loop before the repeat among the steps written out, which points are chosen of."""


def refuse_unclear(measure: Sequence[Mapping[str, Any]]) -> None:
    """Raise MisfitError for a repeat that does not say how often, or says so twice."""
    for number, step in enumerate(measure):
        if "repeat" not in step:
            continue
        keys = ("measure", number, "repeat")
        if ("times" in step["repeat"]) == ("over" in step["repeat"]):
            raise MisfitError("takes either 'times' or 'over'; give it one of the two", keys)
        if len(keys_of(step["repeat"].get("over", {"one": []}))) != 1:
            raise MisfitError("takes values of one key; put a repeat for each of them", (*keys, "over"))


def keys_of(over: Mapping[str, Any]) -> list[str]:
    """Of what a repeat has values: one key, if it is clear."""
    return [key for key in over if key not in _OF_POINT]


def turns(measure: Sequence[Mapping[str, Any]]) -> Iterator[Turn]:
    """The steps of a protocol in the order in which they are carried out, repeats written out."""
    count, last_loop = 0, None
    for number, step in enumerate(measure):
        ((kind, fields),) = step.items()
        keys = ("measure", number, kind)
        found = list(_repeated(fields, keys, last_loop)) if kind == "repeat" else [Turn(kind, fields, keys)]
        yield from found
        loops = [count + index for index, turn in enumerate(found) if turn.kind == "loop"]
        last_loop = loops[-1] if loops else last_loop
        count += len(found)


def _repeated(repeat: Mapping[str, Any], keys: Keys, after: int | None) -> Iterator[Turn]:
    over = repeat.get("over", {})
    key = next(iter(keys_of(over)), None)
    values = [None] * repeat["times"] if key is None else over[key]
    for number, value in enumerate(values, start=1):
        phase: dict[str, Any] = {"phase": repeat["phase"], "phase_pass": number}
        if key is not None:
            phase["phase_value"] = _text(value)
        for index, inner in enumerate(repeat["steps"]):
            ((kind, fields),) = inner.items()
            yield Turn(kind, fields, (*keys, "steps", index, kind), phase, key, value, over, after)


def _text(value: Any) -> str:
    """For tables; of a distribution of block sizes its sizes and shares."""
    return " ".join(f"{size} {share}" for size, share in value.items()) if isinstance(value, Mapping) else str(value)
