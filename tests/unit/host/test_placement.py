"""CPUs for issuing threads on made-up hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.host.machine import Machine
from drivelab.host.placement import Placement, Topology, cpu_list, issuing_order, placement, topology

CORES = {0: 0, 1: 1, 2: 2, 3: 3, 4: 0, 5: 1, 6: 2, 7: 3}
"""Four cores with two threads each, numbered as Linux does."""


@pytest.mark.parametrize(
    ("near", "interrupts", "order"),
    [
        ((), (), (0, 1, 2, 3, 4, 5, 6, 7)),
        ((2, 3, 6, 7), (), (2, 3, 6, 7, 0, 1, 4, 5)),
        ((2, 3, 6, 7), (2, 6), (3, 7, 2, 6, 0, 1, 4, 5)),
        ((0, 4), (0, 4), (0, 4, 1, 2, 3, 5, 6, 7)),
        ((), (0,), (1, 2, 3, 4, 5, 6, 7, 0)),
    ],
)
def test_order_of_cpus(near: tuple[int, ...], interrupts: tuple[int, ...], order: tuple[int, ...]) -> None:
    assert issuing_order(Topology(tuple(range(8)), CORES, frozenset(near), frozenset(interrupts))) == order


@given(st.sets(st.integers(0, 40), min_size=1), st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_every_allowed_cpu_is_used_once(cpus: set[int], near: set[int], interrupts: set[int]) -> None:
    host = Topology(tuple(sorted(cpus)), {}, frozenset(near & cpus), frozenset(interrupts & cpus))
    assert sorted(issuing_order(host)) == sorted(cpus)


def test_a_host_with_two_nodes_is_read(tmp_path: Path) -> None:
    sys_root, proc_root = tmp_path / "sys", tmp_path / "proc"
    files = {
        sys_root / "devices/system/node/node1/cpulist": "2-3,6-7\n",
        sys_root / "devices/pci0/nvme0/numa_node": "1\n",
        proc_root / "irq/31/effective_affinity_list": "2\n",
        proc_root / "irq/32/effective_affinity_list": "6\n",
        **{sys_root / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 4},{cpu % 4 + 4}\n"
           for cpu in range(8)},
    }  # fmt: skip
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for number in (31, 32):
        (sys_root / "devices/pci0/nvme0/msi_irqs").mkdir(exist_ok=True)
        (sys_root / f"devices/pci0/nvme0/msi_irqs/{number}").write_text("msix\n")
    disk = sys_root / "devices/pci0/nvme0/nvme0n1"
    disk.mkdir()
    (sys_root / "class/block").mkdir(parents=True)
    (sys_root / "class/block/nvme0n1").symlink_to(disk)
    machine = Machine(sys_root, proc_root)
    host = topology(machine, "nvme0n1", range(8))
    assert (host.cores, host.near, host.interrupts) == (CORES, {2, 3, 6, 7}, {2, 6})
    assert issuing_order(host)[:2] == (3, 7)
    assert topology(machine, None, range(8)).near == frozenset()


@pytest.mark.parametrize(("text", "cpus"), [(None, set()), ("", set()), ("3", {3}), ("0-2,8", {0, 1, 2, 8})])
def test_lists_of_cpus(text: str | None, cpus: set[int]) -> None:
    assert cpu_list(text) == cpus


PLENTY = Placement("made up", (2, 3, 6, 7, 0, 1, 4, 5), frozenset({2, 6}))


@pytest.mark.parametrize(
    ("threads", "cpus"), [(1, (3,)), (2, (3, 7)), (6, (3, 7, 0, 1, 4, 5)), (7, (2, 3, 6, 7, 0, 1, 4)), (8, ()), (9, ())]
)
def test_threads_avoid_the_interrupts_and_leave_a_cpu(threads: int, cpus: tuple[int, ...]) -> None:
    assert PLENTY.cpus(threads) == cpus


def test_all_cpus_with_interrupts_are_as_good_as_none() -> None:
    assert Placement("made up", (0, 1, 2, 3), frozenset(range(4))).cpus(2) == (0, 1)


def test_the_scheduler_places_threads_for_a_virtual_device(tmp_path: Path) -> None:
    disk = tmp_path / "devices/virtual/block/loop9"
    disk.mkdir(parents=True)
    (tmp_path / "class/block").mkdir(parents=True)
    (tmp_path / "class/block/loop9").symlink_to(disk)
    decided = placement(Machine(tmp_path, tmp_path), "loop9")
    assert decided.cpus(1) == ()
    assert decided.reason == "left to the scheduler: the device is not at one place of the host"
