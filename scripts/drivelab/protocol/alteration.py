"""A protocol with some of its fields changed, by an entry of its `scale` or by a study's `set`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from drivelab.config.schema import validate
from drivelab.errors import UserError
from drivelab.protocol.parameters import STEP_KINDS

_CHANGEABLE = ("class", "for_each", "settle", "fill", *STEP_KINDS, "repeat")
_OF_REPEAT = ("times", "over", *STEP_KINDS)


def altered_body(protocol: Mapping[str, Any], change: Mapping[str, Any], source: str) -> dict[str, Any]:
    """The protocol's mapping with `change` (keys as in `scale`) laid over it; checked anew against the schema.

    `source` names, in errors, the place that asks for the change. Raises UserError when it does not fit.
    """
    body = copy.deepcopy(dict(protocol))
    for part, fields in change.items():
        if part not in _CHANGEABLE:
            raise UserError(f"{source}: '{part}' cannot be changed; what can is {', '.join(_CHANGEABLE)}")
        if part == "settle":
            body["condition"]["settle"] = fields
        elif part in (*STEP_KINDS, "repeat"):
            steps = [step[part] for step in body["measure"] if part in step]
            _change_steps(steps, part, fields, body["name"], source, _into_repeat if part == "repeat" else _into_step)
        else:
            _must_be_fields(fields, part, source)
            into = body["condition"].setdefault("fill", {}) if part == "fill" else body.setdefault(part, {})
            _merge(into, fields)
    return validate(body, "protocol", source)


def _merge(into: dict[str, Any], change: Mapping[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)


def _must_be_fields(fields: Any, part: str, source: str) -> None:
    if not isinstance(fields, Mapping):
        raise UserError(f"{source}: '{part}' must give the fields that differ, as in a protocol's 'scale'")


_Change = Callable[[dict[str, Any], Mapping[str, Any], str], None]


def _change_steps(
    steps: list[dict[str, Any]], part: str, fields: Any, protocol: str, source: str, change: _Change
) -> None:
    """Lay fields over every step, or those of a list over one step each."""
    changes: list[Any] = fields if isinstance(fields, list) else [fields]
    for one in changes:
        _must_be_fields(one, part, source)
    if not steps:
        raise UserError(f"{source}: '{part}' changes a step that protocol '{protocol}' does not have")
    if not isinstance(fields, list):
        changes *= len(steps)
    if len(changes) != len(steps):
        raise UserError(f"{source}: '{part}' lists {len(changes)} changes for {len(steps)} steps; give each one")
    for step, one in zip(steps, changes, strict=True):
        change(step, one, source)


def _into_step(step: dict[str, Any], fields: Mapping[str, Any], source: str) -> None:
    """What excludes each other replaces what stood there: timings, and passes against repeats until they agree."""
    rule, before = fields.get("until"), step.get("until", {})
    if isinstance(rule, Mapping) and "passes" in {*rule, *before} and not {*rule} & {*before}:
        del step["until"]
    if "timing" in fields:
        step.pop("timing", None)
    _merge(step, fields)


def _into_repeat(repeat: dict[str, Any], fields: Mapping[str, Any], source: str) -> None:
    """Fields of the repeat itself, and by kind those of the steps that it repeats."""
    for key, value in fields.items():
        if key not in _OF_REPEAT:
            raise UserError(f"{source}: '{key}' of a repeat cannot be changed; what can is {', '.join(_OF_REPEAT)}")
        if key in STEP_KINDS:
            steps = [step[key] for step in repeat["steps"] if key in step]
            where = f"the repeat of phase '{repeat['phase']}' in"
            if not steps:
                raise UserError(f"{source}: 'repeat.{key}' changes a step that {where} the protocol does not have")
            _change_steps(steps, f"repeat.{key}", value, "", source, _into_step)
        else:
            repeat.pop({"times": "over", "over": "times"}[key], None)
            _merge(repeat, {key: value})
