"""Protocol files: read, checked, scaled and resolved into steps with numbers in base units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.config.schema import validate
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.protocol.alteration import altered_body
from drivelab.protocol.loops import loop
from drivelab.protocol.parameters import differences, unsourced
from drivelab.protocol.repeats import Turn, refuse_unclear, turns
from drivelab.protocol.replays import replay
from drivelab.protocol.values import Values
from drivelab.units import parse_duration

_NO_CLASS = {"threads": 1, "queue_depth": 1, "active_range": "100%"}


@dataclass(frozen=True)
class Protocol:
    """A protocol file that fits the schema; `body` is the file's mapping."""

    path: Path
    body: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def replays(self) -> bool:
        """Whether it has a replay step, so that a study must name a trace, or several."""
        return any(kind == "replay" for kind, _ in self._steps())

    @property
    def takes_streams(self) -> bool:
        """Whether it has a loop of a trace's streams, so that a study must name one trace."""
        return any(kind == "loop" and "streams" in fields["cells"] for kind, fields in self._steps())

    def _steps(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for turn in turns(self.body["measure"]):
            yield turn.kind, turn.fields


@dataclass(frozen=True)
class Resolved:
    """One measurement that a protocol asks for, ready for a plan."""

    variant: str | None
    """The value of `for_each`, or None."""
    steps: dict[str, Any]
    """`class`, `condition` and `measure`, JSON-able, numbers in base units."""
    altered: tuple[str, ...]
    """What differs from the full-length protocol, in words; empty for the protocol as it stands."""


def load(path: Path) -> Protocol:
    """The protocol in a file; raises UserError with file and key for anything that does not fit."""
    body = validate(load_yaml(path), "protocol", str(path))
    if body["name"] != path.stem:
        raise UserError(f"{path}: key 'name' is '{body['name']}', the file is called '{path.stem}'; make them agree")
    refuse_unclear(body["measure"], str(path))
    if missing := unsourced(body):
        raise UserError(f"{path}: key 'sources' has no entry for '{missing[0]}'; say where the value comes from")
    return Protocol(path, body)


def resolve(
    protocol: Protocol, drive_class: str, scale: str | None, settings: Mapping[str, Any], source: str
) -> list[Resolved]:
    """The measurements of a protocol for a drive class, one for each value of `for_each`.

    `scale` names an entry of the protocol's `scale`, `settings` changes fields on top of it; `source` names, in
    errors, the place that asked for them. Raises UserError when either does not fit.
    """
    body = dict(protocol.body)
    if scale is not None:
        scales = protocol.body.get("scale", {})
        if scale not in scales:
            known = ", ".join(sorted(scales)) or "none"
            raise UserError(f"{source}: protocol '{protocol.name}' has no scale '{scale}'; it has: {known}")
        body = altered_body(body, scales[scale], f"{protocol.path} scale '{scale}'")
    if settings:
        body = altered_body(body, settings, source)
    altered = differences(protocol.body, body, drive_class)
    values = body.get("for_each", {}).get("block_size", [None])
    return [Resolved(value, _steps(body, drive_class, value), altered) for value in values]


def _steps(body: Mapping[str, Any], drive_class: str, each: str | None) -> dict[str, Any]:
    chosen = body.get("class", {}).get(drive_class, _NO_CLASS)
    values = Values.of_class(body["name"], chosen, each)
    return {
        "class": {**chosen, "active_range": values.active_range, "name": drive_class},
        "condition": _condition(body["condition"], values),
        "measure": [_step(turn, values) for turn in turns(body["measure"])],
    }


def _condition(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    condition: dict[str, Any] = {"purge": fields["purge"]}
    if "settle" in fields:
        condition["settle_s"] = parse_duration(fields["settle"])
    if "fill" in fields:
        fill = fields["fill"]
        condition["fill"] = {
            "pattern": fill["pattern"],
            "block_size_bytes": values.size(fill["block_size"]),
            "capacity_multiple": fill["capacity_multiple"],
            "queue_depth": fill.get("queue_depth", 32),
        }
    return condition


def _step(turn: Turn, values: Values) -> dict[str, Any]:
    return {turn.kind: {**_MAKERS[turn.kind](turn.fields, values.at(turn.time)), **turn.phase}}


def _soak(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    until: dict[str, Any] = {}
    if "capacity_multiple" in fields["until"]:
        until["capacity_multiple"] = fields["until"]["capacity_multiple"]
    if "time" in fields["until"]:
        until["time_s"] = values.duration_s(fields["until"]["time"])
    return {"cell": values.cell(fields, None).to_mapping(), "until": until}


def _idle(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    return {"time_s": values.duration_s(fields["time"])}


_MAKERS: dict[str, Callable[[Mapping[str, Any], Values], dict[str, Any]]] = {
    "loop": loop,
    "soak": _soak,
    "idle": _idle,
    "replay": replay,
}
