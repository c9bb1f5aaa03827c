"""Changes of level: the rate of false alarms and the power are what docs/trend.md says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from drivelab.analysis.change_points import Design, changes, first_change, scatter, shift

ALPHA = 0.05


def dates(count: int) -> Design:
    return Design(tuple(range(count)), (0,) * count, by_point=True)


ONE_DRIVE = dates(20)
UNBALANCED = Design(
    tuple(date for date in range(12) for _ in range(2)),
    tuple((date + second) % 3 for date in range(12) for second in range(2)),
    by_point=True,
)
FIRMWARES = Design(tuple(firmware for firmware in range(4) for _ in range(4)), (0,) * 16, by_point=False)


@pytest.mark.parametrize("design", [ONE_DRIVE, UNBALANCED, FIRMWARES], ids=["dates", "three drives", "firmwares"])
def test_series_without_a_change_rarely_show_one(design: Design) -> None:
    generator = np.random.default_rng(7)
    drives = np.array([0, 0.1, -0.1])[list(design.drives)]
    number = 400
    alarms = [bool(changes((generator.normal(0, 0.02, len(drives)) + drives).tolist(), design, ALPHA))
              for _ in range(number)]  # fmt: skip
    error = math.sqrt(ALPHA * (1 - ALPHA) / number)
    assert ALPHA - 4 * error < np.mean(alarms) < ALPHA + 3 * error


def test_a_step_of_5_percent_in_20_recordings_is_found_where_it_is() -> None:
    generator = np.random.default_rng(8)
    step = np.where(np.arange(20) < 10, 0.0, math.log(0.95))
    number, places, covered = 150, [], []
    for _ in range(number):
        found = changes((generator.normal(0, 0.02, 20) + step).tolist(), ONE_DRIVE, ALPHA)
        places += [change.point for change in found[:1]]
        covered += [found[0].shift.low <= math.log(0.95) <= found[0].shift.high] if found else []
    assert len(places) >= 0.97 * number
    assert np.mean(np.abs(np.array(places) - 10) <= 1) > 0.8
    assert np.mean(covered) > 0.85, "a little below 95 %, as the place is chosen"


@pytest.mark.parametrize(("drives", "firmwares"), [(3, 2), (4, 2), (3, 4)])
def test_a_shift_of_several_drives_covers_the_true_one(drives: int, firmwares: int) -> None:
    design = Design(tuple(np.repeat(range(firmwares), drives).tolist()), (*range(drives),) * firmwares, by_point=False)
    generator = np.random.default_rng(11)
    sides, covered = ((0, firmwares // 2), (firmwares // 2, firmwares)), []
    for _ in range(500):
        logs = generator.normal(0, 0.01, len(design.points)) + np.tile(generator.normal(0, 0.2, drives), firmwares)
        found = shift(logs.tolist(), design, *sides, ALPHA)
        covered.append(found.low < 0 < found.high)
    assert 0.92 < np.mean(covered) < 0.99


def test_two_steps_are_two_changes() -> None:
    generator = np.random.default_rng(9)
    logs = generator.normal(0, 0.01, 30) + np.repeat([0.0, -0.1, 0.02], 10)
    assert [change.point for change in changes(logs.tolist(), dates(30), ALPHA)] == [10, 20]


def test_what_cannot_be_searched_is_not() -> None:
    assert first_change([0.0, 0.0, 0.0, 1.0, 1.0], dates(5)) is None, "no three values on both sides"
    assert first_change([0.5] * 8, dates(8)) == (3, 1.0), "equal values, as on the virtual clock"
    point, p = first_change([0.0] * 4 + [0.1] * 4, dates(8)) or (0, 1.0)
    assert (point, p) == (4, 1 / 10_000)
    assert first_change([0.0] * 3 + [9.0] * 3, Design((0,) * 3 + (1,) * 3, (0, 0, 0, 1, 1, 1), by_point=False)) == (
        1, 1.0), "the drive changed with the point"  # fmt: skip


def test_scatter_and_shift_are_those_of_the_t_distribution() -> None:
    logs = [0.00, 0.02, 0.01, 0.03, 1.00, 1.02, 1.01, 1.03]
    between = shift(logs, dates(8), (0, 4), (4, 8), ALPHA)
    assert between.log == pytest.approx(1)
    assert between.high - 1 == pytest.approx(2.4469 * math.sqrt(2 * 5e-4 / 3 / 4), rel=1e-3)
    assert scatter(logs, dates(8), [0, 4, 8]) == pytest.approx(2.4469 * math.sqrt(2 * 5e-4 * 2 / 6), rel=1e-3)
    assert scatter(logs[:3], dates(3), [0, 3]) is None
