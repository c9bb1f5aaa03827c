"""List a protocol's parameters by path, their sources and differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

STEP_KINDS = ("loop", "soak", "idle", "replay", "application")
"""Kinds of steps in a protocol's `measure`; a `repeat` contains steps of these kinds."""


def parameters(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every parameter with its path, such as `loop.until.steady_state.window`.

    Steps of one kind share a path. Paths of repeated steps begin with `repeat.`. A phase's name is not a parameter.
    """
    for path, value in _parts(body):
        yield from _leaves(value, path)


def _parts(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in ("class", "for_each", "workloads", "condition", "simultaneous", "analysis"):
        if key in body:
            yield key, body[key]
    for step in body["measure"]:
        for kind, fields in step.items():
            if kind != "repeat":
                yield kind, fields
                continue
            yield "repeat", {key: fields[key] for key in ("times", "over") if key in fields}
            for inner in fields["steps"]:
                yield "repeat", inner


def unsourced(body: Mapping[str, Any]) -> list[str]:
    """Return the sorted paths of parameters without an entry in `sources`."""
    return sorted(path for path, _ in parameters(body) if not any(_covers(source, path) for source in body["sources"]))


def unknown(sources: Iterable[str], body: Mapping[str, Any]) -> list[str]:
    """Return the sources whose path does not exist in a protocol.

    Their paths may be longer than those of `parameters`: into listed fill passes, cells and tracked variables.
    """
    paths = {path for part, value in _parts(body) for path in _all_paths(value, part)}
    return [source for source in sources if source not in paths]


def _all_paths(value: Any, path: str) -> Iterator[str]:
    yield path
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _all_paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _all_paths(inner, path)


def _covers(source: str, parameter: str) -> bool:
    return parameter == source or parameter.startswith(source + ".")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    else:
        yield path, value


def differences(full: Mapping[str, Any], body: Mapping[str, Any], drive_class: str) -> tuple[str, ...]:
    """Return the differences from the full-length protocol, in words."""

    def flat(mapping: Mapping[str, Any]) -> dict[str, list[Any]]:
        by_path: dict[str, list[Any]] = {}
        for path, value in parameters(mapping):
            if not path.startswith("class.") or path.startswith(f"class.{drive_class}."):
                by_path.setdefault(path, []).append(value)
        return by_path

    before, after = flat(full), flat(body)
    return tuple(
        f"{path.replace('_', ' ').replace('.', ' ')}: {_text(after.get(path))} instead of {_text(before.get(path))}"
        for path in dict.fromkeys([*before, *after])
        if before.get(path) != after.get(path)
    )


def _text(values: list[Any] | None) -> str:
    if values is None:
        return "none"
    return "; ".join(", ".join(map(_value_text, v)) if isinstance(v, list) else str(v) for v in values)


def _value_text(value: Any) -> str:
    """Return a cell as its values, such as `random 0 4KiB`.

    Nested values include their keys.
    """
    return " ".join(map(_nested_text, value.values())) if isinstance(value, Mapping) else str(value)


def _nested_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{key} {_nested_text(inner)}" for key, inner in value.items()) + ")"
    return "(" + ", ".join(map(_nested_text, value)) + ")" if isinstance(value, list) else str(value)
