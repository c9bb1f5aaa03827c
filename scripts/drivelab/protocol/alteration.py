"""A protocol with some of its fields changed, by an entry of its `scale` or by a study's `set`."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from drivelab.config.yaml_file import Keys
from drivelab.protocol.misfit import MisfitError
from drivelab.protocol.parameters import STEP_KINDS

_OF_CONDITION = ("settle", "scenario", "rest")
_CHANGEABLE = ("class", "for_each", "workloads", *_OF_CONDITION, "fill", *STEP_KINDS, "repeat")
_OF_REPEAT = ("times", "over", *STEP_KINDS)
_WHOLE = ("block_size", "access")
"""Mappings under these keys say one thing together, so that a change replaces and does not complete them."""
_ONE_OF = ("for_each", "timing")
"""Mappings of one key: another key takes its place. So does a rule in `until`, but for soaks, which end by several."""
_OF_OVER = ("of", "response_time")
_Targets = Sequence[tuple[Keys, dict[str, Any]]]
"""Parts of a body that fields are laid over, with the keys that lead to them."""
_INSTEAD = {
    "times": "over", "over": "times", "pause": "duty_cycle", "duty_cycle": "pause",
    "capacity_multiple": "raw_capacity_multiple", "raw_capacity_multiple": "capacity_multiple",
}  # fmt: skip


@dataclass
class Alteration:
    """A protocol's mapping with changes laid over it, and which change each changed field is from."""

    body: dict[str, Any]
    changed: list[tuple[Keys, Keys]] = field(default_factory=list)
    """Keys in the body, and those in the change, of all that was replaced."""

    @classmethod
    def of(cls, protocol: Mapping[str, Any], change: Mapping[str, Any]) -> Alteration:
        """Lay `change` (keys as in `scale`) over a protocol; raises MisfitError, with keys in the change.

        What comes out has not been checked.
        """
        found = cls(copy.deepcopy(dict(protocol)))
        for part, fields in change.items():
            found._lay(part, fields)
        return found

    def blamed(self, misfit: MisfitError) -> MisfitError:
        """A misfit in the body as one in the change: of that part of it which has most in common with the keys."""
        origin = self._origin(misfit.keys if misfit.culprit is None else (*misfit.keys, misfit.culprit))
        if misfit.culprit is not None and origin[-1:] == (misfit.culprit,):
            return MisfitError(misfit.reason, origin[:-1], misfit.culprit)
        return MisfitError(misfit.reason, origin)

    def _origin(self, keys: Keys) -> Keys:
        best: tuple[int, Keys] = (0, ())
        for target, source in self.changed:
            common = _in_common(target, keys)
            if common > best[0]:
                best = (common, (*source, *keys[common:]) if common == len(target) else source)
        return best[1]

    def _lay(self, part: str, fields: Any) -> None:
        if part not in _CHANGEABLE:
            raise MisfitError(f"'{part}' cannot be changed; what can is {', '.join(_CHANGEABLE)}", (), part)
        if part in _OF_CONDITION:
            self._set(self.body["condition"], part, fields, ("condition",), ())
        elif part == "fill":
            self._lay_fill(fields)
        elif part in (*STEP_KINDS, "repeat"):
            steps: _Targets = [
                (("measure", i, part), one[part]) for i, one in enumerate(self.body["measure"]) if part in one
            ]
            self._lay_steps(steps, part, fields, (part,))
        else:
            self._merge(self.body.setdefault(part, {}), _fields(fields, part), (part,), (part,), only=part in _ONE_OF)

    def _lay_fill(self, fields: Any) -> None:
        """Over every pass, or those of a list over one pass each; a fill of its own where there was none."""
        condition, keys = self.body["condition"], ("condition", "fill")
        if "fill" not in condition:
            self._set(condition, "fill", fields, ("condition",), ())
            return
        fill = condition["fill"]
        several = isinstance(fill, list)
        passes: _Targets = [((*keys, i), one) for i, one in enumerate(fill)] if several else [(keys, fill)]
        self._lay_steps(passes, "fill", fields, ("fill",))

    def _lay_steps(self, steps: _Targets, part: str, fields: Any, source: Keys, of: str = "the protocol") -> None:
        """Lay fields over every step of a kind, or those of a list over one step each."""
        listed = isinstance(fields, list)
        changes = [((*source, i), one) for i, one in enumerate(fields)] if listed else [(source, fields)] * len(steps)
        for keys, one in changes or [(source, fields)]:
            _fields(one, part, keys)
        if not steps:
            raise MisfitError(f"changes a step that {of} does not have; leave it out", source)
        if len(changes) != len(steps):
            raise MisfitError(f"lists {len(changes)} changes for {len(steps)} of them; give each one", source)
        for (target, step), (keys, one) in zip(steps, changes, strict=True):
            if part == "repeat":
                self._lay_repeat(step, one, target, keys)
            else:
                self._lay_step(step, one, part, target, keys)

    def _lay_step(self, step: dict[str, Any], fields: Mapping[str, Any], kind: str, target: Keys, source: Keys) -> None:
        for key, value in fields.items():
            inner = (*target, key), (*source, key)
            step.pop(_INSTEAD.get(key, ""), None)
            if isinstance(value, Mapping) and isinstance(step.get(key), dict) and key not in _WHOLE:
                self._merge(step[key], value, *inner, only=key in _ONE_OF or (key == "until" and kind != "soak"))
            else:
                self._set(step, key, value, target, source)

    def _lay_repeat(self, repeat: dict[str, Any], fields: Mapping[str, Any], target: Keys, source: Keys) -> None:
        """Fields of the repeat itself, and by kind those of the steps that it repeats."""
        for key, value in fields.items():
            if key not in _OF_REPEAT:
                known = ", ".join(_OF_REPEAT)
                raise MisfitError(f"'{key}' of a repeat cannot be changed; what can is {known}", source, key)
            if key in STEP_KINDS:
                steps = [((*target, "steps", i, key), one[key]) for i, one in enumerate(repeat["steps"]) if key in one]
                self._lay_steps(steps, key, value, (*source, key), f"the repeat of phase '{repeat['phase']}'")
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
        """Lay a mapping over another one; with `only`, in its place where they have no key in common."""
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


def _in_common(some: Keys, others: Keys) -> int:
    """How many keys they begin with alike."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(some, others, strict=False))))


def _fields(fields: Any, part: str, keys: Keys | None = None) -> Mapping[str, Any]:
    if not isinstance(fields, Mapping):
        raise MisfitError("must give the fields that differ, as in a protocol's 'scale'", keys or (part,))
    return fields
