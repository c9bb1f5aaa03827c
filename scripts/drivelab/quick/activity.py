"""Sample what else the host does: CPU time, I/O of disks, and the processes behind both."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from drivelab.drives.openers import Host
from drivelab.drives.sysfs import SECTOR_BYTES, read_text
from drivelab.telemetry.drive_sensors import sectors_source
from drivelab.telemetry.host import cpu_source

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """Counters of a process since its start."""

    name: str
    cpu_s: float
    io_bytes: int | None
    """Read from and written to storage (proc_pid_io(5)); None if it belongs to another user."""


class Disk(NamedTuple):
    """Counters of a disk since it was attached."""

    requests: int
    moved_bytes: int


@dataclass(frozen=True)
class Sample:
    """All counters at one moment."""

    time_s: float
    cpu_total_s: float
    """CPU time of all CPUs, idle time included."""
    cpu_busy_s: float
    """CPU time in programs and in the kernel for them, without this process and its children."""
    cpu_steal_s: float
    """Time in which the hypervisor ran something else."""
    processes: Mapping[tuple[int, str], Process]
    """By process number and start time, because a number is reused."""
    disks: Mapping[str, Disk]


def take(disks: Iterable[str], host: Host = Host()) -> Sample:  # noqa: B008 - immutable
    """Read all counters; disks that are gone or do not count are left out."""
    cpu = cpu_source(host.proc_root).read()
    return Sample(
        time.monotonic(),
        cpu["cpu_total_s"],
        cpu["cpu_busy_s"] - cpu.get("own_cpu_s", 0.0),
        cpu["cpu_steal_s"],
        dict(_processes(host.proc_root)),
        {name: disk for name in disks if (disk := _disk(name, host.sys_root)) is not None},
    )


def _disk(name: str, sys_root: Path) -> Disk | None:
    try:
        counts = sectors_source(name, sys_root).read()
    except OSError:
        return None
    if not counts:
        return None
    sectors = counts["sectors_read"] + counts["sectors_written"]
    return Disk(int(counts["reads"] + counts["writes"]), int(sectors) * SECTOR_BYTES)


def _processes(proc_root: Path) -> Iterable[tuple[tuple[int, str], Process]]:
    for folder in proc_root.glob("[0-9]*"):
        name, _, rest = (read_text(folder / "stat") or "").rpartition(")")
        fields = rest.split()
        if len(fields) > 19 and int(folder.name) != os.getpid():
            ticks = int(fields[11]) + int(fields[12])
            process = Process(name.partition("(")[2], ticks / _TICKS_PER_S, _io_bytes(folder / "io"))
            yield (int(folder.name), fields[19]), process


def _io_bytes(file: Path) -> int | None:
    counts = dict(line.split(": ", 1) for line in (read_text(file) or "").splitlines() if ": " in line)
    return int(counts["read_bytes"]) + int(counts["write_bytes"]) if "write_bytes" in counts else None
