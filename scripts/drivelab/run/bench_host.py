"""Measure what this host gives without a drive, and say in words what to change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from drivelab.core.units import counted, format_factor
from drivelab.criteria.host_limit import LEAST_S, Ceiling
from drivelab.drives.sysfs import block_dir
from drivelab.fio.null_target import NO_DEVICE
from drivelab.host.machine import Machine
from drivelab.host.placement import FEWEST_CPUS, topology
from drivelab.host.settings import HOST, snapshot
from drivelab.plan.cell import Cell
from drivelab.plan.places import COMMAND
from drivelab.replay import native
from drivelab.run.host_ceiling import measured_now
from drivelab.telemetry.host import busiest_cpus, cpu_times

SETTINGS = ("CPU governor", "CPU turbo", "CPU idle states", "CPU mitigations", "Clock source", "NUMA balancing",
            "Virtualisation")  # fmt: skip
"""Host settings on which the ceilings depend most; `drivelab doctor` shows all."""
BUSY_PCT = 5.0
"""More CPU time than this, used by others before the measurement, is worth a remark."""
LATE_US = 100.0
"""A wake-up that is later than this adds more than an NVMe read takes (ours)."""
_VIRTUAL = "Virtualisation"


def typical_loads(cpus: int) -> list[Cell]:
    """Return loads of common protocols: one I/O at a time, many, on several threads, writes, and large blocks."""
    several = min(cpus, 4)
    loads = [
        Cell("random", 100, 4096, 1, 1),
        Cell("random", 100, 4096, 1, 32),
        *([Cell("random", 100, 4096, several, 32)] if several > 1 else []),
        Cell("random", 0, 4096, 1, 32),
        Cell("random", 0, 4096, several, 32),
        Cell("sequential", 100, 128 << 10, 1, 32),
    ]
    return list(dict.fromkeys(loads))


def bench_host(
    drives: Sequence[str], say: Callable[[str], None] = lambda text: None, machine: Machine | None = None
) -> dict[str, Any]:
    """Return `ceilings`, `wakeups_us`, `drives`, `settings`, `limits` and `advice`; changes nothing.

    `drives` are kernel names of drives, for the CPUs of their interrupts; nothing is read from the drives.
    """
    machine = machine or Machine()
    others_pct = _busy_now_pct()
    cpus = len(os.sched_getaffinity(0))
    no_ring = native.possible()
    engine = "io_uring" if no_ring is None else "libaio"
    say("wake-ups")
    wakeups = None if no_ring is not None else {name: ns / 1000 for name, ns in native.wakeups_ns().items()}
    entries, missing = measured_now(typical_loads(cpus), engine, say=lambda _, load: say(load.label))
    settings = [
        row for row in snapshot(drives, "synthetic", machine) if row["scope"] == HOST and row["name"] in SETTINGS
    ]
    interrupts = [interrupts_of(drive, machine) for drive in drives]
    return {
        "cpus": cpus,
        "engine": engine,
        "ceilings": [_ceiling(entry) for entry in entries],
        "wakeups_us": wakeups,
        "drives": interrupts,
        "settings": [{name: row[name] for name in ("name", "state", "wanted", "deviation", "how")} for row in settings],
        "limits": list(limits_of(cpus, others_pct, settings, missing, no_ring)),
        "advice": list(advice(wakeups, settings, interrupts, missing)),
    }


def _ceiling(entry: Mapping[str, Any]) -> dict[str, Any]:
    load, results = Cell(**entry["load"]), entry["measured"]
    ceiling = Ceiling.of(results)
    return {
        "load": load.label,
        "at_least_iops": ceiling.at_least_iops,
        "at_most_iops": ceiling.at_most_iops,
        "words": ceiling.words(),
        "targets": [{name: result.get(name) for name in ("target", "meaning", "bounds", "iops", "failed", "disturbed")}
                    for result in results],
    }  # fmt: skip


def _busy_now_pct() -> float | None:
    """Return the share of all CPUs that is busy while this process sleeps."""
    before = cpu_times()
    time.sleep(2 * LEAST_S)
    use = busiest_cpus(before, cpu_times())
    return None if use is None else sum(busy for busy, _ in use["busiest"]) / use["count"]


def interrupts_of(drive: str, machine: Machine) -> dict[str, Any]:
    """Return where the interrupts of a drive's queues go; `cpus` are those of this process."""
    place = topology(machine, drive)
    queues = [folder for folder in (block_dir(drive, machine.sys_root) / "mq").glob("*") if folder.is_dir()]
    return {
        "drive": drive,
        "queues": len(queues),
        "interrupt_cpus": sorted(place.interrupts),
        "node": place.node,
        "near_cpus": sorted(place.near),
        "cpus": list(place.cpus),
    }


