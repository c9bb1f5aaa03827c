"""A volume with credits bursts for as long as its bucket lasts, and earns credits while it idles."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.virtual.effects import Bucket, Credits
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel

SMALL = {"base_iops": 100, "burst_iops": 1000, "bucket_ios": 450, "io_kib": 16}
"""A full bucket lasts for half a second of bursts: 450 / (1000 - 100)."""
FAST = {"command_us": 10, "transfer_us": 1, "read_us": 10, "credits": SMALL}


def starts(bucket: Bucket, commands: int, length: int = 4096, at_us: float = 0.0) -> list[float]:
    """Return the starts of commands that wait for each other."""
    found = []
    for _ in range(commands):
        at_us = bucket.admit(at_us, length)
        found.append(at_us)
    return found


@settings(max_examples=100, deadline=None)
@given(base=st.floats(1, 900), burst=st.floats(1.1, 10), seconds=st.floats(0.1, 5))
def test_a_full_bucket_lasts_for_its_credits_over_the_difference_of_both_rates(
    base: float, burst: float, seconds: float
) -> None:
    rate = base * burst
    bucket = Bucket(Credits(base, rate, seconds * (rate - base), 16), 0.0)
    commands = int(seconds * rate) + int(3 * base) + 10
    times_s = [start / 1e6 for start in starts(bucket, commands)]
    ended_s = next(now for now, following in pairwise(times_s) if following - now > 1.05 / rate)
    assert ended_s == pytest.approx(seconds, abs=2 / (rate - base) + 1 / rate)
    assert times_s[-1] - times_s[-2] == pytest.approx(1 / base)


@settings(max_examples=100, deadline=None)
@given(idle_s=st.floats(0, 10))
def test_idle_time_earns_credits_at_the_base_rate_until_the_bucket_is_full(idle_s: float) -> None:
    bucket = Bucket(Credits(**SMALL), 0.0)
    before_us = starts(bucket, 600)[-1]
    earned = min(100 * idle_s, 450)
    times_us = starts(bucket, 700, at_us=before_us + 1e6 * idle_s)
    bursting = sum(following - now < 1.05e3 for now, following in pairwise(times_us))
    assert bursting == pytest.approx(earned * 1000 / 900, abs=3)


def test_a_large_command_costs_a_credit_for_each_part() -> None:
    times_us = starts(Bucket(Credits(**SMALL), 0.0), 200, length=5 * 16384 - 1)
    assert times_us[1] - times_us[0] == pytest.approx(5e3)  # 5 credits at 1000 per second
    assert times_us[-1] - times_us[-2] == pytest.approx(5e4)
    assert times_us[450 // 5] < 0.6e6


@pytest.mark.parametrize(("operation", "limited"), [("read", True), ("write", True), ("trim", False), ("flush", False)])
def test_only_transfers_cost_credits(small: Callable[..., DriveModel], operation: str, limited: bool) -> None:
    drive, now_us = FlashDrive(small(**FAST)), 0.0
    for _ in range(1000):
        now_us = drive.submit(now_us, operation, 0, 0 if operation == "flush" else 4096)
    # 500 commands in half a second, then 500 at 100 per second
    assert now_us == pytest.approx(5.5e6, rel=0.01) if limited else now_us < 0.1e6


def used(model: DriveModel) -> FlashDrive:
    drive, now_us = FlashDrive(model), 0.0
    for _ in range(300):
        now_us = drive.submit(now_us, "read", 0, 4096)
    return drive


def following(drive: FlashDrive, at_us: float) -> list[float]:
    times_us = []
    for _ in range(400):
        at_us = drive.submit(at_us, "read", 0, 4096)
        times_us.append(at_us)
    return times_us


def test_a_saved_state_includes_the_credits(small: Callable[..., DriveModel]) -> None:
    model = small(**FAST)
    again = FlashDrive(model)
    again.load(used(model).dump())
    assert following(again, 1e6) == following(used(model), 1e6)
    with pytest.raises(ValueError, match="not the state"):
        FlashDrive(small()).load(used(model).dump())


def test_credits_move_with_the_clock(small: Callable[..., DriveModel]) -> None:
    shifted = used(small(**FAST))
    shifted.shift(5e9)
    expected = [at_us + 5e9 for at_us in following(used(small(**FAST)), 1e6)]
    assert following(shifted, 1e6 + 5e9) == pytest.approx(expected, abs=1)


def test_a_purge_brings_no_credits_and_a_reset_brings_all(small: Callable[..., DriveModel]) -> None:
    model = small(**FAST)
    untouched, purged, reset = used(model), used(model), used(model)
    purged.purge(0.5e6)
    reset.reset(0.5e6)
    assert following(purged, 0.5e6)[-1] == pytest.approx(following(untouched, 0.5e6)[-1], rel=0.01)
    assert following(reset, 0.5e6)[-1] == pytest.approx(0.9e6, rel=0.01)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"base_iops": 1000}, "'base_iops' must be below 'burst_iops'"), ({"io_kib": 0}, "'io_kib' is '0'")],
)
def test_bad_credits_are_refused(small: Callable[..., DriveModel], change: dict[str, Any], reason: str) -> None:
    with pytest.raises(Exception, match=reason):
        small(credits={**SMALL, **change})


def test_no_credits_do_not_change_the_state(small: Callable[..., DriveModel]) -> None:
    assert "credits" not in small().to_mapping()
    assert b"_credits" not in FlashDrive(small()).dump()
