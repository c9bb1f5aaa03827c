"""Read the host: CPU time by consumer and by CPU, interrupts, frequency."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from drivelab.criteria.host_limit import LEAST_S
from drivelab.telemetry.sampler import SLOW_S, Source, number_in

_CPU = re.compile(r"^cpu\d", re.MULTILINE)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_source(
    proc_root: Path,
    helpers: Iterable[int] = (),
    kernel_serves: bool = False,
    beside: Callable[[], Iterable[int]] = tuple,
    sys_root: Path = Path("/sys"),
) -> Source:
    """Read CPU seconds since boot, in total and of drivelab, and interrupts.

    - `cpu_busy_s`: time in programs and in the kernel for them (user, nice, system). `cpu_user_s`: time in programs
      only. Neither includes interrupts, because the drive under test causes them.
    - `own_cpu_s`: time of this process, its children (fio), and `helpers`, processes that are part of the drive, such
      as the server of a virtual drive. It is needed to compute the load by other processes.
    - `cpu_waited_s`: time in which a process that could run waited for a CPU (pressure stall information), times the
      number of CPUs. Where CPUs share a core it is left out, because a process on one slows that on the other.
    - `own_user_s` replaces `own_cpu_s` with `kernel_serves`: kernel threads without an owner do the drive's work, as
      for a loop device, so only time in programs can be attributed.

    `beside` returns processes that measure other drives simultaneously; they and their children count as own.
    """
    helpers = tuple(helpers)
    knows_children = any((proc_root / "self/task").glob("*/children"))
    pressure = proc_root / "pressure/cpu"
    knows_waits = _words(sys_root / "devices/system/cpu/smt/active") == ["0"] and bool(_words(pressure))

    def read() -> dict[str, float]:
        text = (proc_root / "stat").read_text()
        values = _stat(text)
        if knows_waits:
            values["cpu_waited_s"] = _waited_s(pressure.read_text()) * len(_CPU.findall(text))
        if not knows_children:
            return values
        user_s, system_s = own_cpu_s(proc_root, helpers, tuple(beside()))
        return values | ({"own_user_s": user_s} if kernel_serves else {"own_cpu_s": user_s + system_s})

    return Source("host", read, prompt=True)


def _waited_s(text: str) -> float:
    """Return the seconds since boot in which some process waited for a CPU (Documentation/accounting/psi.rst)."""
    return int(text.split("\n")[0].rpartition("total=")[2]) / 1e6


def _stat(text: str) -> dict[str, float]:
    """Return fields of proc_stat(5)."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name == "cpu":
            user, nice, system, idle, iowait, irq, softirq, steal = (int(field) for field in rest.split()[:8])
            busy = user + nice + system
            values["cpu_total_s"] = (busy + idle + iowait + irq + softirq + steal) / _TICKS_PER_S
            values["cpu_busy_s"] = busy / _TICKS_PER_S
            values["cpu_user_s"] = (user + nice) / _TICKS_PER_S
            values["cpu_interrupt_s"] = (irq + softirq) / _TICKS_PER_S
            values["cpu_steal_s"] = steal / _TICKS_PER_S
        elif name == "intr":
            values["interrupts"] = float(rest.split(" ", 1)[0])
    return values


def siblings(proc_root: Path = Path("/proc")) -> list[int]:
    """Return the other processes that this process's parent has started."""
    started = _children(proc_root / str(os.getppid()))
    return [int(pid) for pid in started if int(pid) != os.getpid()]


def own_cpu_s(proc_root: Path, helpers: Iterable[int], beside: Iterable[int] = ()) -> tuple[float, float]:
    """Return user and system CPU seconds of the measurement's processes.

    They are this process, those `beside` it, their children, also ended ones, and `helpers`. A child that ends during
    the reading would be counted twice or not at all, so the reading is then repeated (proc_pid_stat(5)).
    """
    parents = [proc_root / str(name) for name in ("self", *beside)]
    while True:
        own = [_ticks(parent) for parent in parents]
        children = [child for parent in parents for child in _children(parent)]
        counted = [*own, *(_ticks(proc_root / str(pid)) for pid in (*children, *helpers))]
        if [_ticks(parent)[2:] for parent in parents] == [ticks[2:] for ticks in own]:
            user = sum(ticks[0] + ticks[2] for ticks in counted)
            system = sum(ticks[1] + ticks[3] for ticks in counted)
            return user / _TICKS_PER_S, system / _TICKS_PER_S


def _ticks(process: Path) -> tuple[int, int, int, int]:
    """Return user and system ticks of a process and of its ended children. Zeros for an ended process."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0, 0, 0
    user, system, children_user, children_system = (int(field) for field in fields[11:15])
    return user, system, children_user, children_system


def _children(process: Path) -> list[str]:
    """Return child processes; empty for an ended process, also if it ends during glob."""
    try:
        return [child for file in (process / "task").glob("*/children") for child in _words(file)]
    except OSError:
        return []


def _words(file: Path) -> list[str]:
    """Return the words of a file; empty if it cannot be read, as that of a thread that has ended."""
    try:
        return file.read_text().split()
    except OSError:
        return []


def frequency_source(sys_root: Path) -> Source | None:
    """Read the mean CPU frequency in MHz.

    Return None if the kernel does not scale it, as in a virtual machine. It is read rarely, because up to Linux 5.17 a
    reading wakes its CPU (arch_freq_get_on_cpu).
    """
    files = sorted((sys_root / "devices/system/cpu/cpufreq").glob("policy*/scaling_cur_freq"))
    if not files:
        return None
    return Source(
        "frequency",
        lambda: {"cpu_frequency_mhz": sum(number_in(file) for file in files) / len(files) / 1000},
        period_s=SLOW_S,
    )


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
