from __future__ import annotations

from typing import Any

import pytest

from drivelab.criteria.taint import DEFAULT
from drivelab.watch.rates import Point, Rates

ZERO = dict.fromkeys(("reads", "writes", "sectors_read", "sectors_written", "read_ms", "write_ms"), 0.0)


def sample(at_s: float, **fields: float) -> dict[str, float]:
    return {"at_s": at_s, **ZERO, **fields}


def points(*samples: dict[str, Any]) -> list[Point]:
    rates = Rates(DEFAULT)
    return [point for sample in samples if (point := rates.add(sample)) is not None]


def test_rates_are_differences_over_the_time_between() -> None:
    (point,) = points(
        sample(100.0, reads=5),
        sample(102.0, reads=1005, writes=3000, sectors_read=8000, sectors_written=24000, read_ms=500, write_ms=7500),
    )
    assert point.iops == 2000
    assert point.bandwidth_mib_s == pytest.approx(32000 * 512 / 2 / 2**20)
    assert point.latency_us == pytest.approx(2000)


def test_samples_at_the_edges_of_cells_make_no_points() -> None:
    between = points(sample(0.0), sample(0.4, writes=400), sample(0.41, writes=400), sample(1.0, writes=1000),
                   sample(1.01, writes=1000), sample(2.0, writes=3000))  # fmt: skip
    assert [point.iops for point in between] == [1000, 2000]


def test_reset_counters_make_no_point() -> None:
    between = points(sample(0.0, writes=5000), sample(1.0, writes=10), sample(2.0, writes=110))
    assert [point.iops for point in between] == [100]


def test_two_runs_of_the_sampler_share_no_point() -> None:
    rates = Rates(DEFAULT)
    rates.add(sample(0.0))
    rates.restart()
    assert rates.add(sample(60.0, writes=60_000)) is None
    point = rates.add(sample(61.0, writes=60_500))
    assert point is not None
    assert point.iops == 500


def test_samples_of_slow_sources_and_older_recordings_make_no_point() -> None:
    old = {"cpu_total_s": 1.0, "sectors_written": 5.0}
    assert points({"at_s": 0.0, **old}, {"at_s": 1.0, **old}, {"at_s": 2.0, "temperature_c": 40.0}) == []


@pytest.mark.parametrize(
    ("first", "second", "slow", "reason"),
    [
        ({"cpu_total_s": 0, "cpu_steal_s": 0}, {"cpu_total_s": 2, "cpu_steal_s": 0.2}, {}, "steal: 10 %"),
        ({"cpu_total_s": 0, "cpu_busy_s": 0, "own_cpu_s": 0},
         {"cpu_total_s": 2, "cpu_busy_s": 1.2, "own_cpu_s": 0.2}, {}, "load: others used 50 %"),
        ({}, {}, {"temperature_c": 80.0, "temperature_limit_c": 80.0}, "throttled: the drive reached 80 °C"),
    ],
)  # fmt: skip
def test_a_disturbed_second_is_marked(first: Any, second: Any, slow: Any, reason: str) -> None:
    rates = Rates(DEFAULT)
    rates.add({"at_s": 0.0, **slow})
    rates.add(sample(0.1, **first))
    assert rates.add(sample(1.1, **second)) is not None
    assert rates.taints[0].startswith(reason)
