"""Compare the host's settings with a scenario.

Report and record them, and set them during a study.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives.undo import Undo, Write, perform
from drivelab.host.catalogue import catalogue
from drivelab.host.entry import SCENARIOS, Part, Setting, Wish
from drivelab.host.machine import Machine
from drivelab.host.temporary import Temporary

NOT_AVAILABLE = "not available here"
HOST = "host"
_NO_ROOT = "host settings are unchanged: changing them needs root"
_PASSES = 3
"""Some settings depend on others, such as the energy preference on the governor."""


@dataclass(frozen=True)
class Reading:
    """The current state of a setting, of the host or of one drive."""

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
        """Return whether the state deviates; None if unknown."""
        if self.parts is None:
            return None
        verdicts = [self.wish.accepts(part) for part in self.parts]
        return True if False in verdicts else None if None in verdicts else False

    @property
    def deviating(self) -> list[Part]:
        return [part for part in self.parts or [] if self.wish.accepts(part) is False]

    def changes(self, parts: Sequence[Part]) -> dict[str, Change]:
        """Return the changes of parts to the wanted state, by unique names. Only those that drivelab can make."""
        changes = {f"{self.name}: {part.name}": _change(part, self.wish) for part in parts}
        return {name: change for name, change in changes.items() if change is not None}


@dataclass(frozen=True)
class Change:
    """A change of one part to the wanted state, and its reversal."""

    do: Undo
    undo: Undo


def snapshot(drives: Sequence[str], scenario: str, machine: Machine | None = None) -> list[dict[str, Any]]:
    """Return a row for each setting of the host and of each drive (kernel names).

    Changes nothing. Every recording stores it. Keys: name, scope (`host` or the drive), state, wanted, deviation (bool;
    None: unknown), effect, how, settable. Raises UserError for an unknown scenario.
    """
    machine = machine or Machine()
    return [_row(reading, machine) for reading in _readings(drives, scenario, machine)]


def deviations(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of `snapshot` that deviate from the scenario."""
    return [dict(row) for row in rows if row["deviation"] is True]


def apply(scenario: str, drives: Sequence[str], temporary: Temporary, machine: Machine | None = None) -> list[str]:
    """Set deviating settings.

    Return sentences on what was set, and what was not and why. Call it within a claim of `temporary`, which restores
    the originals. The originals are recorded before any change, and settings are read again after it. Without root
    nothing is set, and a sentence says so.
    """
    machine = machine or Machine()
    if not machine.privileged:
        return [_NO_ROOT]
    before = {reading.name: reading for reading in _readings(drives, scenario, machine)}
    tried: set[str] = set()
    failures: dict[str, str] = {}
    for _ in range(_PASSES):
        changes = _pending(drives, scenario, machine)
        if not changes or set(changes) <= tried - set(failures):
            break
        # Record all originals first: changing a setting can change the value of another.
        new = temporary.remember_all({name: change.undo for name, change in changes.items()})
        failures = {name: reason for name, change in changes.items() if (reason := perform(change.do)) is not None}
        temporary.forget([name for name in new if name in failures])
        tried |= set(changes)
    return list(_report(before, _readings(drives, scenario, machine), tried, failures))


@contextmanager
def for_study(
    scenario: str, drives: Sequence[str], *, change: bool, say: Callable[[str], None], machine: Machine | None = None
) -> Iterator[None]:
    """Restore settings of a killed study now, and all changed settings at the end.

    The end also restores settings changed with `drivelab doctor`. With `change`, deviating settings are set in between.
    Without root drivelab can set nothing, so it restores nothing.
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


def _readings(drives: Sequence[str], scenario: str, machine: Machine) -> list[Reading]:
    if scenario not in SCENARIOS:
        raise UserError(f"scenario '{scenario}' does not exist; use {' or '.join(SCENARIOS)}")
    readings = []
    for setting in catalogue():
        wish = setting.wish(scenario, machine)
        for scope in drives if setting.per_drive else [HOST]:
            readings.append(Reading(setting, scope, wish, setting.read(machine, "" if scope == HOST else scope)))
    return readings


def _row(reading: Reading, machine: Machine) -> dict[str, Any]:
    return {
        "name": reading.setting.name,
        "scope": reading.scope,
        "state": reading.state,
        "wanted": reading.wish.words,
        "deviation": reading.deviation,
        "effect": reading.setting.effect,
        "how": reading.how,
        "settable": _is_settable(reading, machine),
    }


def _is_settable(reading: Reading, machine: Machine) -> bool:
    """Return whether all deviating parts, or all parts if none deviates, can be set."""
    parts = reading.deviating or reading.parts or []
    changes = reading.changes(parts)
    return (
        machine.privileged and bool(parts) and len(changes) == len(parts) and all(map(_is_writable, changes.values()))
    )


def _is_writable(change: Change) -> bool:
    """Return whether the mode permits writing. Root can open other sysfs files without effect."""
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
    for reading in _readings(drives, scenario, machine):
        changes |= {n: c for n, c in reading.changes(reading.deviating).items() if _is_writable(c)}
    return changes


def _report(
    before: Mapping[str, Reading], after: Sequence[Reading], tried: set[str], failures: Mapping[str, str]
) -> Iterator[str]:
    for reading in after:
        earlier = before[reading.name]
        if not earlier.deviation:
            continue
        if not reading.deviation:
            yield f"{reading.name}: set to {reading.state} (was {earlier.state})"
            continue
        reasons = [reason for name, reason in failures.items() if name.startswith(f"{reading.name}: ")]
        if not reasons and any(name.startswith(f"{reading.name}: ") for name in tried):
            reasons = ["the value changed back"]
        reason = reasons[0] if reasons else "drivelab does not set it here"
        yield f"{reading.name}: still {reading.state}, wanted {reading.wish.words}: {reason}; to set it: {reading.how}"
