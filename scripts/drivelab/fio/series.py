"""fio's one-second logs, summed over the threads of a cell."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

_DIRECTIONS = {"0": "read", "1": "write"}


def read_series(directory: Path) -> list[dict[str, Any]]:
    """Rows with time_s (end of the second, since the cell's start), direction, iops, bandwidth_mib_s, mean_latency_us.

    Each thread has logs of its own (fio manual, "Log File Formats": time ms, value, direction, …; bandwidth in
    KiB/s, latency in ns). fio leaves out the last, unfinished second of the bandwidth and IOPS logs; such a second
    has no row here. The mean latency is weighted with the threads' IOPS.
    """
    rates: dict[tuple[int, str], float] = defaultdict(float)
    bandwidths: dict[tuple[int, str], float] = defaultdict(float)
    weighted: dict[tuple[int, str], float] = defaultdict(float)
    for path in sorted(directory.glob("series_iops.*.log")):
        thread = path.name.removeprefix("series_iops.")
        iops = _read(path)
        latency = _read(directory / f"series_lat.{thread}")
        for place, value in iops.items():
            rates[place] += value
            weighted[place] += value * latency.get(place, 0.0)
        for place, value in _read(directory / f"series_bw.{thread}").items():
            bandwidths[place] += value
    return [
        {
            "time_s": float(second),
            "direction": direction,
            "iops": rate,
            "bandwidth_mib_s": bandwidths[second, direction] / 1024,
            "mean_latency_us": weighted[second, direction] / rate / 1000 if rate else None,
        }
        for (second, direction), rate in sorted(rates.items())
    ]


def _read(path: Path) -> dict[tuple[int, str], float]:
    """Values by second and direction; fio's seconds end a few milliseconds early or late."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = [[field.strip() for field in row] for row in csv.reader(file)]
    return {
        (round(int(row[0]) / 1000), _DIRECTIONS[row[2]]): float(row[1]) for row in rows if row and row[2] in _DIRECTIONS
    }
