"""Which `each` there are for the values of `for_each` and of repeats.

Values that nothing takes would give results of one and the same procedure different names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drivelab.protocol.misfit import MisfitError
from drivelab.protocol.repeats import keys_of
from drivelab.protocol.values import EACH, fields_of

_Workloads = Mapping[str, Mapping[str, Any]]
_DEFAULTS = ("pattern", "threads", "queue_depth")
"""Of a loop, for cells that do not say."""


def refuse_unused(body: Mapping[str, Any]) -> None:
    """Raise MisfitError for a `for_each`, or an `over` of a repeat, whose values no field takes.

    `body` fits the schema, and its repeats are clear.
    """
    workloads, for_each = body.get("workloads", {}), body.get("for_each", {})
    for number, step in enumerate(body["measure"]):
        over = step.get("repeat", {}).get("over")
        if over is None:
            continue
        (key,) = keys_of(over)
        called = over.get("workload", for_each.get("workload", []))
        if not any(_has_each(inner, key) for inner in _written_out(step["repeat"]["steps"], workloads, called)):
            raise MisfitError(_unused(key), ("measure", number, "repeat", "over"))
    for key in for_each:
        if not any(_has_each(part, key) for part in _parts(body, key, workloads)):
            raise MisfitError(_unused(key), ("for_each",))


def _unused(key: str) -> str:
    names = fields_of(key)
    fields = " and ".join(f"'{name}: {EACH}'" for name in names) if key == "point" else f"'{names[0]}: {EACH}'"
    return f"has values of '{key}' that nothing takes; write {fields} where they are meant, or leave them out"


def _parts(body: Mapping[str, Any], key: str, workloads: _Workloads) -> Iterator[Any]:
    """Where `for_each` may be taken: not within a repeat that has values of the same key, which go before."""
    yield body["condition"]
    classes = body.get("class", {}).values()
    if classes and all(_has_each(one, key) for one in classes):
        yield from classes
    called = body["for_each"].get("workload", [])
    for step in body["measure"]:
        if "repeat" not in step:
            yield from _written_out([step], workloads, called)
            continue
        over = step["repeat"].get("over", {})
        yield over
        if key not in over:
            yield from _written_out(step["repeat"]["steps"], workloads, over.get("workload", called))


def _written_out(
    steps: Sequence[Mapping[str, Any]], workloads: _Workloads, called: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """Fields of steps whose cells have those of their workloads; `called` are the workloads that `each` stands for."""
    for step in steps:
        ((kind, fields),) = step.items()
        if kind == "soak":
            yield from _cells(fields, {}, workloads, called)
        elif kind == "loop":
            yield {key: value for key, value in fields.items() if key not in ("cells", *_DEFAULTS)}
            defaults = {key: fields[key] for key in _DEFAULTS if key in fields}
            entries = [fields["cells"]] if isinstance(fields["cells"], Mapping) else fields["cells"]
            for entry in entries:
                yield from _cells(entry, defaults, workloads, called)
        else:
            yield fields


def _cells(
    fields: Mapping[str, Any], defaults: Mapping[str, Any], workloads: _Workloads, called: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """One for each workload, its fields before `defaults` and behind those of the cell itself."""
    wanted = fields.get("workload", [None])
    for name in wanted if isinstance(wanted, list) else [wanted]:
        for one in called if name == EACH else [name]:
            yield {**defaults, **workloads.get(one, {}), **fields}


def _has_each(fields: Any, key: str) -> bool:
    return _takes(fields, fields_of(key))


def _takes(node: Any, names: Sequence[str], name: str = "") -> bool:
    if isinstance(node, Mapping):
        return any(_takes(inner, names, inner_name) for inner_name, inner in node.items())
    if isinstance(node, list):
        return any(_takes(inner, names, name) for inner in node)
    return bool(node == EACH) and name in names
