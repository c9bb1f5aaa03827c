"""Effects of a virtual drive, if its model has them: heat, housekeeping, neighbours on the host.

Each effect has a known truth, to test the detectors that look for it in measurements. Heat and stolen time also appear
in telemetry, in the fields of real drives and hosts. Standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from random import Random
from typing import Any, Self

TELLING = frozenset({"throttle", "disturb"})
"""Keys of a model whose effects appear in telemetry, also on the virtual clock."""
_MIB = 1 << 20


@dataclass(frozen=True)
class Effect:
    """One effect; its fields are the keys of the configuration, all of them numbers above 0."""

    @classmethod
    def read(cls, value: Any) -> Self:
        """Read an effect from the configuration; raises ValueError."""
        names = [field.name for field in fields(cls)]
        if not isinstance(value, Mapping) or set(value) != set(names):
            raise ValueError(f"'{value}' must have exactly the keys {', '.join(names)}")
        for name, number in value.items():
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= 1e9:
                raise ValueError(f"'{name}' is '{number}'; use a number above 0 and up to 1e9")
        effect = cls(**{name: float(number) for name, number in value.items()})
        effect.check()
        return effect

    def check(self) -> None:
        """Raise ValueError if the numbers are inconsistent."""


@dataclass(frozen=True)
class Throttle(Effect):
    """A drive that warms up with its transfers and slows down while it is too hot."""

    ambient_c: float
    """Ambient temperature, also the drive's initial temperature."""
    limit_c: float
    """The drive slows down at this temperature."""
    resume_c: float
    """The drive returns to full speed at this temperature."""
    heat_c_per_mib: float
    """Rise for each MiB read or written."""
    cooling_s: float
    """Time in which the drive loses 63 % of its difference to `ambient_c`."""
    slowdown: float
    """Factor on the controller's time for each command while the drive is slowed down."""

    def check(self) -> None:
        if not self.ambient_c < self.resume_c < self.limit_c:
            raise ValueError("'resume_c' must be between 'ambient_c' and 'limit_c'")
        if self.slowdown < 1:
            raise ValueError("'slowdown' is below 1")


@dataclass(frozen=True)
class Variation(Effect):
    """Flash whose times differ between specimens, purges, moments and pages, by lognormal factors of known size.

    The sizes are standard deviations in percent.
    """

    specimen_pct: float
    """Between drives with different serial numbers."""
    purge_pct: float
    """Between one purge of a drive and the next."""
    wander_pct: float
    """Over time; neighbouring moments are alike, so successive rounds correlate."""
    wander_s: float
    """Twice this time apart, two moments are independent; half of it apart, they correlate by 0.7."""
    page_pct: float
    """Between the times to read single pages."""

    def pace(self, serial: str, purged_at_us: float, now_us: float) -> float:
        """Return the factor on all times of the flash at a moment; the same arguments give the same factor."""
        step, share = divmod(now_us / (1e6 * self.wander_s), 1.0)
        ends = (_normal(f"{serial}/{purged_at_us!r}/{step + place:.0f}") for place in (0, 1))
        wander = next(ends) * (1 - share) + next(ends) * share
        exponent = (
            self.specimen_pct * _normal(serial)
            + self.purge_pct * _normal(f"{serial}/{purged_at_us!r}")
            + self.wander_pct * math.sqrt(1.5) * wander  # the mean variance between two ends is 2/3
        )
        return math.exp(exponent / 100)

    def of_pages(self, serial: str) -> list[float]:
        """Return factors on the time to read a page; page n has factor n modulo their number, a prime."""
        draw = Random(f"pages of {serial}")
        return [math.exp(draw.gauss(0.0, self.page_pct / 100)) for _ in range(_PAGES)]


_PAGES = 1021


def _normal(seed: str) -> float:
    return Random(seed).gauss(0.0, 1.0)


@dataclass(frozen=True)
class Recurring(Effect):
    """A periodic effect, active at the end of each period."""

    every_s: float
    """Period."""
    for_s: float
    """Duration, at the end of each period."""

    def check(self) -> None:
        if self.for_s >= self.every_s:
            raise ValueError("'for_s' must be below 'every_s'")

    def active(self, at_us: float) -> bool:
        """Return whether the effect is active at a time."""
        return at_us % (1e6 * self.every_s) >= 1e6 * (self.every_s - self.for_s)


