"""The parameters of a protocol by their paths: where each comes from, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

STEP_KINDS = ("loop", "soak", "idle", "replay", "application")
"""What a protocol's `measure` is made of, beside `repeat`, which is made of these."""


def parameters(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every parameter with its path, such as `loop.until.steady_state.window`; steps of one kind share a path.

    Those of a repeated step have `repeat.` before it. The name of a phase is no parameter.
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
    """Paths of the parameters that no entry of `sources` covers, in alphabetical order."""
    return sorted(path for path, _ in parameters(body) if not any(_covers(one, path) for one in body["sources"]))


def unknown(sources: Iterable[str], body: Mapping[str, Any]) -> list[str]:
    """Those of the sources that are of nothing in a protocol.

    They may go further than `parameters` do: into passes of a fill, cells and tracked variables that are listed.
    """
    paths = {found for path, value in _parts(body) for found in _all_paths(value, path)}
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
    """What differs between a protocol at full length and as it is carried out, in words."""

    def flat(mapping: Mapping[str, Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for path, value in parameters(mapping):
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
    """A cell as its values, such as `random 0 4KiB`; what is within these with its keys."""
    return " ".join(map(_within, value.values())) if isinstance(value, Mapping) else str(value)


def _within(value: Any) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{key} {_within(inner)}" for key, inner in value.items()) + ")"
    return "(" + ", ".join(map(_within, value)) + ")" if isinstance(value, list) else str(value)
