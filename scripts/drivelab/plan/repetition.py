"""Expand repeated steps, which run several times or once per value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drivelab.plan.value_types import EACH, MisfitError, fields_of
from drivelab.plan.yaml_file import Keys

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
    """Return a value as text for tables. A distribution of block sizes gives sizes and shares."""
    return " ".join(f"{size} {share}" for size, share in value.items()) if isinstance(value, Mapping) else str(value)


_Workloads = Mapping[str, Mapping[str, Any]]
_DEFAULTS = ("pattern", "threads", "queue_depth")
"""Fields of a loop that are defaults for its cells."""


def refuse_unused(body: Mapping[str, Any]) -> None:
    """Raise MisfitError for values of `for_each` or `over` that no field uses.

    `body` is valid under the schema, and `refuse_unclear` has accepted its repeats.
    """
    workloads, for_each = body.get("workloads", {}), body.get("for_each", {})
    for number, step in enumerate(body["measure"]):
        over = step.get("repeat", {}).get("over")
        if over is None:
            continue
        (key,) = keys_of(over)
        names = over.get("workload", for_each.get("workload", []))
        if not any(_has_each(inner, key) for inner in _expanded(step["repeat"]["steps"], workloads, names)):
            raise MisfitError(_unused(key), ("measure", number, "repeat", "over"))
    for key in for_each:
        if not any(_has_each(part, key) for part in _parts(body, key, workloads)):
            raise MisfitError(_unused(key), ("for_each",))


def _unused(key: str) -> str:
    names = fields_of(key)
    fields = " and ".join(f"'{name}: {EACH}'" for name in names) if key == "point" else f"'{names[0]}: {EACH}'"
    return f"has values of '{key}' that no field uses; write {fields} where they belong, or remove them"


def _parts(body: Mapping[str, Any], key: str, workloads: _Workloads) -> Iterator[Any]:
    """Yield the parts that can use `for_each`. A repeat with values of the same key overrides it."""
    yield body["condition"]
    classes = body.get("class", {}).values()
    if classes and all(_has_each(fields, key) for fields in classes):
        yield from classes
    names = body["for_each"].get("workload", [])
    for step in body["measure"]:
        if "repeat" not in step:
            yield from _expanded([step], workloads, names)
            continue
        over = step["repeat"].get("over", {})
        yield over
        if key not in over:
            yield from _expanded(step["repeat"]["steps"], workloads, over.get("workload", names))


def _expanded(
    steps: Sequence[Mapping[str, Any]], workloads: _Workloads, names: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of steps, cells with their workload's fields. `names` are the workloads for `each`."""
    for step in steps:
        ((kind, fields),) = step.items()
        if kind in ("soak", "load"):
            yield from _cells(fields, {}, workloads, names)
        elif kind == "loop":
            yield {key: value for key, value in fields.items() if key not in ("cells", *_DEFAULTS)}
            defaults = {key: fields[key] for key in _DEFAULTS if key in fields}
            entries = [fields["cells"]] if isinstance(fields["cells"], Mapping) else fields["cells"]
            for entry in entries:
                yield from _cells(entry, defaults, workloads, names)
        else:
            yield fields


def _cells(
    fields: Mapping[str, Any], defaults: Mapping[str, Any], workloads: _Workloads, names: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield one cell for each workload. The cell's fields override the workload's, these override `defaults`."""
    wanted = fields.get("workload", [None])
    for entry in wanted if isinstance(wanted, list) else [wanted]:
        for name in names if entry == EACH else [entry]:
            yield {**defaults, **workloads.get(name, {}), **fields}


def _has_each(fields: Any, key: str) -> bool:
    return _takes(fields, fields_of(key))


def _takes(node: Any, names: Sequence[str], name: str = "") -> bool:
    if isinstance(node, Mapping):
        return any(_takes(inner, names, inner_name) for inner_name, inner in node.items())
    if isinstance(node, list):
        return any(_takes(inner, names, name) for inner in node)
    return bool(node == EACH) and name in names
