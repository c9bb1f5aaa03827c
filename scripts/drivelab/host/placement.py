"""Choose the CPUs that issue requests: near the drive, without its interrupts, one for each core.

A thread on another NUMA node pays for each request and each completion with accesses to remote memory. A thread on the
CPU that serves the drive's interrupts is stopped by each of them. A sibling shares its core's execution units.
Sources: Documentation/ABI/stable/sysfs-devices-node and sysfs-devices-system-cpu, admin-guide/cputopology,
core-api/irq/irq-affinity.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from drivelab.drives.sysfs import block_dir, read_text
from drivelab.host.machine import Machine

FEWEST_CPUS = 4
"""On a smaller host, bound threads and the host's other work hinder each other."""


@dataclass(frozen=True)
class Placement:
    """Where fio's threads run."""

    reason: str
    """In words, for the recording."""
    order: tuple[int, ...] = ()
    """CPUs in the order in which threads take them; empty if the scheduler places them."""
    interrupts: frozenset[int] = frozenset()

    def cpus(self, threads: int) -> tuple[int, ...]:
        """Return a CPU for each thread; none if the scheduler places them, as when no CPU would be left.

        CPUs with the drive's interrupts are used only if the others are too few.
        """
        if threads >= len(self.order):
            return ()
        free = tuple(cpu for cpu in self.order if cpu not in self.interrupts)
        return (free if len(free) >= threads else self.order)[:threads]


def placement(machine: Machine, drive: str) -> Placement:
    """Return where fio's threads run for a whole block device.

    The kernel allocates a thread's buffers on the node of its CPU (admin-guide/mm/numa_memory_policy), so that
    they are near too.
    """
    if "virtual" in block_dir(drive, machine.sys_root).parts:
        return Placement("left to the scheduler: the device is not at one place of the host")
    return placement_on(topology(machine, drive))


def placement_on(host: Topology) -> Placement:
    """Return where threads run on the CPUs that this process may use."""
    if len(host.cpus) < FEWEST_CPUS:
        return Placement(f"left to the scheduler: the host has fewer than {FEWEST_CPUS} CPUs")
    where = [f"{len(host.near)} CPUs are near the drive" if host.near else "the kernel names no NUMA node of the drive"]
    where += [f"{len(host.interrupts)} serve its interrupts"] if host.interrupts else []
    return Placement(f"one CPU for each thread, {', '.join(where)}", issuing_order(host), host.interrupts)


@dataclass(frozen=True)
class Topology:
    """What the kernel tells about the CPUs of this process, as seen from a drive."""

    cpus: tuple[int, ...]
    """CPUs that this process may use."""
    cores: Mapping[int, int]
    """The lowest sibling of each CPU."""
    near: frozenset[int]
    """CPUs of the drive's NUMA node; empty if the kernel knows none."""
    interrupts: frozenset[int]
    """CPUs that serve interrupts of the drive."""
    node: int | None = None
    """The drive's NUMA node."""


def issuing_order(topology: Topology) -> tuple[int, ...]:
    """Return the CPUs in order of preference for threads.

    Near CPUs come first; among them CPUs without the drive's interrupts, beginning with the first of each core.
    """
    cpus = [cpu for cpu in topology.cpus if not topology.near or cpu in topology.near]
    far = [cpu for cpu in topology.cpus if cpu not in cpus]
    return (*_by_disturbance(cpus, topology), *_by_disturbance(far, topology))


def _by_disturbance(cpus: Sequence[int], topology: Topology) -> list[int]:
    free = [cpu for cpu in cpus if cpu not in topology.interrupts]
    served = [cpu for cpu in cpus if cpu in topology.interrupts]
    return [*_cores_first(free, topology.cores), *_cores_first(served, topology.cores)]


def _cores_first(cpus: Sequence[int], cores: Mapping[int, int]) -> list[int]:
    first = list({cores.get(cpu, cpu): cpu for cpu in reversed(cpus)}.values())
    return [*sorted(first), *(cpu for cpu in cpus if cpu not in first)]


def topology(machine: Machine, drive: str | None, allowed: Collection[int] | None = None) -> Topology:
    """Read the topology as seen from a block device; from none if `drive` is None, such as for a file."""
    cpus = tuple(sorted(os.sched_getaffinity(0) if allowed is None else allowed))
    folder = machine.sys_root / "devices/system/cpu"
    cores = {cpu: min(cpu_list(read_text(folder / f"cpu{cpu}/topology/thread_siblings_list")) or {cpu}) for cpu in cpus}
    if drive is None:
        return Topology(cpus, cores, frozenset(), frozenset())
    node: int | None = None
    near: frozenset[int] = frozenset()
    interrupts: set[int] = set()
    for ancestor in machine.ancestors(drive):
        text = read_text(ancestor / "numa_node")
        if node is None and text is not None and not text.startswith("-"):
            node = int(text)
            near = cpu_list(read_text(machine.sys_root / f"devices/system/node/node{node}/cpulist"))
        for path in (ancestor / "msi_irqs").glob("*"):
            interrupts |= cpu_list(read_text(machine.proc_root / f"irq/{path.name}/effective_affinity_list"))
    return Topology(cpus, cores, near & set(cpus), frozenset(interrupts & set(cpus)), node)


def cpu_list(text: str | None) -> frozenset[int]:
    """Return the CPUs of a kernel's list, such as `0-3,8`; empty for no list."""
    ranges = (part.partition("-") for part in (text or "").split(",") if part)
    return frozenset(cpu for low, _, high in ranges for cpu in range(int(low), int(high or low) + 1))
