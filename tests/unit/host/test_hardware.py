"""What board, memory and clocks are read as, and on which CPUs threads issue."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.host.hardware import hardware, memory_modules
from drivelab.host.machine import Machine
from drivelab.host.placement import Placement, Topology, cpu_list, issuing_order, placement, topology


def device(size: int, kind: int = 34, speed: int = 5600, configured: int = 4800, extended: int = 0) -> bytes:
    """Return a memory device as of SMBIOS 2.8 (40 bytes), with two strings."""
    body = bytearray(40)
    body[:4] = bytes([17, 40, 1, 0])
    struct.pack_into("<H", body, 0x0C, size)
    body[0x12] = kind
    struct.pack_into("<H", body, 0x15, speed)
    struct.pack_into("<I", body, 0x1C, extended)
    struct.pack_into("<H", body, 0x20, configured)
    return bytes(body) + b"DIMM 0\0Vendor\0\0"


END = bytes([127, 4, 0, 0, 0, 0])
BOARD = bytes([2, 4, 0, 0]) + b"A board\0\0"


def test_modules_are_counted_by_size_kind_and_configured_speed() -> None:
    table = BOARD + device(16384) + device(16384) + device(0) + device(8192, configured=0) + END + device(512)
    assert memory_modules(table) == "2 x 16 GiB DDR5 at 4800 MT/s, 1 x 8 GiB DDR5 at 5600 MT/s"


def test_sizes_beyond_the_field_and_in_kibibytes() -> None:
    table = device(0x7FFF, 26, extended=65536, configured=3200) + device(0x8000 | 4096, 0, 0, 0) + END
    assert memory_modules(table) == "1 x 64 GiB DDR4 at 3200 MT/s, 1 x 4 MiB"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(table: bytes) -> None:
    memory_modules(table)


def test_a_host_that_tells_nothing(tmp_path: Path) -> None:
    assert set(hardware(tmp_path).values()) == {None}


def test_a_host_that_tells_all(tmp_path: Path) -> None:
    files = {
        "class/dmi/id/board_vendor": "ASUSTeK", "class/dmi/id/board_name": "PRIME Z590",
        "class/dmi/id/bios_version": "1017", "class/dmi/id/bios_date": "07/12/2021",
        "devices/system/cpu/cpu0/cpufreq/base_frequency": "3500000",
        "devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "5300000", "class/powercap/intel-rapl:0/name": "package-0",
        "class/powercap/intel-rapl:0/constraint_0_name": "long_term",
        "class/powercap/intel-rapl:0/constraint_0_power_limit_uw": "125000000",
        "class/powercap/intel-rapl:0/constraint_1_name": "short_term",
        "class/powercap/intel-rapl:0/constraint_1_power_limit_uw": "251000000",
        "class/powercap/intel-rapl:0:0/name": "core",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "firmware/dmi/tables").mkdir(parents=True)
    (tmp_path / "firmware/dmi/tables/DMI").write_bytes(device(16384) + END)
    assert hardware(tmp_path) == {
        "board": "ASUSTeK PRIME Z590", "system": None, "bios": "1017 07/12/2021",
        "memory_modules": "1 x 16 GiB DDR5 at 4800 MT/s", "base_clock_mhz": 3500.0, "max_clock_mhz": 5300.0,
        "package_power_limit_w": 125.0,
    }  # fmt: skip


def test_the_nominal_clock_of_cppc(tmp_path: Path) -> None:
    folder = tmp_path / "devices/system/cpu/cpu0/acpi_cppc"
    folder.mkdir(parents=True)
    (folder / "nominal_freq").write_text("2450\n")
    assert hardware(tmp_path)["base_clock_mhz"] == 2450.0


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