@dataclass(frozen=True)
class Housekeeping(Recurring):
    """The controller does nothing else for `for_s` at the end of every `every_s`."""

    def free_from(self, at_us: float) -> float:
        """Return the first time from `at_us` on at which the controller accepts commands."""
        return math.floor(at_us / (1e6 * self.every_s) + 1) * 1e6 * self.every_s if self.active(at_us) else at_us


@dataclass(frozen=True)
class Disturbance(Recurring):
    """Neighbours on the host steal `stolen_pct` of the CPU time for `for_s` at the end of every `every_s`, which
    stretches each command accordingly."""

    stolen_pct: float
    """Share of the CPU time that the neighbours steal."""

    def check(self) -> None:
        super().check()
        if self.stolen_pct >= 100:
            raise ValueError("'stolen_pct' must be below 100")

    def stolen_pct_at(self, at_us: float) -> float:
        """Return the share of the CPU time that the neighbours steal at a time."""
        return self.stolen_pct if self.active(at_us) else 0.0

    def told(self, at_us: float) -> dict[str, float]:
        """Return the total and stolen CPU time of a host with one processor until a time."""
        periods, within_s = divmod(at_us / 1e6, self.every_s)
        taken_s = periods * self.for_s + max(within_s - (self.every_s - self.for_s), 0.0)
        return {"cpu_total_s": round(at_us / 1e6, 6), "cpu_steal_s": round(taken_s * self.stolen_pct / 100, 6)}


class Heat:
    """The temperature of a drive that may throttle; times are microseconds, in ascending order."""

    def __init__(self, throttle: Throttle, now_us: float) -> None:
        self._throttle = throttle
        self.temperature_c = throttle.ambient_c
        self.at_us = now_us
        self.slowed = False
        self._slowed_times = 0
        self._slowed_s = 0.0

    def command(self, now_us: float, length: int) -> float:
        """Warm the drive by a command of `length` bytes; return the factor on the time of this command."""
        throttle = self._throttle
        if now_us > self.at_us:
            self.temperature_c, self.slowed, self._slowed_s = self._later(now_us)
            self.at_us = now_us
        self.temperature_c += throttle.heat_c_per_mib * length / _MIB
        if not self.slowed and self.temperature_c >= throttle.limit_c:
            self.slowed = True
            self._slowed_times += 1
        return throttle.slowdown if self.slowed else 1.0

    def told(self, at_us: float) -> dict[str, float]:
        """Return the thermal telemetry at a time after the last command, without changing any state.

        The counters, transitions and whole seconds, are those of thermal management temperature 2, at which a drive
        slows down regardless of performance (NVM Express base specification, host controlled thermal management).
        """
        temperature_c, _, slowed_s = self._later(at_us)
        return {
            "temperature_c": round(temperature_c, 3),
            "temperature_limit_c": self._throttle.limit_c,
            "thermal_2_transitions": float(self._slowed_times),
            "thermal_2_s": float(math.floor(slowed_s)),
        }

    def _later(self, at_us: float) -> tuple[float, bool, float]:
        """Return temperature, slowed state and total slowed seconds at a time, if no command comes before it."""
        throttle, passed_s = self._throttle, max(at_us - self.at_us, 0.0) / 1e6
        above_c = self.temperature_c - throttle.ambient_c
        temperature_c = throttle.ambient_c + math.exp(-passed_s / throttle.cooling_s) * above_c
        if not self.slowed:
            return temperature_c, False, self._slowed_s
        left_s = throttle.cooling_s * math.log(above_c / (throttle.resume_c - throttle.ambient_c))
        return temperature_c, passed_s < left_s, self._slowed_s + min(passed_s, left_s)

    def state(self) -> list[float]:
        return [self.temperature_c, self.at_us, float(self.slowed), float(self._slowed_times), self._slowed_s]

    def restore(self, state: list[float]) -> None:
        self.temperature_c, self.at_us, slowed, times, self._slowed_s = map(float, state)
        self.slowed, self._slowed_times = bool(slowed), int(times)
