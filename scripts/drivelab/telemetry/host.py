"""The host: CPU time by whom, interrupts, frequency."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from drivelab.telemetry.source import SLOW_S, Source, number_in

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_source(
    proc_root: Path,
    helpers: Iterable[int] = (),
    kernel_serves: bool = False,
    beside: Callable[[], Iterable[int]] = tuple,
) -> Source:
    """CPU seconds since boot of all CPUs together, those of drivelab itself, and the number of interrupts.

    `cpu_busy_s` is time in programs and in the kernel on their behalf (user, nice, system), `cpu_user_s` that in
    programs alone. Time in interrupts is in neither: it is the drive under test that interrupts. `own_cpu_s` is the
    time of this process, its children (fio), and `helpers`, processes that are part of the drive, as the server of a
    virtual drive; without it nobody can say what others used. With `kernel_serves` threads of the kernel, which belong
    to nobody, do the drive's work, as for a loop device; only time in programs can be told apart then, and there is
    `own_user_s` in its place. `beside` tells the processes that measure other drives at the same time: they and their
    children are part of the measurement.
    """
    helpers = tuple(helpers)
    knows_children = any((proc_root / "self/task").glob("*/children"))

    def read() -> dict[str, float]:
        values = _stat((proc_root / "stat").read_text())
        if not knows_children:
            return values
        user_s, system_s = own_cpu_s(proc_root, helpers, tuple(beside()))
        return values | ({"own_user_s": user_s} if kernel_serves else {"own_cpu_s": user_s + system_s})

    return Source("host", read, prompt=True)


def _stat(text: str) -> dict[str, float]:
    """Fields of proc_stat(5)."""
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
    """The other processes that this one's parent has started."""
    started = _children(proc_root / str(os.getppid()))
    return [int(pid) for pid in started if int(pid) != os.getpid()]


def own_cpu_s(proc_root: Path, helpers: Iterable[int], beside: Iterable[int] = ()) -> tuple[float, float]:
    """User and system CPU seconds of this process and those `beside` it, their live and ended children, and `helpers`.

    A child that ends while it is looked at would be counted twice or not at all, so the look is repeated then
    (proc_pid_stat(5)).
    """
    parents = [proc_root / str(name) for name in ("self", *beside)]
    while True:
        own = [_ticks(parent) for parent in parents]
        children = [child for parent in parents for child in _children(parent)]
        found = [*own, *(_ticks(proc_root / str(pid)) for pid in (*children, *helpers))]
        if [_ticks(parent)[2:] for parent in parents] == [ticks[2:] for ticks in own]:
            user = sum(ticks[0] + ticks[2] for ticks in found)
            system = sum(ticks[1] + ticks[3] for ticks in found)
            return user / _TICKS_PER_S, system / _TICKS_PER_S


def _ticks(process: Path) -> tuple[int, int, int, int]:
    """User and system ticks of a process, and those of its children that have ended; none of one that is gone."""
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0, 0, 0
    user, system, children_user, children_system = (int(field) for field in fields[11:15])
    return user, system, children_user, children_system


def _children(process: Path) -> list[str]:
    """Empty for a process that is gone; glob tells of one that ends while it looks by an error."""
    try:
        return [child for file in (process / "task").glob("*/children") for child in _words(file)]
    except OSError:
        return []


def _words(file: Path) -> list[str]:
    """Empty for a thread that ended meanwhile."""
    try:
        return file.read_text().split()
    except OSError:
        return []


def frequency_source(sys_root: Path) -> Source | None:
    """Mean frequency of the CPUs in MHz; None where the kernel does not scale it, as in a virtual machine.

    Slow, because up to Linux 5.17 the question wakes the CPUs that it asks about (arch_freq_get_on_cpu).
    """
    files = sorted((sys_root / "devices/system/cpu/cpufreq").glob("policy*/scaling_cur_freq"))
    if not files:
        return None
    return Source(
        "frequency",
        lambda: {"cpu_frequency_mhz": sum(number_in(file) for file in files) / len(files) / 1000},
        period_s=SLOW_S,
    )
