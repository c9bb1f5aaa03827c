"""Replay settings: when, where and in which order requests are issued."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from drivelab.core.errors import UserError

MOST_IN_FLIGHT = 4096


TIMINGS = ("original", "scaled", "asap", "idle-capped")
METHODS = ("auto", "exact", "modulo", "scale", "compact")
DEPENDENCIES = ("none", "trace")
"""Kinds that a user can choose."""
GAP_BYTES = 1 << 20
LONGEST_CAP_S = 1e9
"""Longest idle cap: 30 years."""
MOST_BYTES = 1 << 62
"""Larger than any drive."""


@dataclass(frozen=True)
class TimingChoice:
    """When requests are issued. Raises UserError for contradictory settings."""

    mode: str = "original"
    """`original`: each request at its time in the trace. `scaled`: all gaps times `factor`. `asap`: as soon as the
    queue depth allows. `idle-capped`: gaps between arrivals are cut to `idle_cap_s`."""
    factor: float | None = None
    """For `scaled`; 0.5 is twice as fast."""
    idle_cap_s: float | None = None
    depth: int | None = None
    """Queue depth for `asap`; None: as many requests in flight as in the trace at that request."""

    def __post_init__(self) -> None:
        _known("timing", self.mode, TIMINGS)
        for mode, what, value in (("scaled", "a factor", self.factor), ("idle-capped", "an idle cap", self.idle_cap_s)):
            if mode != self.mode:
                if value is not None:
                    raise UserError(f"replay timing '{self.mode}' does not use {what}; remove it, or choose '{mode}'")
            elif value is None:
                raise UserError(f"replay timing '{mode}' needs {what}; give it, or choose another timing")
            elif not _is_number(value) or not 0 < value <= LONGEST_CAP_S:
                raise UserError(f"replay timing '{mode}' needs {what} above 0, not {value}")
        if self.depth is not None and self.mode != "asap":
            raise UserError(f"replay timing '{self.mode}' does not use a depth; remove it, or choose 'asap'")
        if self.depth is not None and not (_is_whole(self.depth) and 1 <= self.depth <= MOST_IN_FLIGHT):
            raise UserError(f"replay depth is {self.depth}; give a whole number from 1 to {MOST_IN_FLIGHT}")

    @property
    def has_deadlines(self) -> bool:
        """Whether each request has a deadline."""
        return self.mode != "asap"

    def to_mapping(self) -> dict[str, Any]:
        """Return all settings, JSON-able."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> TimingChoice:
        """Build from `to_mapping` output. Raises UserError for unknown keys."""
        return cls(**_checked("timing", cls, body))

    def words(self) -> str:
        if self.factor is not None:
            return f"scaled by {self.factor:g}"
        if self.idle_cap_s is not None:
            return f"idle capped at {_duration(self.idle_cap_s)}"
        if self.mode == "asap":
            return "as soon as possible at " + ("the trace's depth" if self.depth is None else f"depth {self.depth}")
        return self.mode


@dataclass(frozen=True)
class MappingChoice:
    """Where requests go on the drive. Raises UserError for contradictory settings."""

    method: str = "auto"
    """`exact`: same offset. `modulo`: offset modulo the range. `scale`: offset times range/span of the trace.
    `compact`: touched extents moved together. `auto`: `exact` if the trace fits, else `modulo`."""
    range_start_bytes: int = 0
    range_bytes: int | None = None
    """Size of the active range, the part of the drive that replaces the traced device. None: to the drive's end."""
    gap_bytes: int = GAP_BYTES
    """For `compact`: longer untouched gaps are removed."""

    def __post_init__(self) -> None:
        _known("mapping", self.method, METHODS)
        for name, least in (("range_start_bytes", 0), ("range_bytes", 1), ("gap_bytes", 0)):
            value = getattr(self, name)
            if value is None and name == "range_bytes":
                continue
            if not _is_whole(value) or not least <= value <= MOST_BYTES:
                raise UserError(f"replay mapping: {name} is {value}; give a whole number of bytes, {least} or more")
        if self.gap_bytes != GAP_BYTES and self.method != "compact":
            raise UserError(
                f"replay mapping '{self.method}' does not use gap_bytes; remove it, or choose the mapping 'compact'"
            )

    def to_mapping(self) -> dict[str, Any]:
        """Return the method and all settings that differ from their defaults, JSON-able."""
        return {
            setting.name: getattr(self, setting.name)
            for setting in fields(self)
            if setting.name == "method" or getattr(self, setting.name) != setting.default
        }

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> MappingChoice:
        """Build from `to_mapping` output. Raises UserError for unknown keys."""
        return cls(**_checked("mapping", cls, body))


@dataclass(frozen=True)
class ReplayChoice:
    """All settings that turn a trace into a schedule for a drive."""

    timing: TimingChoice = field(default_factory=TimingChoice)
    mapping: MappingChoice = field(default_factory=MappingChoice)
    dependencies: str = "none"
    """`trace`: a request waits for the last completion before it, with no more requests in flight than in the trace.
    `process`, only of drivelab.application.stand_in: for the last completion that its process saw."""

    def __post_init__(self) -> None:
        _known("dependencies", self.dependencies, (*DEPENDENCIES, "process"))

    @property
    def is_open_loop(self) -> bool:
        """Whether each request is due at a time that no completion changes."""
        return self.timing.has_deadlines and self.dependencies == "none"

    def to_mapping(self) -> dict[str, Any]:
        """Return all settings, JSON-able."""
        return {
            "timing": self.timing.to_mapping(),
            "mapping": self.mapping.to_mapping(),
            "dependencies": self.dependencies,
        }

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> ReplayChoice:
        """Build from `to_mapping` output; missing keys get defaults. Raises UserError for unknown keys."""
        settings = _checked("replay", cls, body)
        if "timing" in settings:
            settings["timing"] = TimingChoice.from_mapping(settings["timing"])
        if "mapping" in settings:
            settings["mapping"] = MappingChoice.from_mapping(settings["mapping"])
        return cls(**settings)

    def words(self) -> str:
        """Describe the choice, such as `idle capped at 100 ms, in order of the trace`."""
        order = {"none": "", "process": ", in order of process", "trace": ", in order of the trace"}
        return self.timing.words() + order[self.dependencies]


def _known(setting: str, value: object, names: tuple[str, ...]) -> None:
    if value not in names:
        raise UserError(f"replay {setting} '{value}' is unknown; choose one of {', '.join(names)}")


def _checked(part: str, kind: type, body: object) -> dict[str, Any]:
    keys = [setting.name for setting in fields(kind)]
    if not isinstance(body, Mapping):
        raise UserError(f"replay {part} is {body!r}; write a mapping with the keys {', '.join(keys)}")
    if unknown := [key for key in body if key not in keys]:
        raise UserError(f"replay {part}: key '{unknown[0]}' is unknown; the keys are {', '.join(keys)}")
    return dict(body)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _duration(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:g} {unit}"
    return f"{seconds * 1e9:g} ns"
