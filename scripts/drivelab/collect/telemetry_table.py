"""The table `telemetry` of a recording, and the telemetry columns of cells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.criteria.taint import Limits, taints, throttled, told
from drivelab.drives.sysfs import SECTOR_BYTES
from drivelab.tables.schemas import SCHEMAS
from drivelab.telemetry.sampler import read_lines
from drivelab.telemetry.time_window import CPU_COUNTERS, cpu_shares

_COLUMNS = (
    "temperature_min_c", "temperature_mean_c", "temperature_max_c", "load_pct", "steal_pct", "cpu_pct", "waited_pct",
    "cpu_frequency_mhz", "power_w", "energy_j", "host_power_w",
)  # fmt: skip
_LEAST_S = 0.5
"""Shortest interval for shares and rates: the kernel counts CPU time in ticks of 10 ms."""
_RATES = {"interrupts": "interrupts_per_s", "processor_energy_j": "processor_power_w"}


def cell_columns(summary: Mapping[str, float], limits: Limits) -> dict[str, Any]:
    """Return the telemetry columns of a cell or replay from the telemetry summary of its time."""
    reasons = taints(summary, limits)
    return {
        **{name: summary.get(name) for name in _COLUMNS},
        "throttled": throttled(summary),
        "tainted": bool(reasons),
        "taint_reason": told(reasons),
    }


def telemetry_table(recording: Path, key: Mapping[str, Any]) -> pd.DataFrame:
    """Return all samples of a recording in written order; `key` has the columns that identify it."""
    names = [name for name in SCHEMAS["telemetry"].names if name not in key]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    rates = _Rates()
    for line in read_lines(recording):
        if line.get("event") == "begin":
            rates = _Rates()
        if "event" in line:
            continue
        row = {**line, **rates.since(line), "time": line["at_s"]}
        if "sectors_written" in row:
            row["bytes_written"] = row["sectors_written"] * SECTOR_BYTES
        for name in names:
            columns[name].append(row.get(name))
    times = pd.to_datetime(pd.Series(columns["time"], dtype=float), unit="s", utc=True).dt.round("ms")
    return pd.DataFrame({**key, **columns, "time": times}, columns=SCHEMAS["telemetry"].names)


class _Rates:
    """Shares and rates over at least _LEAST_S, within one run of the sampler."""

    def __init__(self) -> None:
        self._before: dict[str, Mapping[str, float]] = {}

    def since(self, sample: Mapping[str, float]) -> dict[str, float]:
        rates = cpu_shares({name: rise for name in CPU_COUNTERS if (rise := self._rise(name, sample)[0]) is not None})
        for counter, rate in _RATES.items():
            rise, seconds = self._rise(counter, sample)
            if rise is not None:
                rates[rate] = rise / seconds
        return rates

    def _rise(self, name: str, sample: Mapping[str, float]) -> tuple[float | None, float]:
        """Return the rise of a counter and its duration in seconds; None if the rise is unknown."""
        if name not in sample:
            return None, 0.0
        before = self._before.setdefault(name, sample)
        seconds = sample["at_s"] - before["at_s"]
        if seconds < _LEAST_S:
            return None, seconds
        self._before[name] = sample
        rise = sample[name] - before[name]
        return (rise if rise >= 0 else None), seconds
