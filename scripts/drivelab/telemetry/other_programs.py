"""Watch what other programs do, before a measurement begins: their CPU time, and the I/O of disks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.units import format_amount, format_percentage, some
from drivelab.drives.openers import Host
from drivelab.drives.sysfs import SECTOR_BYTES, read_text
from drivelab.telemetry.drive_sensors import sectors_source
from drivelab.telemetry.host import cpu_source

BUSY_SHARE = 0.10
"""Share of all CPUs. Ours: an idle desktop uses 1 to 5 %."""
STEAL_SHARE = 0.02
"""Share of all CPUs. Ours: on a host that is not overcommitted it is 0."""
DISK_BYTES_PER_S, DISK_IOPS = 2 << 20, 50
"""Ours: an idle desktop writes less, on average over a second."""
_PROCESS_SHARE = 0.05
"""Share of one CPU: processes that use less are not named."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """All counters at one moment."""

    time_s: float
    cpu: Mapping[str, float]
    """As `drivelab.telemetry.host.cpu_source` reads them."""
    processes: Mapping[tuple[str, str, str], float]
    """CPU seconds by process number, start time and name, because a number is reused."""
    disks: Mapping[str, tuple[float, float]]
    """Requests and bytes of disks since they were attached."""


def disturbances(
    disks: Sequence[str],
    host: Host = Host(),  # noqa: B008 - immutable
    pause: Callable[[], None] = lambda: time.sleep(1.0),
) -> tuple[str, ...]:
    """Watch the host and its `disks` for a second, and return what would disturb a measurement now, as clauses."""
    first = take(disks, host)
    pause()
    return tuple(activity(first, take(disks, host)))


def take(disks: Iterable[str], host: Host = Host()) -> Sample:  # noqa: B008 - immutable
    """Read all counters; disks that are gone or do not count are left out."""
    moved = {name: counts for name in disks if (counts := _moved(name, host.sys_root)) is not None}
    return Sample(time.monotonic(), cpu_source(host.proc_root).read(), dict(_processes(host.proc_root)), moved)


def _moved(name: str, sys_root: Path) -> tuple[float, float] | None:
    try:
        counts = sectors_source(name, sys_root).read()
    except OSError:
        counts = {}
    sectors = counts.get("sectors_read", 0.0) + counts.get("sectors_written", 0.0)
    return (counts["reads"] + counts["writes"], sectors * SECTOR_BYTES) if counts else None


def _processes(proc_root: Path) -> Iterator[tuple[tuple[str, str, str], float]]:
    """Yield the CPU time of each other process (proc_pid_stat(5))."""
    for folder in proc_root.glob("[0-9]*"):
        name, _, rest = (read_text(folder / "stat") or "").rpartition(")")
        fields = rest.split()
        if len(fields) > 19 and int(folder.name) != os.getpid():
            cpu_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
            yield (folder.name, fields[19], name.partition("(")[2]), cpu_s


def activity(first: Sample, second: Sample) -> Iterator[str]:
    """Yield what other programs and the hypervisor did between two samples, as clauses."""
    elapsed_s = second.time_s - first.time_s
    spent = {name: value - first.cpu.get(name, 0.0) for name, value in second.cpu.items()}
    total_s = spent["cpu_total_s"]
    if elapsed_s <= 0 or total_s <= 0:
        return
    share = (spent["cpu_busy_s"] - spent.get("own_cpu_s", 0.0)) / total_s
    if share > BUSY_SHARE:
        used = {key: cpu_s - first.processes.get(key, 0.0) for key, cpu_s in second.processes.items()}
        busiest = sorted((key for key in used if used[key] > _PROCESS_SHARE * elapsed_s), key=used.__getitem__)
        names = some([f"{name} {number}" for number, _, name in reversed(busiest)], 3)
        yield f"other programs use {format_percentage(100 * share)} % of the CPU{f' ({names})' if busiest else ''}"
    if (stolen := spent["cpu_steal_s"] / total_s) > STEAL_SHARE:
        yield f"the hypervisor takes {format_percentage(100 * stolen)} % of the CPU time for others"
    for name, after in second.disks.items():
        iops, bytes_per_s = (
            (now - before) / elapsed_s for now, before in zip(after, first.disks.get(name, after), strict=True)
        )
        if bytes_per_s > DISK_BYTES_PER_S or iops > DISK_IOPS:
            yield f"other I/O reaches {name}: {format_amount(bytes_per_s)}/s, {iops:,.0f} IOPS"
