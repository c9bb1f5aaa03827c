"""Rates of a drive, second by second, from the kernel's counters in the telemetry samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from drivelab.criteria.taint import Limits, taints
from drivelab.drives.sysfs import SECTOR_BYTES
from drivelab.telemetry.time_window import CPU_COUNTERS, cpu_shares

_LEAST_S = 0.9
"""Shortest time for a rate: samples are a second apart, but at the edges of cells they lie closer together."""
_MIB = 1 << 20
_NEEDED = ("reads", "writes", "sectors_read", "sectors_written", "read_ms", "write_ms")


@dataclass(frozen=True)
class Point:
    """A drive's rates over about a second."""

    iops: float
    """Requests completed, reads and writes together."""
    bandwidth_mib_s: float
    latency_us: float | None
    """Mean latency; None without I/O."""
    conditioning: bool = False
    """Whether the point belongs to preconditioning."""


class Rates:
    """Computes points from the samples of one recording's measurement or preconditioning, in their order.

    The mean latency is that of the block layer: the total time of requests in the block layer and the drive, divided
    by their number (Documentation/block/stat.rst). It excludes the time in the program and the system call.
    """

    def __init__(self, limits: Limits, conditioning: bool = False) -> None:
        self._limits, self._conditioning = limits, conditioning
        self._before: Mapping[str, float] | None = None
        self.latest: dict[str, float] = {}
        """Last value of each sampled field."""
        self.taints: list[str] = []
        """Reasons why the numbers of the last second are tainted."""

    def restart(self) -> None:
        """Forget earlier counters: the sampler restarted, and the counters may have been reset."""
        self._before = None

    def add(self, sample: Mapping[str, float]) -> Point | None:
        """Return the point that ends with this sample, or None."""
        self.latest.update(sample)
        if not all(name in sample for name in _NEEDED):
            return None
        before = self._before or sample
        seconds = sample["at_s"] - before["at_s"]
        if 0 < seconds < _LEAST_S:
            return None
        self._before = sample
        rise = {name: sample[name] - before[name] for name in _NEEDED}
        if seconds <= 0 or any(value < 0 for value in rise.values()):  # the first sample, or the counters were reset
            return None
        self._judge(sample, before)
        requests = rise["reads"] + rise["writes"]
        return Point(
            iops=requests / seconds,
            bandwidth_mib_s=(rise["sectors_read"] + rise["sectors_written"]) * SECTOR_BYTES / _MIB / seconds,
            latency_us=1000 * (rise["read_ms"] + rise["write_ms"]) / requests if requests else None,
            conditioning=self._conditioning,
        )

    def _judge(self, sample: Mapping[str, float], before: Mapping[str, float]) -> None:
        both = [name for name in CPU_COUNTERS if name in sample and name in before]
        shares = cpu_shares({name: sample[name] - before[name] for name in both if sample[name] >= before[name]})
        heat = {"temperature_max_c": "temperature_c", "temperature_limit_c": "temperature_limit_c",
                "temperature_alarm": "temperature_alarm"}  # fmt: skip
        temperatures = {name: self.latest[field] for name, field in heat.items() if field in self.latest}
        self.taints = taints({**shares, **temperatures}, self._limits)
