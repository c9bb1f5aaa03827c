"""What disturbs a virtual drive, where its model asks for it: heat, housekeeping by the clock, neighbours.

Each has a truth that is known, for what looks for it in measurements to be tried against. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

_MIB = 1 << 20


@dataclass(frozen=True)
class Effect:
    """One effect; its fields are the keys of the configuration, all of them numbers above 0."""

    @classmethod
    def read(cls, value: Any) -> Self:
        """From the configuration; raises ValueError that says what is wrong."""
        names = [one.name for one in fields(cls)]
        if not isinstance(value, Mapping) or set(value) != set(names):
            raise ValueError(f"'{value}' does not have just the keys {', '.join(names)}")
        for name, one in value.items():
            if isinstance(one, bool) or not isinstance(one, int | float) or not 0 < one <= 1e9:
                raise ValueError(f"'{name}' is '{one}', which is no number above 0 and up to 1e9")
        effect = cls(**{name: float(one) for name, one in value.items()})
        effect.check()
        return effect

    def check(self) -> None:
        """Raise ValueError where the numbers do not fit together."""

    def write(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Throttle(Effect):
    """A drive that warms up with what it transfers, and slows down while it is too hot."""

    ambient_c: float
    limit_c: float
    """From here on it slows down."""
    resume_c: float
    """At this it goes back to full speed."""
    heat_c_per_mib: float
    """Rise for each MiB read or written."""
    cooling_s: float
    """Time in which it loses 63 % of its distance to `ambient_c`."""
    slowdown: float
    """Factor on the controller's time for a command while it is slowed down."""

    def check(self) -> None:
        if not self.ambient_c < self.resume_c < self.limit_c:
            raise ValueError("'resume_c' must lie between 'ambient_c' and 'limit_c'")
        if self.slowdown < 1:
            raise ValueError("'slowdown' is below 1")


@dataclass(frozen=True)
class Recurring(Effect):
    """Something that comes back by the clock, at the end of each period."""

    every_s: float
    for_s: float

    def check(self) -> None:
        if self.for_s >= self.every_s:
            raise ValueError("'for_s' is not below 'every_s'")

    def under_way(self, at_us: float) -> bool:
        """Whether it is under way."""
        return at_us % (1e6 * self.every_s) >= 1e6 * (self.every_s - self.for_s)


@dataclass(frozen=True)
class Housekeeping(Recurring):
    """The controller does nothing else for `for_s` at the end of every `every_s`."""

    def free_from(self, at_us: float) -> float:
        """The first time from `at_us` on at which the controller takes commands."""
        return math.floor(at_us / (1e6 * self.every_s) + 1) * 1e6 * self.every_s if self.under_way(at_us) else at_us


@dataclass(frozen=True)
class Disturbance(Recurring):
    """Others on the host take `stolen_pct` of the time for `for_s` at the end of every `every_s`: commands take longer
    by as much."""

    stolen_pct: float

    def check(self) -> None:
        super().check()
        if self.stolen_pct >= 100:
            raise ValueError("'stolen_pct' is not below 100")

    def stolen_pct_at(self, at_us: float) -> float:
        """Share of the CPU time that others have at a time."""
        return self.stolen_pct if self.under_way(at_us) else 0.0


class Heat:
    """The temperature of a drive that may throttle; times are microseconds, in their order."""

    def __init__(self, throttle: Throttle, now_us: float) -> None:
        self._throttle = throttle
        self.temperature_c = throttle.ambient_c
        self.at_us = now_us
        self.slowed = False

    def command(self, now_us: float, length: int) -> float:
        """Factor on the time of a command of `length` bytes that begins now, which warms the drive."""
        one = self._throttle
        if now_us > self.at_us:
            left = math.exp((self.at_us - now_us) / (1e6 * one.cooling_s))
            self.temperature_c = one.ambient_c + left * (self.temperature_c - one.ambient_c)
            self.at_us = now_us
        self.temperature_c += one.heat_c_per_mib * length / _MIB
        if self.slowed:
            self.slowed = self.temperature_c > one.resume_c
        else:
            self.slowed = self.temperature_c >= one.limit_c
        return one.slowdown if self.slowed else 1.0

    def state(self) -> list[float]:
        return [self.temperature_c, self.at_us, float(self.slowed)]

    def restore(self, state: list[float]) -> None:
        self.temperature_c, self.at_us, self.slowed = float(state[0]), float(state[1]), bool(state[2])
