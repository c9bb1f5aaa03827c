"""Check that a field uses `each` for the values of `for_each` and of repeats.

Unused values would give results of the same procedure different names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drivelab.protocol.misfit import MisfitError
from drivelab.protocol.repeats import keys_of
from drivelab.protocol.values import EACH, fields_of

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
    """Yield the parts that can use `for_each`.

    A repeat with values of the same key overrides it.
    """
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
    """Yield the fields of steps, cells with their workload's fields.

    `names` are the workloads for `each`.
    """
    for step in steps:
        ((kind, fields),) = step.items()
        if kind == "soak":
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
    """Yield one cell for each workload.

    The cell's fields override the workload's, these override `defaults`.
    """
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
