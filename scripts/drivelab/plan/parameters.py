"""List a protocol's parameters by path, their sources and differences."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from drivelab.plan.value_types import MisfitError
from drivelab.plan.yaml_file import Keys

STEP_KINDS = ("loop", "soak", "idle", "replay", "application", "load")
"""Kinds of steps in a protocol's `measure`; a `repeat` contains steps of these kinds."""


def parameters(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every parameter with its path, such as `loop.until.steady_state.window`.

    Steps of one kind share a path. Paths of repeated steps begin with `repeat.`. A phase's name is not a parameter.
    """
    for path, value in _parts(body):
        yield from _leaves(value, path)


def _parts(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in (
        "class",
        "usual_class",
        "write_cache",
        "for_each",
        "workloads",
        "condition",
        "simultaneous",
        "analysis",
    ):
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
    """Return a cell as its values, such as `random 0 4KiB`. Nested values include their keys."""
    return " ".join(map(_nested_text, value.values())) if isinstance(value, Mapping) else str(value)


def _nested_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{key} {_nested_text(inner)}" for key, inner in value.items()) + ")"
    return "(" + ", ".join(map(_nested_text, value)) + ")" if isinstance(value, list) else str(value)


_OF_CONDITION = ("settle", "scenario", "rest")
_CHANGEABLE = ("class", "for_each", "workloads", *_OF_CONDITION, "fill", *STEP_KINDS, "repeat")
_OF_REPEAT = ("times", "over", *STEP_KINDS)
_WHOLE = ("block_size", "access")
"""A change replaces the whole mapping under these keys; it does not merge with it."""
_ONE_OF = ("for_each", "timing")
"""Mappings of one key: another key replaces it. So does one of `until`, except in soaks, which may have several."""
_OF_OVER = ("of", "response_time")
_Targets = Sequence[tuple[Keys, dict[str, Any]]]
"""Parts of a body that a change applies to, with their key paths."""
_INSTEAD = {
    "times": "over", "over": "times", "pause": "duty_cycle", "duty_cycle": "pause",
    "capacity_multiple": "raw_capacity_multiple", "raw_capacity_multiple": "capacity_multiple",
}  # fmt: skip


@dataclass
class Alteration:
    """A protocol with changes applied, and the origin of every changed field."""

    body: dict[str, Any]
    changed: list[tuple[Keys, Keys]] = field(default_factory=list)
    """Key paths of all replaced values: in the body, and in the change."""

    @classmethod
    def of(cls, protocol: Mapping[str, Any], change: Mapping[str, Any]) -> Alteration:
        """Return a protocol with `change` (keys as in `scale`) applied, not yet checked.

        Raises MisfitError with keys in the change.
        """
        alteration = cls(copy.deepcopy(dict(protocol)))
        for part, fields in change.items():
            alteration._apply(part, fields)
        return alteration

    def translate(self, misfit: MisfitError) -> MisfitError:
        """Return a misfit of the body as a misfit of the change that caused it."""
        origin = self._origin(misfit.keys if misfit.unknown_key is None else (*misfit.keys, misfit.unknown_key))
        if misfit.unknown_key is not None and origin[-1:] == (misfit.unknown_key,):
            return MisfitError(misfit.reason, origin[:-1], misfit.unknown_key)
        return MisfitError(misfit.reason, origin)

    def _origin(self, keys: Keys) -> Keys:
        best: tuple[int, Keys] = (0, ())
        for target, source in self.changed:
            common = _shared_prefix(target, keys)
            if common > best[0]:
                best = (common, (*source, *keys[common:]) if common == len(target) else source)
        return best[1]

    def _apply(self, part: str, fields: Any) -> None:
        if part not in _CHANGEABLE:
            raise MisfitError(f"'{part}' cannot be changed; changeable are {', '.join(_CHANGEABLE)}", (), part)
        if part in _OF_CONDITION:
            self._set(self.body["condition"], part, fields, ("condition",), ())
        elif part == "fill":
            self._apply_fill(fields)
        elif part in (*STEP_KINDS, "repeat"):
            steps: _Targets = [
                (("measure", i, part), step[part]) for i, step in enumerate(self.body["measure"]) if part in step
            ]
            self._apply_steps(steps, part, fields, (part,))
        else:
            self._merge(self.body.setdefault(part, {}), _fields(fields, part), (part,), (part,), only=part in _ONE_OF)

    def _apply_fill(self, fields: Any) -> None:
        """Apply a mapping to every pass, or a list to one pass each. Add the fill if the protocol has none."""
        condition, keys = self.body["condition"], ("condition", "fill")
        if "fill" not in condition:
            self._set(condition, "fill", fields, ("condition",), ())
            return
        fill = condition["fill"]
        listed = isinstance(fill, list)
        passes: _Targets = [((*keys, i), one_pass) for i, one_pass in enumerate(fill)] if listed else [(keys, fill)]
        self._apply_steps(passes, "fill", fields, ("fill",))

    def _apply_steps(self, steps: _Targets, part: str, fields: Any, source: Keys, owner: str = "the protocol") -> None:
        """Apply a mapping to every step of a kind, or a list to one step each. `owner` names the steps' place."""
        if isinstance(fields, list):
            changes = [((*source, i), change) for i, change in enumerate(fields)]
        else:
            changes = [(source, fields)] * len(steps)
        for keys, change in changes or [(source, fields)]:
            _fields(change, part, keys)
        if not steps:
            raise MisfitError(f"changes a step that {owner} does not have; remove it", source)
        if len(changes) != len(steps):
            raise MisfitError(f"lists {len(changes)} changes for {len(steps)} steps; list one for each step", source)
        for (target, step), (keys, change) in zip(steps, changes, strict=True):
            if part == "repeat":
                self._apply_repeat(step, change, target, keys)
            else:
                self._apply_step(step, change, part, target, keys)

    def _apply_step(
        self, step: dict[str, Any], fields: Mapping[str, Any], kind: str, target: Keys, source: Keys
    ) -> None:
        for key, value in fields.items():
            inner = (*target, key), (*source, key)
            step.pop(_INSTEAD.get(key, ""), None)
            if isinstance(value, Mapping) and isinstance(step.get(key), dict) and key not in _WHOLE:
                self._merge(step[key], value, *inner, only=key in _ONE_OF or (key == "until" and kind != "soak"))
            else:
                self._set(step, key, value, target, source)

    def _apply_repeat(self, repeat: dict[str, Any], fields: Mapping[str, Any], target: Keys, source: Keys) -> None:
        """Apply fields of the repeat, and of its steps by kind."""
        for key, value in fields.items():
            if key not in _OF_REPEAT:
                known = ", ".join(_OF_REPEAT)
                raise MisfitError(f"'{key}' of a repeat cannot be changed; changeable are {known}", source, key)
            if key in STEP_KINDS:
                steps = [((*target, "steps", i, key), s[key]) for i, s in enumerate(repeat["steps"]) if key in s]
                self._apply_steps(steps, key, value, (*source, key), f"the repeat of phase '{repeat['phase']}'")
                continue
            repeat.pop(_INSTEAD[key], None)
            if key == "over" and isinstance(value, Mapping):
                over = repeat.setdefault("over", {})
                if not ({*value} - {*_OF_OVER}) <= {*over}:
                    over.clear()
                self._merge(over, value, (*target, key), (*source, key))
            else:
                self._set(repeat, key, value, target, source)

    def _merge(
        self, into: dict[str, Any], change: Mapping[str, Any], target: Keys, source: Keys, *, only: bool = False
    ) -> None:
        """Merge `change` into a mapping. With `only`, replace the mapping if they share no key."""
        if only and change and not {*change} & {*into}:
            into.clear()
        for key, value in change.items():
            if isinstance(value, Mapping) and isinstance(into.get(key), dict) and key not in _WHOLE:
                self._merge(into[key], value, (*target, key), (*source, key))
            else:
                self._set(into, key, value, target, source)

    def _set(self, into: dict[str, Any], key: str, value: Any, target: Keys, source: Keys) -> None:
        into[key] = copy.deepcopy(value)
        self.changed.append(((*target, key), (*source, key)))


def _shared_prefix(some: Keys, others: Keys) -> int:
    """Return the length of the shared prefix of two key paths."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(some, others, strict=False))))


def _fields(fields: Any, part: str, keys: Keys | None = None) -> Mapping[str, Any]:
    if not isinstance(fields, Mapping):
        raise MisfitError("must be a mapping of the fields to change, as in a protocol's 'scale'", keys or (part,))
    return fields
