"""The host's settings against what a scenario wants: to tell, to record, and to set for the time of a study."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.drives.undo import Undo, Write, perform
from drivelab.errors import UserError
from drivelab.host.catalogue import CATALOGUE
from drivelab.host.entry import SCENARIOS, Part, Setting, Wish
from drivelab.host.machine import Machine
from drivelab.host.temporary import Temporary

NOT_AVAILABLE = "not available here"
HOST = "host"
_NO_ROOT = "host settings were left as they are: changing them needs root"
_PASSES = 3
"""Some settings can be set only after others, such as the energy preference after the governor."""


@dataclass(frozen=True)
class Found:
    """A setting as it is now, of the host or of one drive."""

    setting: Setting
    scope: str
    wish: Wish
    parts: list[Part] | None

    @property
    def name(self) -> str:
        return self.setting.name if self.scope == HOST else f"{self.setting.name} of {self.scope}"

    @property
    def how(self) -> str:
        return self.setting.how if self.scope == HOST else self.setting.how.replace("DRIVE", self.scope)

    @property
    def state(self) -> str:
        if self.parts is None:
            return NOT_AVAILABLE
        return self.setting.describe(self.parts) if self.parts else self.setting.empty

    @property
    def deviation(self) -> bool | None:
        """None where the state is not available, or does not say enough."""
        if self.parts is None:
            return None
        verdicts = [self.wish.accepts(part) for part in self.parts]
        return True if False in verdicts else None if None in verdicts else False

    @property
    def deviating(self) -> list[Part]:
        return [part for part in self.parts or [] if self.wish.accepts(part) is False]

    def changes(self, parts: Sequence[Part]) -> dict[str, Change]:
        """What would bring parts into the wanted state and back, by unique names; only what drivelab sets."""
        found = {f"{self.name}: {part.name}": _change(part, self.wish) for part in parts}
        return {name: change for name, change in found.items() if change is not None}


@dataclass(frozen=True)
class Change:
    """How to bring one part into the wanted state, and back."""

    do: Undo
    undo: Undo


def snapshot(drives: Sequence[str], scenario: str, machine: Machine | None = None) -> list[dict[str, Any]]:
    """A row per setting of the host and of each drive (kernel names); changes nothing. Stored with every recording.

    Keys: name, scope (`host` or the drive), state, wanted, deviation (bool; None: not known), effect, how, settable.
    Raises UserError for a scenario that there is none of.
    """
    machine = machine or Machine()
    return [_row(found, machine) for found in _look(drives, scenario, machine)]


def deviations(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Those rows of `snapshot` that deviate from what the scenario wants."""
    return [dict(row) for row in rows if row["deviation"] is True]


def apply(scenario: str, drives: Sequence[str], temporary: Temporary, machine: Machine | None = None) -> list[str]:
    """Set what deviates and can be set here; returns in words what was set, and what was not and why.

    Call it within a claim of `temporary`, which puts everything back; originals are noted before anything is changed,
    and what was set is read back. Without root nothing is set, and a sentence says so.
    """
    machine = machine or Machine()
    if not machine.privileged:
        return [_NO_ROOT]
    before = {found.name: found for found in _look(drives, scenario, machine)}
    tried: set[str] = set()
    failures: dict[str, str] = {}
    for _ in range(_PASSES):
        changes = _pending(drives, scenario, machine)
        if not changes or set(changes) <= tried - set(failures):
            break
        # All before the first: changing one setting can change what another one reads.
        new = temporary.remember_all({name: change.undo for name, change in changes.items()})
        failures = {name: reason for name, change in changes.items() if (reason := perform(change.do)) is not None}
        temporary.forget([name for name in new if name in failures])
        tried |= set(changes)
    return list(_tell(before, _look(drives, scenario, machine), tried, failures))


@contextmanager
def for_study(
    scenario: str, drives: Sequence[str], *, change: bool, say: Callable[[str], None], machine: Machine | None = None
) -> Iterator[None]:
    """What a study runs within: puts back what a dead study left, and at the end what anybody set, also by hand.

    With `change`, what deviates is set meanwhile. Without root nothing can be set, so nothing is to be put back.
    """
    machine = machine or Machine()
    if not machine.privileged:
        if change:
            say(_NO_ROOT)
        yield
        return
    with Temporary(HOST).claim(say) as temporary:
        for text in apply(scenario, drives, temporary, machine) if change else []:
            say(text)
        yield


def _look(drives: Sequence[str], scenario: str, machine: Machine) -> list[Found]:
    if scenario not in SCENARIOS:
        raise UserError(f"there is no scenario '{scenario}'; use {' or '.join(SCENARIOS)}")
    found = []
    for setting in CATALOGUE:
        wish = setting.wish(scenario, machine)
        for scope in drives if setting.per_drive else [HOST]:
            found.append(Found(setting, scope, wish, setting.read(machine, "" if scope == HOST else scope)))
    return found


def _row(found: Found, machine: Machine) -> dict[str, Any]:
    return {
        "name": found.setting.name,
        "scope": found.scope,
        "state": found.state,
        "wanted": found.wish.words,
        "deviation": found.deviation,
        "effect": found.setting.effect,
        "how": found.how,
        "settable": _is_settable(found, machine),
    }


def _is_settable(found: Found, machine: Machine) -> bool:
    """Whether drivelab could set it now: all parts, or all that deviate."""
    parts = found.deviating or found.parts or []
    changes = found.changes(parts)
    return (
        machine.privileged and bool(parts) and len(changes) == len(parts) and all(map(_is_writable, changes.values()))
    )


def _is_writable(change: Change) -> bool:
    """By the file's mode: root may open any file, but one of sysfs that has no write bit takes nothing."""
    if not isinstance(change.do, Write):
        return True
    path = Path(change.do.path)
    try:
        return bool(path.stat().st_mode & 0o222) and os.access(path, os.W_OK)
    except OSError:
        return False


def _change(part: Part, wish: Wish) -> Change | None:
    if part.path is not None:
        value = wish.target(part)
        return None if value is None else Change(Write(str(part.path), value), Write(str(part.path), part.value))
    if part.do is not None and part.undo is not None:
        return Change(part.do, part.undo)
    return None


def _pending(drives: Sequence[str], scenario: str, machine: Machine) -> dict[str, Change]:
    changes: dict[str, Change] = {}
    for found in _look(drives, scenario, machine):
        changes |= {n: c for n, c in found.changes(found.deviating).items() if _is_writable(c)}
    return changes


def _tell(
    before: Mapping[str, Found], after: Sequence[Found], tried: set[str], failures: Mapping[str, str]
) -> Iterator[str]:
    for found in after:
        earlier = before[found.name]
        if not earlier.deviation:
            continue
        if not found.deviation:
            yield f"{found.name}: set to {found.state} (was {earlier.state})"
            continue
        reasons = [reason for name, reason in failures.items() if name.startswith(f"{found.name}: ")]
        if not reasons and any(name.startswith(f"{found.name}: ") for name in tried):
            reasons = ["it did not stay as it was set"]
        reason = reasons[0] if reasons else "drivelab does not set it here"
        yield f"{found.name}: still {found.state}, wanted {found.wish.words}: {reason}; to set it: {found.how}"
