"""Protocol files: read, checked, scaled and resolved into steps with numbers in base units."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from drivelab.config.schema import validate
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.protocol.loop_cells import PLACE, loop_cells
from drivelab.units import parse_duration, parse_share, parse_size

_STEP_KINDS = ("loop", "soak", "replay")
_CHANGEABLE = ("class", "for_each", "settle", "fill", *_STEP_KINDS)


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
        """Whether it has a replay step, so that a study must name a trace."""
        return any("replay" in step for step in self.body["measure"])


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
    unsourced = sorted(p for p, _ in _parameters(body) if not any(_covers(s, p) for s in body["sources"]))
    if unsourced:
        raise UserError(f"{path}: key 'sources' has no entry for '{unsourced[0]}'; say where the value comes from")
    return Protocol(path, body)


def _covers(source: str, parameter: str) -> bool:
    return parameter == source or parameter.startswith(source + ".")


def _parameters(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every parameter with its path, such as `loop.until.steady_state.window`; steps of one kind share a path."""
    for key in ("class", "for_each", "condition"):
        yield from _leaves(body.get(key, {}), key)
    for step in body["measure"]:
        for kind, fields in step.items():
            yield from _leaves(fields, kind)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    else:
        yield path, value


def _merge(into: dict[str, Any], change: Mapping[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)


def altered_body(protocol: Protocol, change: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The protocol's mapping with `change` (keys as in `scale`) laid over it; checked anew against the schema."""
    body = copy.deepcopy(dict(protocol.body))
    for part, fields in change.items():
        if part not in _CHANGEABLE:
            raise UserError(f"{source}: '{part}' cannot be changed; what can is {', '.join(_CHANGEABLE)}")
        if part == "settle":
            body["condition"]["settle"] = fields
            continue
        changes: list[Any] = fields if isinstance(fields, list) and part in _STEP_KINDS else [fields]
        if not all(isinstance(one, Mapping) for one in changes):
            raise UserError(f"{source}: '{part}' must give the fields that differ, as in a protocol's 'scale'")
        if part in _STEP_KINDS:
            steps = [step[part] for step in body["measure"] if part in step]
            if not steps:
                raise UserError(f"{source}: '{part}' changes a step that protocol '{protocol.name}' does not have")
            if not isinstance(fields, list):
                changes *= len(steps)
            if len(changes) != len(steps):
                raise UserError(
                    f"{source}: '{part}' lists {len(changes)} changes for {len(steps)} steps; give each one"
                )
            for step, one in zip(steps, changes, strict=True):
                _merge(step, one)
        else:
            _merge(
                body["condition"].setdefault("fill", {}) if part == "fill" else body.setdefault(part, {}), changes[0]
            )
    return validate(body, "protocol", source)


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
        body = altered_body(protocol, scales[scale], f"{protocol.path} scale '{scale}'")
    if settings:
        body = altered_body(Protocol(protocol.path, body), settings, source)
    altered = _differences(protocol.body, body, drive_class)
    values = body.get("for_each", {}).get("block_size", [None])
    return [Resolved(value, _steps(body, drive_class, value), altered) for value in values]


def _differences(full: Mapping[str, Any], body: Mapping[str, Any], drive_class: str) -> tuple[str, ...]:
    def flat(mapping: Mapping[str, Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for path, value in _parameters(mapping):
            if not path.startswith("class.") or path.startswith(f"class.{drive_class}."):
                found.setdefault(path, []).append(value)
        return found

    before, after = flat(full), flat(body)
    return tuple(
        f"{path.replace('_', ' ').replace('.', ' ')}: {_words(after.get(path))} instead of {_words(before.get(path))}"
        for path in dict.fromkeys([*before, *after])
        if before.get(path) != after.get(path)
    )


def _words(values: list[Any] | None) -> str:
    if values is None:
        return "none"
    return "; ".join(", ".join(map(_word, v)) if isinstance(v, list) else str(v) for v in values)


def _word(value: Any) -> str:
    return " ".join(map(str, value.values())) if isinstance(value, Mapping) else str(value)


def _steps(body: Mapping[str, Any], drive_class: str, each: str | None) -> dict[str, Any]:
    chosen = body.get("class", {}).get(drive_class, {"threads": 1, "queue_depth": 1, "active_range": "100%"})
    settings = {**chosen, "active_range": parse_share(chosen["active_range"]), "name": drive_class}
    if not 0 < settings["active_range"] <= 1:
        raise UserError(f"protocol '{body['name']}': active range {chosen['active_range']} is not within 0% and 100%")

    def size(text: str) -> int:
        if text == "each" and each is None:
            raise UserError(f"protocol '{body['name']}': a block size is 'each' but there is no 'for_each'; add one")
        return parse_size(each if text == "each" else text)

    def cell(fields: Mapping[str, Any], read_share: int, block_size: str) -> Cell:
        return Cell(
            pattern=fields["pattern"],
            read_share=read_share,
            block_size_bytes=size(block_size),
            threads=fields.get("threads", settings["threads"]),
            queue_depth=fields.get("queue_depth", settings["queue_depth"]),
            runtime_s=parse_duration(fields["runtime"]) if "runtime" in fields else None,
            range_share=settings["active_range"],
            slice_s=parse_duration(fields["slice"]) if "slice" in fields else None,
        )

    def loop(fields: Mapping[str, Any]) -> dict[str, Any]:
        wanted = loop_cells(fields, body["name"])
        cells = [
            replace(cell(one, one["read_share"], one["block_size"]), runtime_s=one["runtime_s"]).to_mapping()
            for one in wanted
        ]
        places = [tuple(one[key] for key in PLACE) for one in cells]
        if len(set(places)) < len(places):
            twice = next(
                Cell(**one).workload for one, place in zip(cells, places, strict=True) if places.count(place) > 1
            )
            raise UserError(f"protocol '{body['name']}': the loop has {twice} twice; leave one out")
        rule = fields["until"]["steady_state"]
        track = [
            {"pattern": t.get("pattern", fields.get("pattern")), "read_share": t["read_share"],
             "block_size_bytes": size(t["block_size"]), "metric": t["metric"]}
            for t in rule["track"]
        ]  # fmt: skip
        for variable in track:
            if tuple(variable[key] for key in PLACE) not in places:
                pattern = f"{variable['pattern']} access, " if isinstance(fields["cells"], list) else ""
                raise UserError(
                    f"protocol '{body['name']}': tracks {pattern}read share {variable['read_share']} at "
                    f"{variable['block_size_bytes']} bytes, which is no cell of the loop; add it to the cells"
                )
        if rule["max_rounds"] < rule["window"]:
            raise UserError(f"protocol '{body['name']}': 'max_rounds' is less than 'window'; raise it")
        return {
            "cells": cells,
            "until": {
                "window": rule["window"],
                "max_rounds": rule["max_rounds"],
                "data_excursion": parse_share(rule["data_excursion"]),
                "slope_excursion": parse_share(rule["slope_excursion"]),
                "track": track,
            },
        }

    def soak(fields: Mapping[str, Any]) -> dict[str, Any]:
        until: dict[str, Any] = {}
        if "capacity_multiple" in fields["until"]:
            until["capacity_multiple"] = fields["until"]["capacity_multiple"]
        if "time" in fields["until"]:
            until["time_s"] = parse_duration(fields["until"]["time"])
        return {"cell": cell(fields, fields["read_share"], fields["block_size"]).to_mapping(), "until": until}

    def replay(fields: Mapping[str, Any]) -> dict[str, Any]:
        rule = fields["until"]["relative_standard_error"]
        return {
            "timing": fields["timing"],
            "cold_runs": fields["cold_runs"],
            "until": {"threshold": parse_share(rule["threshold"]), "metric": rule["metric"]},
        }

    makers = {"loop": loop, "soak": soak, "replay": replay}
    condition: dict[str, Any] = {"purge": body["condition"]["purge"]}
    if "settle" in body["condition"]:
        condition["settle_s"] = parse_duration(body["condition"]["settle"])
    if "fill" in body["condition"]:
        fill = body["condition"]["fill"]
        condition["fill"] = {
            "pattern": fill["pattern"],
            "block_size_bytes": size(fill["block_size"]),
            "capacity_multiple": fill["capacity_multiple"],
            "queue_depth": fill.get("queue_depth", 32),
        }
    measure = [{kind: makers[kind](fields)} for step in body["measure"] for kind, fields in step.items()]
    return {"class": settings, "condition": condition, "measure": measure}
