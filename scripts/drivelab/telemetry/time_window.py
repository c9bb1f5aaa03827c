"""Summarise telemetry samples, equally during a measurement and for the tables."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

REACH_S = 15.0
"""Maximum distance of an edge sample outside a time span: 1.5 times the slow period."""
COUNTERS = (
    "sectors_written",
    "interrupts",
    "smart_bytes_written",
    "smart_bytes_read",
    "media_errors",
    "warning_temperature_min",
    "critical_temperature_min",
    "thermal_1_transitions",
    "thermal_2_transitions",
    "thermal_1_s",
    "thermal_2_s",
)
"""Fields whose rise is in a summary, under the same name."""
CPU_COUNTERS = (
    "cpu_total_s", "cpu_busy_s", "cpu_user_s", "cpu_steal_s", "cpu_waited_s", "own_cpu_s", "own_user_s",
)  # fmt: skip


class Timeline:
    """Samples in order of time, stored compactly by field for measurements of days."""

    def __init__(self, samples: Iterable[Mapping[str, float]]) -> None:
        self._fields: dict[str, tuple[array[float], array[float]]] = {}
        for sample in samples:
            for name, value in sample.items():
                times, values = self._fields.setdefault(name, (array("d"), array("d")))
                times.append(sample["at_s"])
                values.append(value)
        for name, columns in self._fields.items():
            if any(later < earlier for earlier, later in pairwise(columns[0])):
                in_order = sorted(zip(*columns, strict=True))
                self._fields[name] = (array("d", (t for t, _ in in_order)), array("d", (v for _, v in in_order)))

    def around(self, name: str, start_s: float, end_s: float) -> tuple[Sequence[float], Sequence[float]]:
        """Return times and values of a field between and next to two times.

        They are from the last at or before `start_s` to the first at or after `end_s`. This range contains every rise
        of a counter during a cell. A counter that is read every ten seconds may have risen at any time between
        readings; the rise counts for every cell in which it may have happened.
        """
        times, values = self._fields.get(name, (array("d"), array("d")))
        first = max(bisect_right(times, start_s) - 1, 0)
        last = min(bisect_left(times, end_s), len(times) - 1)
        while first <= last and times[first] < start_s - REACH_S:
            first += 1
        while first <= last and times[last] > end_s + REACH_S:
            last -= 1
        return times[first : last + 1], values[first : last + 1]

    def rise(self, name: str, start_s: float, end_s: float) -> float | None:
        """Return the rise of a counter. Return None if it has fewer than two readings or was reset."""
        _, values = self.around(name, start_s, end_s)
        return values[-1] - values[0] if len(values) > 1 and values[-1] >= values[0] else None

    def summarise(self, start_s: float, end_s: float) -> dict[str, float]:
        """Return a summary between two Unix times in s, without keys without samples.

        temperature_min_c, temperature_mean_c, temperature_max_c, temperature_limit_c (warning temperature),
        temperature_alarm (1 if the drive raised it), array_other (1 if an array was in another state than the
        measurement asks for), load_pct (CPU time of other processes), cpu_pct (of all processes), steal_pct,
        waited_pct (time in which a process waited for a CPU), cpu_frequency_mhz, power_w and energy_j (of the drive:
        from the meter, otherwise from its sensor), host_power_w (from the power meter, otherwise from the processors),
        available_spare_pct and percentage_used_pct (last reading), and the rise of each of COUNTERS.
        """
        return {
            **self._gauges(start_s, end_s),
            **cpu_shares(self._rises(CPU_COUNTERS, start_s, end_s)),
            **self._power(start_s, end_s),
            **self._rises(COUNTERS, start_s, end_s),
        }

    def _rises(self, names: Iterable[str], start_s: float, end_s: float) -> dict[str, float]:
        rises = ((name, self.rise(name, start_s, end_s)) for name in names)
        return {name: value for name, value in rises if value is not None}

    def _gauges(self, start_s: float, end_s: float) -> dict[str, float]:
        summary: dict[str, float] = {}
        _, temperatures = self.around("temperature_c", start_s, end_s)
        if temperatures:
            summary |= {
                "temperature_min_c": min(temperatures),
                "temperature_mean_c": _mean(temperatures),
                "temperature_max_c": max(temperatures),
            }
        for name in ("temperature_limit_c", "available_spare_pct", "percentage_used_pct"):
            if values := self.around(name, start_s, end_s)[1]:
                summary[name] = values[-1]
        if alarms := self.around("temperature_alarm", start_s, end_s)[1]:
            summary["temperature_alarm"] = max(alarms)
        if others := self.around("array_other", start_s, end_s)[1]:
            summary["array_other"] = max(others)
        if frequencies := self.around("cpu_frequency_mhz", start_s, end_s)[1]:
            summary["cpu_frequency_mhz"] = _mean(frequencies)
        return summary

    def _power(self, start_s: float, end_s: float) -> dict[str, float]:
        summary: dict[str, float] = {}
        for name in ("meter_power_w", "drive_power_w"):
            values = self.around(name, start_s, end_s)[1]
            if values:
                summary["power_w"] = _mean(values)
                summary["energy_j"] = summary["power_w"] * (end_s - start_s)
                break
        if values := self.around("host_power_w", start_s, end_s)[1]:
            summary["host_power_w"] = _mean(values)
        else:
            times, _ = self.around("processor_energy_j", start_s, end_s)
            energy_j = self.rise("processor_energy_j", start_s, end_s)
            if energy_j is not None and times[-1] > times[0]:
                summary["host_power_w"] = energy_j / (times[-1] - times[0])
        return summary


def summarise(samples: Iterable[Mapping[str, float]], start_s: float, end_s: float) -> dict[str, float]:
    """Return `Timeline.summarise` for a single time span."""
    return Timeline(samples).summarise(start_s, end_s)


def cpu_shares(rise: Mapping[str, float]) -> dict[str, float]:
    """Return `cpu_pct`, `steal_pct`, `waited_pct` and `load_pct` from the rise of CPU_COUNTERS in s.

    The load is the time of programs, minus drivelab itself, fio and the server of a virtual drive. For a drive that
    kernel threads serve, only time outside the kernel is compared (see `telemetry.host`). Times are counted in ticks,
    so over a short span the difference may be negative; the load is then 0.
    """
    total_s = rise.get("cpu_total_s", 0.0)
    if total_s <= 0:
        return {}
    summary = {
        share: min(100 * rise[name] / total_s, 100.0)  # rounding of float sums may exceed 100
        for share, name in (("cpu_pct", "cpu_busy_s"), ("steal_pct", "cpu_steal_s"), ("waited_pct", "cpu_waited_s"))
        if name in rise
    }
    for total, own in (("cpu_busy_s", "own_cpu_s"), ("cpu_user_s", "own_user_s")):
        if total in rise and own in rise:
            summary["load_pct"] = min(max(100 * (rise[total] - rise[own]) / total_s, 0.0), 100.0)
    return summary


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
