"""What disturbs a virtual drive, where its model asks for it: heat, housekeeping by the clock, neighbours.

Each has a truth that is known, for what looks for it in measurements to be tried against. Heat and stolen time are told
as telemetry too, in the fields of real drives and hosts. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

TELLING = frozenset({"throttle", "disturb"})
"""Keys of a model whose effects are told of by telemetry, on the virtual clock too."""
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
    """Temperature around it, with which it begins."""
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
    """Period."""
    for_s: float
    """How long at the end of each period."""

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
    """Share of the time that others have."""

    def check(self) -> None:
        super().check()
        if self.stolen_pct >= 100:
            raise ValueError("'stolen_pct' is not below 100")

    def stolen_pct_at(self, at_us: float) -> float:
        """Share of the CPU time that others have at a time."""
        return self.stolen_pct if self.under_way(at_us) else 0.0

    def told(self, at_us: float) -> dict[str, float]:
        """CPU time of a host of one processor until a time, and what others had of it."""
        periods, within_s = divmod(at_us / 1e6, self.every_s)
        taken_s = periods * self.for_s + max(within_s - (self.every_s - self.for_s), 0.0)
        return {"cpu_total_s": round(at_us / 1e6, 6), "cpu_steal_s": round(taken_s * self.stolen_pct / 100, 6)}


class Heat:
    """The temperature of a drive that may throttle; times are microseconds, in their order."""

    def __init__(self, throttle: Throttle, now_us: float) -> None:
        self._throttle = throttle
        self.temperature_c = throttle.ambient_c
        self.at_us = now_us
        self.slowed = False
        self._slowed_times = 0
        self._slowed_s = 0.0

    def command(self, now_us: float, length: int) -> float:
        """Factor on the time of a command of `length` bytes that begins now, which warms the drive."""
        one = self._throttle
        if now_us > self.at_us:
            self.temperature_c, self.slowed, self._slowed_s = self._later(now_us)
            self.at_us = now_us
        self.temperature_c += one.heat_c_per_mib * length / _MIB
        if not self.slowed and self.temperature_c >= one.limit_c:
            self.slowed = True
            self._slowed_times += 1
        return one.slowdown if self.slowed else 1.0

    def told(self, at_us: float) -> dict[str, float]:
        """What the drive says of its heat at a time after its last command; to ask it changes nothing.

        The counters, of transitions and whole seconds, are those of thermal management temperature 2, at which a drive
        slows down whatever it costs (NVM Express base specification, host controlled thermal management).
        """
        temperature_c, _, slowed_s = self._later(at_us)
        return {
            "temperature_c": round(temperature_c, 3),
            "temperature_limit_c": self._throttle.limit_c,
            "thermal_2_transitions": float(self._slowed_times),
            "thermal_2_s": float(math.floor(slowed_s)),
        }

    def _later(self, at_us: float) -> tuple[float, bool, float]:
        """Temperature, whether it is slowed down, and seconds that it was in all, if no command comes until then."""
        one, passed_s = self._throttle, max(at_us - self.at_us, 0.0) / 1e6
        above_c = self.temperature_c - one.ambient_c
        temperature_c = one.ambient_c + math.exp(-passed_s / one.cooling_s) * above_c
        if not self.slowed:
            return temperature_c, False, self._slowed_s
        left_s = one.cooling_s * math.log(above_c / (one.resume_c - one.ambient_c))
        return temperature_c, passed_s < left_s, self._slowed_s + min(passed_s, left_s)

    def state(self) -> list[float]:
        return [self.temperature_c, self.at_us, float(self.slowed), float(self._slowed_times), self._slowed_s]

    def restore(self, state: list[float]) -> None:
        self.temperature_c, self.at_us, slowed, times, self._slowed_s = map(float, state)
        self.slowed, self._slowed_times = bool(slowed), int(times)
