"""Samples over a time span."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.telemetry.time_window import Timeline, cpu_shares, summarise

CPU = [
    {"at_s": float(t), "cpu_total_s": 2.0 * t, "cpu_busy_s": 1.0 * t, "cpu_steal_s": 0.1 * t, "own_cpu_s": 0.6 * t}
    for t in range(100, 131)
]


def test_temperature_has_minimum_mean_and_maximum() -> None:
    samples = [{"at_s": 100.0 + i, "temperature_c": value} for i, value in enumerate((40.0, 41.0, 45.0, 43.0, 60.0))]
    summary = summarise(samples, 100.5, 102.5)
    assert (summary["temperature_min_c"], summary["temperature_max_c"]) == (40.0, 45.0), (
        "the neighbouring samples count"
    )
    assert summary["temperature_mean_c"] == pytest.approx(42.25)


def test_cpu_time_by_consumer() -> None:
    summary = summarise(CPU, 110.0, 120.0)
    assert {name: round(value, 6) for name, value in summary.items()} == {
        "cpu_pct": 50.0, "steal_pct": 5.0, "load_pct": 20.0
    }  # fmt: skip


def test_own_time_never_counts_as_load_and_may_be_a_tick_too_large() -> None:
    rise = {"cpu_total_s": 2.0, "cpu_busy_s": 1.99, "own_cpu_s": 2.01}
    assert cpu_shares(rise) == {"cpu_pct": 99.5, "load_pct": 0.0}
    assert cpu_shares({**rise, "cpu_total_s": 0.0}) == {}
    assert "load_pct" not in cpu_shares({"cpu_total_s": 2.0, "cpu_busy_s": 1.0})


def test_no_share_exceeds_100_percent() -> None:
    rise = {"cpu_total_s": 0.3, "cpu_busy_s": 0.1 + 0.2, "own_cpu_s": 0.0}
    assert cpu_shares(rise) == {"cpu_pct": 100.0, "load_pct": 100.0}


def test_for_kernel_served_drives_only_time_in_programs_is_compared() -> None:
    rise = {"cpu_total_s": 10.0, "cpu_busy_s": 9.0, "cpu_user_s": 3.0, "own_user_s": 2.0}
    assert cpu_shares(rise) == {"cpu_pct": 90.0, "load_pct": 10.0}


def test_a_rarely_read_counter_is_not_missed() -> None:
    samples = [{"at_s": t, "thermal_1_transitions": value} for t, value in ((100.0, 5.0), (110.0, 5.0), (120.0, 6.0))]
    assert summarise(samples, 112.0, 113.0)["thermal_1_transitions"] == 1, "it may have risen in any second till 120"
    assert summarise(samples, 101.0, 102.0)["thermal_1_transitions"] == 0
    assert "thermal_1_transitions" not in summarise(samples, 130.0, 131.0)


def test_a_distant_sample_does_not_belong_to_a_cell() -> None:
    samples = [{"at_s": 0.0, "temperature_c": 90.0, "media_errors": 0.0}, {"at_s": 1000.0, "temperature_c": 30.0},
               {"at_s": 2000.0, "temperature_c": 90.0, "media_errors": 7.0}]  # fmt: skip
    summary = summarise(samples, 999.0, 1001.0)
    assert (summary["temperature_min_c"], summary["temperature_max_c"]) == (30.0, 30.0)
    assert "media_errors" not in summary


def test_a_reset_counter_has_no_rise() -> None:
    samples = [{"at_s": 100.0, "sectors_written": 900.0}, {"at_s": 101.0, "sectors_written": 3.0}]
    assert summarise(samples, 100.0, 101.0) == {}


def test_power_comes_from_the_meter_or_the_drive() -> None:
    own = [{"at_s": 100.0 + t, "drive_power_w": 5.0} for t in range(11)]
    meter = [{"at_s": 100.0 + t, "meter_power_w": 6.0 + t % 2} for t in range(11)]
    assert summarise(own, 100.0, 110.0) == {"power_w": 5.0, "energy_j": 50.0}
    assert summarise([*own, *meter], 101.0, 110.0)["power_w"] == 6.5
    assert summarise([*own, *meter], 101.0, 110.0)["energy_j"] == pytest.approx(58.5)


def test_host_power_comes_from_its_meter_or_the_processors() -> None:
    energy = [{"at_s": 100.0 + t, "processor_energy_j": 30.0 * t} for t in range(11)]
    assert summarise(energy, 100.0, 110.0)["host_power_w"] == pytest.approx(30.0)
    assert summarise([*energy, {"at_s": 105.0, "host_power_w": 200.0}], 100.0, 110.0)["host_power_w"] == 200.0


def test_no_samples_give_an_empty_summary() -> None:
    assert summarise([], 0.0, 1.0) == {}


times = st.lists(st.floats(0, 1000), min_size=1, max_size=40, unique=True)


@given(times, st.floats(0, 1000), st.floats(0, 200), st.randoms())
def test_any_order_of_samples_gives_the_same(at: list[float], start_s: float, length_s: float, random: object) -> None:
    samples = [{"at_s": t, "temperature_c": t % 7, "media_errors": t} for t in at]
    shuffled = list(samples)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    wanted = Timeline(sorted(samples, key=lambda one: one["at_s"])).summarise(start_s, start_s + length_s)
    assert Timeline(shuffled).summarise(start_s, start_s + length_s) == pytest.approx(wanted)


@given(times, st.floats(0, 1000), st.floats(0, 200))
def test_every_sample_inside_counts_and_none_far_outside(at: list[float], start_s: float, length_s: float) -> None:
    end_s = start_s + length_s
    times, _ = Timeline({"at_s": t, "x": t} for t in at).around("x", start_s, end_s)
    assert {t for t in at if start_s <= t <= end_s} <= set(times)
    assert all(start_s - 15 <= t <= end_s + 15 for t in times)
    assert len([t for t in times if t < start_s]) <= 1
    assert len([t for t in times if t > end_s]) <= 1


@given(st.lists(st.floats(0, 5), min_size=2, max_size=30), st.integers(1, 28))
def test_the_rises_of_successive_cells_add_up(steps: list[float], cut: int) -> None:
    total, samples = 0.0, []
    for second, step in enumerate(steps):
        total += step
        samples.append({"at_s": float(second), "media_errors": total})
    timeline, last, cut = Timeline(samples), float(len(steps) - 1), min(cut, len(steps) - 1)
    whole = timeline.rise("media_errors", 0.0, last)
    parts = [timeline.rise("media_errors", a, b) for a, b in ((0.0, float(cut)), (float(cut), last)) if a < b]
    assert sum(part or 0.0 for part in parts) == pytest.approx(whole)


def test_an_array_in_another_state_between_two_readings() -> None:
    samples = [{"at_s": 10.0 * n, "array_other": value} for n, value in enumerate((0.0, 0.0, 1.0, 1.0))]
    assert [summarise(samples, begin, begin + 5)["array_other"] for begin in (1.0, 11.0, 21.0)] == [0.0, 1.0, 1.0]
