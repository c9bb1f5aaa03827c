"""The host's ceiling on null_blk, which the test host may lack: the kernel of the emulated machines has the module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from emulation.machine import Machine

from drivelab.criteria.host_limit import AT_LEAST, AT_MOST, Ceiling

pytestmark = pytest.mark.emulated

OF_FIO = "fio's null engine"
READS, WRITES, DISCARDS = 0, 4, 11
"""Fields of /sys/block/NAME/stat (Documentation/block/stat.rst)."""


@pytest.fixture
def load(bench: Machine) -> Iterator[Callable[[str], None]]:
    """A function that makes one null device with parameters; the device is removed after the test."""

    def insert(parameters: str) -> None:
        bench.run("grep -q ^configfs /proc/modules || insmod /modules/null/*-configfs.ko")
        bench.run(f"insmod /modules/null/*-null_blk.ko nr_devices=1 {parameters} && udevadm settle")

    yield insert
    bench.run("rmmod null_blk")


def measured(machine: Machine, engine: str, *besides: str) -> dict[str, Any]:
    result: dict[str, Any] = machine.run(f"python3 /guest/ceiling.py {engine} {' '.join(besides)}").json()
    return result


@pytest.mark.parametrize(
    ("engine", "parameters", "of_two_threads"),
    [
        ("io_uring", "irqmode=0 submit_queues=2", [AT_LEAST, AT_MOST]),
        ("libaio", "", [AT_LEAST]),  # by default, the device has one queue and completes at once by a softirq
    ],
)
def test_the_ceiling_is_measured_on_null_blk(
    bench: Machine, load: Callable[[str], None], engine: str, parameters: str, of_two_threads: list[str]
) -> None:
    load(parameters)
    result = measured(bench, engine)
    assert result["missing"] == []
    read, write, by_two = (entry["measured"] for entry in result["entries"])
    parts = (*read, *write, *by_two)
    assert [(part["target"], part.get("failed")) for part in parts] == [("nullb0", None), (OF_FIO, None)] * 3
    assert [part["bounds"] for part in (*read, *write)] == [[AT_LEAST, AT_MOST], [AT_MOST], [AT_MOST], [AT_MOST]]
    assert [part["bounds"] for part in by_two] == [of_two_threads, [AT_MOST]]
    on_device = read[0]["iops"]
    ceiling = Ceiling.of(read)
    assert ceiling.at_least_iops == ceiling.at_most_iops == on_device
    fields = [int(field) for field in bench.read("/sys/block/nullb0/stat").split()]
    assert fields[READS] > on_device / 2
    assert (fields[WRITES], fields[DISCARDS]) == (0, 0), "the device is only read"


@pytest.mark.parametrize(
    ("parameters", "besides", "use", "reason"),
    [
        ("irqmode=2", (), "", "a timer delays its completions (irqmode)"),
        ("", ("nullb0",), "", "it is measured itself"),
        ("", (), "dmsetup create on_null --table '0 2048 linear /dev/nullb0 0'", "nullb0 is held by dm-0"),
    ],
)
def test_a_null_blk_device_that_would_mislead_or_is_in_use_is_left_alone(
    bench: Machine, load: Callable[[str], None], parameters: str, besides: tuple[str, ...], use: str, reason: str
) -> None:
    load(parameters)
    if use:
        bench.run(f"DM_DISABLE_UDEV=1 {use}")
    try:
        before = bench.read("/sys/block/nullb0/stat").split()[READS]
        result = measured(bench, "libaio", *besides)
        after = bench.read("/sys/block/nullb0/stat").split()[READS]
    finally:
        if use:
            bench.run("DM_DISABLE_UDEV=1 dmsetup remove on_null")
    assert before == after
    assert result["missing"][0].startswith("/dev/nullb0: ")
    assert reason in result["missing"][0]
    assert [part["target"] for entry in result["entries"] for part in entry["measured"]] == [OF_FIO] * 3
