"""A virtual hard disk takes the time of its mechanics: seeks, turns, and the bandwidth of the zone."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.core.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.virtual.disk import Disk
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.workload import closed_loop

MIB = 1 << 20
DISK = {"rpm": 6000, "track_seek_ms": 1, "full_seek_ms": 16, "outer_mib_s": 200, "inner_mib_s": 100}
"""A turn takes 10 ms."""
TURN_US = 10_000
READS = Cell("random", 100, 4096, threads=1, queue_depth=1, runtime_s=60.0)


def model(**changes: Any) -> DriveModel:
    parts = {"serial": "D", "capacity": "64MiB", "over_provisioning": "28%", "command_us": 0, "transfer_us": 0}
    return DriveModel.from_mapping("disk", {**parts, "disk": {**DISK, **changes}})


def latencies_us(cell: Cell) -> list[float]:
    done = closed_loop(FlashDrive(model()), cell, 0.0, Random(1))
    return [done_us - issued_us for done_us, issued_us, _, _ in done]


def iops(cell: Cell) -> float:
    assert cell.runtime_s is not None
    return len(latencies_us(cell)) / cell.runtime_s


def test_a_random_read_takes_a_seek_half_a_turn_and_its_transfer() -> None:
    """The mean of the square root of the distance of two random places is 8 / 15 of that of the whole."""
    seek_us, transfer_us = 1000 + 15_000 * 8 / 15, 4096 / MIB / 155 * 1e6
    assert fmean(latencies_us(READS)) == pytest.approx(seek_us + TURN_US / 2 + transfer_us, rel=0.02)


def test_a_short_stroke_saves_seek_time_and_no_turn() -> None:
    short_us = fmean(latencies_us(replace(READS, range_share=0.1)))
    assert short_us == pytest.approx(1000 + 15_000 * 8 / 15 * 0.1**0.5 + TURN_US / 2, rel=0.02)


def test_no_read_takes_longer_than_the_longest_seek_and_a_turn() -> None:
    assert max(latencies_us(READS)) <= 16_000 + TURN_US + 100


def test_a_queue_shortens_seeks_and_turns_up_to_32_commands() -> None:
    rates = {depth: iops(replace(READS, queue_depth=depth)) for depth in (1, 2, 4, 8, 16, 32, 64)}
    ascending = [rates[depth] for depth in (1, 2, 4, 8, 16, 32)]
    assert ascending == sorted(ascending)
    assert (
        2 * rates[1] < rates[32] < 1e6 / (1000 + TURN_US / 33)
    )  # at best the shortest seek, and the least of 32 waits
    assert rates[64] == pytest.approx(rates[32], rel=0.05)


@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize("begin", [0.0, 0.5, 0.95])
def test_sequential_io_has_the_bandwidth_of_its_zone(operation: str, begin: float, depth: int) -> None:
    cell = Cell("sequential", 100 if operation == "read" else 0, 65536, threads=1, queue_depth=depth,
                volume_bytes=3 * MIB, range_start=begin, range_share=0.05)  # fmt: skip
    done = list(closed_loop(FlashDrive(model()), cell, 0.0, Random(1)))
    positions = ((begin * 64 + 0.0625 * number) / 64 for number in range(4, len(done) - 4))
    expected_us = [65536 / MIB / (200**2 - position * (200**2 - 100**2)) ** 0.5 * 1e6 for position in positions]
    taken_us = [later[0] - sooner[0] for sooner, later in pairwise(done[3:-4])]
    assert taken_us == pytest.approx(expected_us, rel=0.01)


def test_a_sequential_read_beside_others_seeks() -> None:
    drive = FlashDrive(model())
    apart = [drive.submit(0.0, "read", offset, 4096) for offset in (0, 32 * MIB, 4096)]
    assert apart[2] - apart[1] > 1000


@settings(max_examples=50, deadline=None)
@given(
    requests=st.lists(st.tuples(st.sampled_from(["read", "write", "flush", "trim"]), st.integers(0, 1000)), min_size=1),
    pause_us=st.floats(0, 50_000),
)
def test_requests_complete_in_order_and_a_saved_disk_continues(
    requests: list[tuple[str, int]], pause_us: float
) -> None:
    drive, now_us, last_us = FlashDrive(model()), 0.0, 0.0
    for operation, page in requests:
        done_us = drive.submit(now_us, operation, page * 4096, 4096)
        assert done_us >= now_us
        if operation != "trim":  # which moves no heads
            assert done_us >= last_us
            last_us = done_us
        now_us += pause_us
    again = FlashDrive(model())
    again.load(drive.dump())
    again.shift(7e9)
    expected_us = drive.submit(now_us, "read", 0, 4096)
    assert again.submit(now_us + 7e9, "read", 0, 4096) - 7e9 == pytest.approx(
        expected_us, abs=10
    )  # 7e9 us: whole turns


def test_a_hard_disk_says_so() -> None:
    identity = model().describe()
    assert (identity["rotational"], identity["over_provisioning_pct"]) == (True, None)
    assert DriveModel.from_mapping("disk", model().to_mapping()) == model()
    assert Disk(**DISK).turn_us == TURN_US


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"inner_mib_s": 201}, "'inner_mib_s' must not exceed"),
     ({"track_seek_ms": 17}, "'track_seek_ms' must not exceed"), ({"rpm": 0}, "'rpm' is '0'")],
)  # fmt: skip
def test_a_bad_disk_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=f"key 'disk': .*{reason}"):
        model(**changes)
