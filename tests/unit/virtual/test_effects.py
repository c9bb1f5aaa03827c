"""Heat, housekeeping and neighbours of a virtual drive follow their numbers; absent effects do nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.virtual.effects import Heat, Housekeeping, Throttle, Variation
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel

GOOD: dict[str, Any] = {"serial": "S1", "capacity": "4MiB", "over_provisioning": "28%", "command_us": 500}
THROTTLE = {"ambient_c": 30, "limit_c": 70, "resume_c": 60, "heat_c_per_mib": 0.3, "cooling_s": 40, "slowdown": 4}
HOUSEKEEPING = {"every_s": 10, "for_s": 0.5}
DISTURB = {"every_s": 20, "for_s": 4, "stolen_pct": 40}
VARIATION = {"specimen_pct": 2, "purge_pct": 3, "wander_pct": 1, "wander_s": 10, "page_pct": 20}
ALL = {"throttle": THROTTLE, "housekeeping": HOUSEKEEPING, "disturb": DISTURB, "variation": VARIATION}


def drive(**effects: Any) -> FlashDrive:
    return FlashDrive(DriveModel.from_mapping("d", {**GOOD, **effects}))


def reads_per_second(flash: FlashDrive, seconds: int) -> list[int]:
    """Read at queue depth 1; return the number of reads in each second."""
    done, now = np.zeros(seconds + 1, dtype=int), 0.0
    while now < 1e6 * seconds:
        now = flash.submit(now, "read", 0, 4096)
        done[min(int(now // 1e6), seconds)] += 1
    return [int(number) for number in done[:seconds]]


def test_absent_effects_do_not_change_mapping_or_state() -> None:
    plain = DriveModel.from_mapping("d", GOOD)
    assert not ALL.keys() & plain.to_mapping().keys()
    assert not {b"temperature", b"purged"} & set(FlashDrive(plain).dump().split(b"_"))
    assert drive().told(0.0) == drive(housekeeping=HOUSEKEEPING).told(0.0) == {}


def test_effects_survive_a_round_trip() -> None:
    model = DriveModel.from_mapping("d", {**GOOD, **ALL})
    assert DriveModel.from_mapping("d", model.to_mapping()) == model
    assert model.to_mapping()["throttle"] == THROTTLE


def test_housekeeping_takes_its_time_of_every_period() -> None:
    plain, kept = reads_per_second(drive(), 30), reads_per_second(drive(housekeeping=HOUSEKEEPING), 30)
    assert kept[:9] == pytest.approx(plain[:9], abs=1)
    assert [kept[second] / plain[5] for second in (9, 19, 29)] == pytest.approx([0.5] * 3, abs=0.01)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 1e9))
def test_housekeeping_ends_at_the_reported_time(at_us: float) -> None:
    housekeeping = Housekeeping(every_s=10, for_s=0.5)
    free_us = housekeeping.free_from(at_us)
    assert at_us <= free_us <= at_us + 0.5e6 + 1
    assert (free_us == at_us) == (not housekeeping.active(at_us))


def test_neighbours_take_their_share() -> None:
    reads = reads_per_second(drive(disturb={**DISTURB, "stolen_pct": 50}), 40)
    assert reads[5] == pytest.approx(1e6 / 520, abs=1)  # 500 us of the controller, 20 us of the bus
    assert reads[18] == pytest.approx(1e6 / 1020, abs=1)
    disturb = DriveModel.from_mapping("d", {**GOOD, "disturb": DISTURB}).disturb
    assert disturb is not None
    assert [disturb.stolen_pct_at(1e6 * second) for second in (0, 15.9, 16.1, 19.9, 20.1)] == [0, 0, 40, 40, 0]


def test_a_drive_throttles_between_limit_and_resume_temperature() -> None:
    flash, now, temperatures, slowed = drive(throttle=THROTTLE), 0.0, [], []
    while now < 200e6:
        now = flash.submit(now, "read", 0, 4096)
        sample = flash.told(flash._controller_free)
        temperatures.append(sample["temperature_c"])
        slowed.append(flash._heat is not None and flash._heat.slowed)
    assert max(temperatures) == pytest.approx(70, abs=0.01)
    after = temperatures[slowed.index(True) :]
    assert min(after) == pytest.approx(60, abs=0.01)
    times = np.count_nonzero(np.diff(np.array(slowed).astype(int)) > 0)
    assert times >= 3  # the drive gets hot repeatedly
    assert sample["thermal_2_transitions"] == times
    assert sample["thermal_2_s"] == pytest.approx(200 * np.mean(np.repeat(slowed, np.where(slowed, 4, 1))), abs=2)


def test_a_drive_cools_towards_ambient_temperature() -> None:
    heat = Heat(Throttle(**{name: float(value) for name, value in THROTTLE.items()}), 0.0)
    heat.command(0.0, 100 << 20)
    assert heat.temperature_c == pytest.approx(60)
    heat.command(40e6, 0)
    assert heat.temperature_c == pytest.approx(30 + 30 / np.e)


def test_reading_the_heat_changes_nothing() -> None:
    heat = Heat(Throttle(**{name: float(value) for name, value in THROTTLE.items()}), 0.0)
    heat.command(0.0, 150 << 20)  # 75 °C: slowed down until 60 °C
    until_s = 40 * np.log((75 - 30) / (60 - 30))
    before = heat.state()
    assert heat.told(5e6)["thermal_2_s"] == 5
    sample = heat.told(100e6)
    assert sample["thermal_2_s"] == int(until_s)  # whole seconds, as in the log of a real drive
    assert (sample["thermal_2_transitions"], sample["temperature_limit_c"]) == (1, 70)
    assert heat.state() == before
    assert heat.command(1e6 * until_s - 1000, 0) == 4
    assert heat.command(1e6 * until_s + 1000, 0) == 1


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 100))
def test_stolen_time_adds_up(begin_s: int, seconds: int) -> None:
    """The sum is over whole seconds, in which the share is constant."""
    disturb = DriveModel.from_mapping("d", {**GOOD, "disturb": DISTURB}).disturb
    assert disturb is not None
    before, after = disturb.told(1e6 * begin_s), disturb.told(1e6 * (begin_s + seconds))
    shares = [disturb.stolen_pct_at(1e6 * (begin_s + number + 0.5)) for number in range(seconds)]
    assert after["cpu_total_s"] - before["cpu_total_s"] == seconds
    assert after["cpu_steal_s"] - before["cpu_steal_s"] == pytest.approx(sum(shares) / 100, abs=1e-4)


def test_a_saved_state_includes_the_temperature() -> None:
    original, copy = drive(**ALL), drive(**ALL)
    now = 0.0
    for _ in range(5000):
        now = original.submit(now, "write", 0, 4096)
    copy.load(original.dump())
    assert copy.told(now) == original.told(now)
    assert copy.dump() == original.dump()
    assert copy.submit(now, "write", 0, 4096) == original.submit(now, "write", 0, 4096)
    with pytest.raises(ValueError, match="not the state"):
        drive().load(original.dump())


def test_effects_do_nothing_without_timing(small: Callable[..., DriveModel]) -> None:
    flash = FlashDrive(small(**ALL, enabled=False))
    assert flash.submit(9.7e6, "read", 0, 4096) == 9.7e6


def test_the_times_of_flash_vary_by_the_given_sizes() -> None:
    variation = Variation(**dict.fromkeys(VARIATION, 1e-9) | {"wander_s": 10.0})

    def spread_pct(factors: list[float]) -> float:
        return 100 * float(np.std(np.log(factors)))

    def only(**sizes: float) -> Variation:
        return replace(variation, **sizes)

    many = range(3000)
    assert spread_pct([only(specimen_pct=2).pace(f"S{n}", 0, 0) for n in many]) == pytest.approx(2, rel=0.05)
    assert spread_pct([only(purge_pct=3).pace("S", 1e6 * n, 0) for n in many]) == pytest.approx(3, rel=0.05)
    assert spread_pct([only(wander_pct=1).pace("S", 0, 7.3e6 * n) for n in many]) == pytest.approx(1, rel=0.05)
    assert spread_pct(only(page_pct=20).of_pages("S")) == pytest.approx(20, rel=0.05)
    alike = [only(specimen_pct=2, purge_pct=3).pace("S", 1, at_us) for at_us in (5e6, 9e7)]
    assert alike[0] == pytest.approx(alike[1])


def test_successive_moments_are_alike_and_distant_ones_are_not() -> None:
    variation = Variation(1e-9, 1e-9, 1.0, 10.0, 1e-9)
    logs = np.log([variation.pace("S", 0, 1e6 * at_s) for at_s in range(20_000)])
    assert np.corrcoef(logs[:-1], logs[1:])[0, 1] > 0.9
    assert np.corrcoef(logs[:-5], logs[5:])[0, 1] == pytest.approx(0.7, abs=0.1)
    assert abs(np.corrcoef(logs[:-25], logs[25:])[0, 1]) < 0.1


def written(flash: FlashDrive, number: int, now: float) -> list[float]:
    times = []
    for place in range(number):
        now = flash.submit(now, "write", 4096 * (place * 37 % 1000), 4096)
        times.append(now)
    return times


def test_a_drive_with_variation_continues_from_its_state_at_any_moment() -> None:
    whole, stopped = drive(variation=VARIATION), drive(variation=VARIATION)
    whole.reset(3e9)
    stopped.reset(3e9)
    first, then = written(whole, 5000, 3e9), written(stopped, 1700, 3e9)
    assert first[:1700] == then
    resumed = drive(variation=VARIATION)
    resumed.load(stopped.dump())
    now = then[-1]
    for place in range(1700, 5000):
        now = resumed.submit(now, "write", 4096 * (place * 37 % 1000), 4096)
        assert now == first[place]


def test_a_purge_gives_another_pace_and_a_reset_at_the_same_time_the_same() -> None:
    def seconds(begin_us: float) -> float:
        flash = drive(variation=VARIATION, command_us=1)
        flash.reset(begin_us)
        return written(flash, 3000, begin_us)[-1] - begin_us

    assert seconds(86400e6) == seconds(86400e6) != seconds(2 * 86400e6)


def test_reads_of_a_varying_drive_have_a_distribution() -> None:
    flash = drive(variation=VARIATION, read_us=100, command_us=1, transfer_us=1)
    now, latencies = written(flash, 1000, 0.0)[-1] + 1e9, []
    for place in range(1000):
        done = flash.submit(now, "read", 4096 * place, 4096)
        latencies.append(done - now)
        now = done + 1000
    assert np.std(np.log(latencies)) == pytest.approx(0.2, abs=0.03)
    assert len(set(np.round(latencies, 3))) > 300