def limits_of(
    cpus: int,
    others_pct: float | None,
    settings: Sequence[Mapping[str, Any]],
    missing: Sequence[str],
    no_ring: str | None,
) -> Iterator[str]:
    """Yield what these numbers cannot say."""
    virtual = next((row for row in settings if row["name"] == _VIRTUAL and row["deviation"]), None)
    if virtual is not None:
        yield (
            f"This host is a {virtual['state']}. The hypervisor shares the CPUs and delays timers, so the numbers hold "
            "for this moment only."
        )
    if cpus < FEWEST_CPUS:
        yield f"This host gives {counted(cpus, 'CPU')}. fio, interrupts and all other programs share them."
    if others_pct is not None and others_pct > BUSY_PCT:
        yield f"Other programs used {others_pct:.0f} % of the CPU time before the measurement, so the numbers are low."
    if missing:
        yield f"The ceilings have bounds only, because no null_blk device can be used: {'; '.join(missing)}."
    if no_ring is not None:
        yield f"io_uring cannot be used ({no_ring}): the ceilings are those of libaio, and wake-ups are not measured."
    yield (
        "A null target needs no interrupts from a device and no DMA. With a real drive the host gives somewhat less "
        "than the ceiling."
    )


def advice(
    wakeups: Mapping[str, float] | None,
    settings: Sequence[Mapping[str, Any]],
    interrupts: Sequence[Mapping[str, Any]],
    missing: Sequence[str],
) -> Iterator[str]:
    """Yield what to change, and what to type; nothing for a host that needs no change."""
    if wakeups is not None and wakeups["p99"] > LATE_US:
        yield (
            f"A sleeping thread wakes up {format_factor(wakeups['p99'])} µs late or more in 1 of 100 cases. Latencies "
            "of single I/Os contain this. Stop other programs, and give a virtual machine dedicated CPUs."
        )
    for row in settings:
        if row["deviation"] and row["name"] != _VIRTUAL:
            yield f"{row['name']}: {row['state']}; wanted: {row['wanted']}. To change it: {row['how']}."
    for place in interrupts:
        yield from _about_interrupts(place)
    if NO_DEVICE in missing:
        yield (
            "For exact ceilings, make a null_blk device that completes at once, with a queue for each CPU: 'modprobe "
            "null_blk nr_devices=1 irqmode=0 submit_queues=$(nproc --all)'. Remove it with 'modprobe -r null_blk'."
        )


def _about_interrupts(place: Mapping[str, Any]) -> Iterator[str]:
    drive, cpus, served = place["drive"], place["cpus"], place["interrupt_cpus"]
    if len(served) == 1 and len(cpus) > 1 and place["queues"] > 1:
        yield (
            f"{drive}: CPU {served[0]} serves the interrupts of all {place['queues']} queues, so it limits the drive. "
            "Start irqbalance, or write a CPU list to /proc/irq/NUMBER/smp_affinity_list of each interrupt."
        )
    elif served and place["queues"] == 1 and len(cpus) > 1:
        yield f"{drive}: has one queue, so one CPU at a time completes its I/Os. Only another drive has more queues."
    if place["near_cpus"] and set(place["near_cpus"]) < set(cpus):
        near = ",".join(map(str, place["near_cpus"]))
        yield (
            f"{drive}: is on NUMA node {place['node']}. CPUs of other nodes reach it more slowly. Run the study on its "
            f"node: 'taskset -c {near} {COMMAND} run'."
        )
