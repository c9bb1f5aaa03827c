"""Samples of telemetry over a stretch of time: the same judgement while measuring and for the tables."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

REACH_S = 15.0
"""How far outside a stretch a sample may lie and still count as its edge: the slow cadence and a half."""
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
"""Fields of which a summary has the rise, under the same name."""
CPU_COUNTERS = ("cpu_total_s", "cpu_busy_s", "cpu_user_s", "cpu_steal_s", "own_cpu_s", "own_user_s")


class Timeline:
    """Samples in the order of time, field by field: a measurement of days has half a million."""

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
        """Times and values of a field from the last at or before `start_s` to the first at or after `end_s`.

        The rise of a counter over a cell is not missed thus: one that is read every ten seconds may have risen at any
        time between its readings, and counts for every cell that it may have risen in.
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
        """Of a counter; None where it was not read twice, or began anew."""
        _, values = self.around(name, start_s, end_s)
        return values[-1] - values[0] if len(values) > 1 and values[-1] >= values[0] else None

    def summarise(self, start_s: float, end_s: float) -> dict[str, float]:
        """What was so between two times (Unix, s); a key is missing where there are no samples to say.

        temperature_min_c, temperature_mean_c, temperature_max_c, temperature_limit_c (from which the drive warns),
        temperature_alarm (1 if the drive raised it), load_pct (CPU time that others used), cpu_pct (that all used),
        steal_pct, cpu_frequency_mhz, power_w and energy_j (of the drive: by the meter, else by its own sensor),
        host_power_w (power meter, else processors), available_spare_pct and percentage_used_pct (the last reading), and
        the rise of each of COUNTERS.
        """
        return {
            **self._gauges(start_s, end_s),
            **cpu_shares(self._rises(CPU_COUNTERS, start_s, end_s)),
            **self._power(start_s, end_s),
            **self._rises(COUNTERS, start_s, end_s),
        }

    def _rises(self, names: Iterable[str], start_s: float, end_s: float) -> dict[str, float]:
        found = ((name, self.rise(name, start_s, end_s)) for name in names)
        return {name: value for name, value in found if value is not None}

    def _gauges(self, start_s: float, end_s: float) -> dict[str, float]:
        found: dict[str, float] = {}
        _, temperatures = self.around("temperature_c", start_s, end_s)
        if temperatures:
            found |= {
                "temperature_min_c": min(temperatures),
                "temperature_mean_c": _mean(temperatures),
                "temperature_max_c": max(temperatures),
            }
        for name in ("temperature_limit_c", "available_spare_pct", "percentage_used_pct"):
            if values := self.around(name, start_s, end_s)[1]:
                found[name] = values[-1]
        if alarms := self.around("temperature_alarm", start_s, end_s)[1]:
            found["temperature_alarm"] = max(alarms)
        if frequencies := self.around("cpu_frequency_mhz", start_s, end_s)[1]:
            found["cpu_frequency_mhz"] = _mean(frequencies)
        return found

    def _power(self, start_s: float, end_s: float) -> dict[str, float]:
        found: dict[str, float] = {}
        for name in ("meter_power_w", "drive_power_w"):
            values = self.around(name, start_s, end_s)[1]
            if values:
                found["power_w"] = _mean(values)
                found["energy_j"] = found["power_w"] * (end_s - start_s)
                break
        if values := self.around("host_power_w", start_s, end_s)[1]:
            found["host_power_w"] = _mean(values)
        else:
            times, _ = self.around("processor_energy_j", start_s, end_s)
            energy_j = self.rise("processor_energy_j", start_s, end_s)
            if energy_j is not None and times[-1] > times[0]:
                found["host_power_w"] = energy_j / (times[-1] - times[0])
        return found


def summarise(samples: Iterable[Mapping[str, float]], start_s: float, end_s: float) -> dict[str, float]:
    """As `Timeline.summarise`, for one question."""
    return Timeline(samples).summarise(start_s, end_s)


def cpu_shares(rise: Mapping[str, float]) -> dict[str, float]:
    """`cpu_pct`, `steal_pct` and `load_pct` of all CPU time, from the rise of CPU_COUNTERS, s.

    What others used is what programs used, less drivelab itself, fio and the server of a virtual drive; of a drive that
    the kernel's own threads serve, only time outside the kernel is compared (see `telemetry.host`). Both are counted in
    ticks, so over a short time the difference may come out below zero; zero is said then.
    """
    total_s = rise.get("cpu_total_s", 0.0)
    if total_s <= 0:
        return {}
    found = {
        share: min(100 * rise[name] / total_s, 100.0)  # sums of ticks as floats: the last bit may be beyond
        for share, name in (("cpu_pct", "cpu_busy_s"), ("steal_pct", "cpu_steal_s"))
        if name in rise
    }
    for everybody, own in (("cpu_busy_s", "own_cpu_s"), ("cpu_user_s", "own_user_s")):
        if everybody in rise and own in rise:
            found["load_pct"] = min(max(100 * (rise[everybody] - rise[own]) / total_s, 0.0), 100.0)
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
