"""Read how busy each CPU was between two times, from proc_stat(5)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.criteria.host_limit import LEAST_S

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_MOST = 32
"""CPUs that are recorded: a host may have hundreds, and few cells have more threads."""

CpuTimes = Mapping[str, tuple[int, int, int]]
"""Ticks since boot by CPU: total, busy, and of those in interrupts and softirqs."""


def cpu_times(proc_root: Path = Path("/proc")) -> CpuTimes:
    """Return the times of each CPU; empty if the kernel does not report them.

    Busy is all but idle time, waiting for I/O and time stolen by the hypervisor. Guest time is part of user time.
    """
    try:
        text = (proc_root / "stat").read_text()
    except OSError:
        return {}
    times = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, idle, iowait, irq, softirq, steal = (int(field) for field in rest.split()[:8])
            busy = user + nice + system + irq + softirq
            times[name] = (busy + idle + iowait + steal, busy, irq + softirq)
    return times


def busiest_cpus(before: CpuTimes, after: CpuTimes) -> dict[str, Any] | None:
    """Return `count`, the number of CPUs, and `busiest`: percent busy and in interrupts of each, busiest first.

    The result is None over less than LEAST_S, and if the CPUs changed.
    """
    if not before or before.keys() != after.keys():
        return None
    rises = [[late - early for early, late in zip(before[cpu], after[cpu], strict=True)] for cpu in before]
    if max(total for total, _, _ in rises) < LEAST_S * _TICKS_PER_S or min(map(min, rises)) < 0:
        return None
    shares = [[round(100 * part / total, 1) for part in parts] for total, *parts in rises if total]
    return {"count": len(rises), "busiest": sorted(shares, reverse=True)[:_MOST]}
