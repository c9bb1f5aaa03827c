"""Levels of repeated looks: they spend the error as said, by simulation of growing sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from drivelab.criteria.repeats import look_level


@pytest.mark.parametrize(("least", "most"), [(3, 4), (3, 9), (5, 20)])
def test_looks_together_spend_the_error_as_planned(least: int, most: int) -> None:
    sums = np.random.default_rng(most).normal(size=(400_000, most)).cumsum(axis=1)
    crossed = np.zeros(len(sums), dtype=bool)
    for runs in range(least, most + 1):
        limit = stats.norm.isf(look_level(0.05, least, most, runs) / 2)
        crossed |= np.abs(sums[:, runs - 1]) / np.sqrt(runs) > limit
        assert crossed.mean() == pytest.approx(0.05 * (runs / most) ** 2, abs=0.0012)


def test_a_single_look_has_the_whole_level_and_later_looks_more_than_earlier() -> None:
    assert look_level(0.05, 9, 9, 9) == pytest.approx(0.05)
    levels = [look_level(0.05, 3, 9, runs) for runs in range(3, 10)]
    assert levels == sorted(levels)
    assert levels[0] == pytest.approx(0.05 / 9)


@pytest.mark.parametrize("runs", [2, 10])
def test_a_look_outside_the_plan_has_no_level(runs: int) -> None:
    with pytest.raises(ValueError, match="no level"):
        look_level(0.05, 3, 9, runs)
