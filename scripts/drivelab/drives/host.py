"""The host that a drive is attached to: what it is, and how busy others kept it during a cell."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.drives.sysfs import read_text

STEAL_LIMIT_PCT = 5.0
"""More stolen time than this taints a cell: the hypervisor ran others while the cell was timed."""


@dataclass(frozen=True)
class CpuTimes:
    """Jiffies since boot, all CPUs together (proc_stat(5))."""

    total: int
    steal: int


def cpu_times(proc_root: Path = Path("/proc")) -> CpuTimes:
    fields = [int(f) for f in (read_text(proc_root / "stat") or "cpu 0").splitlines()[0].split()[1:9]]
    return CpuTimes(sum(fields), fields[7] if len(fields) > 7 else 0)


def steal_pct(before: CpuTimes, after: CpuTimes) -> float:
    """Share of the CPU time between two readings that the hypervisor gave to others, percent."""
    total = after.total - before.total
    return 100.0 * (after.steal - before.steal) / total if total > 0 else 0.0


def describe_host(proc_root: Path = Path("/proc")) -> dict[str, Any]:
    """Columns of the table `hosts` that do not depend on other programs."""
    cpu = [line.partition(":")[2].strip() for line in (read_text(proc_root / "cpuinfo") or "").splitlines()
           if line.startswith("model name")]  # fmt: skip
    memory_kib = next(
        (int(line.split()[1]) for line in (read_text(proc_root / "meminfo") or "").splitlines()
         if line.startswith("MemTotal")), 0)  # fmt: skip
    return {
        "host": platform.node(),
        "kernel": platform.release(),
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": memory_kib * 1024,
        "os": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
        if Path("/etc/os-release").exists()
        else "unknown",
        "python": platform.python_version(),
    }
