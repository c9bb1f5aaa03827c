"""Repeated steps written out: a phase of a test, carried out several times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drivelab.errors import UserError


@dataclass(frozen=True)
class Turn:
    """One step whose turn it is."""

    kind: str
    fields: Mapping[str, Any]
    phase: Mapping[str, Any]
    """`phase` and `phase_pass`, from 1, for the plan; empty for a step that is not repeated."""
    time: str | None
    """What `each` stands for in times."""


def refuse_unclear(measure: Sequence[Mapping[str, Any]], source: str) -> None:
    """Raise UserError for a repeat that does not say how often, or says so twice; `source` names the file."""
    for number, step in enumerate(measure):
        if "repeat" in step and ("times" in step["repeat"]) == ("over" in step["repeat"]):
            raise UserError(
                f"{source}: key 'measure[{number}].repeat' takes either 'times' or 'over'; give it one of the two"
            )


def turns(measure: Sequence[Mapping[str, Any]]) -> Iterator[Turn]:
    """The steps of a protocol in the order in which they are carried out, repeats written out."""
    for step in measure:
        ((kind, fields),) = step.items()
        if kind != "repeat":
            yield Turn(kind, fields, {}, None)
            continue
        times = fields["over"]["time"] if "over" in fields else [None] * fields["times"]
        for number, time in enumerate(times, start=1):
            for inner in fields["steps"]:
                ((inner_kind, inner_fields),) = inner.items()
                yield Turn(inner_kind, inner_fields, {"phase": fields["phase"], "phase_pass": number}, time)
