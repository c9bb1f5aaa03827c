"""Inference from recordings: known truth by simulation, and the closed forms of the literature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from drivelab.analysis.deltas.inference import interval, p_values
from drivelab.analysis.deltas.power import recordings_needed
from drivelab.analysis.deltas.recordings import Ratios, ratios, shrunk, spread


def test_a_single_cell_is_tested_as_by_welch() -> None:
    random = np.random.default_rng(1)
    basis, comparison = random.normal(0, 1, (1, 3)), random.normal(0, 3, (1, 5))
    result = ratios(basis, comparison)
    reference = stats.ttest_ind(comparison[0], basis[0], equal_var=False)
    assert p_values(result, 0.05).difference == pytest.approx([reference.pvalue])
    low, high = interval(result, np.array([0.05]))
    assert (low[0], high[0]) == pytest.approx(tuple(reference.confidence_interval(0.95)))


def test_variances_that_differ_by_chance_are_shrunk_to_about_one() -> None:
    drawn = np.random.default_rng(2).chisquare(4, 2000) / 4
    together, freedom = shrunk(drawn, 4)
    assert together.std() < 0.3 * drawn.std()
    assert together.mean() == pytest.approx(1, abs=0.05)
    assert freedom[0] > 12


def test_variances_that_truly_differ_are_shrunk_little() -> None:
    """Drawn from Smyth's prior with 4 degrees of freedom around 2, which the estimate must find."""
    random = np.random.default_rng(3)
    true = 2 * 4 / random.chisquare(4, 5000)
    drawn = true * random.chisquare(6, 5000) / 6
    together, freedom = shrunk(drawn, 6)
    assert freedom[0] == pytest.approx(6 + 4 / 4, rel=0.05)
    assert together == pytest.approx((4 * 2 + 6 * drawn) / 10, rel=0.05)


def test_the_effect_of_a_recording_is_told_from_the_rest() -> None:
    random = np.random.default_rng(4)
    shared, rest = [], []
    for _ in range(400):
        parts = spread(random.normal(0, 0.03, 5) + random.normal(0, 0.01, (20, 5)))
        shared.append(parts.shared)
        rest.append(parts.rest.mean())
    assert math.sqrt(np.mean(shared)) == pytest.approx(0.03, rel=0.05)
    assert math.sqrt(np.mean(rest)) == pytest.approx(0.01, rel=0.06)


@pytest.mark.parametrize("recordings", [3, 6])
@pytest.mark.parametrize(("shared", "rest", "unequal"), [(0, 3, 1), (3, 0.3, 1), (2, 2, 1), (2, 2, 0.2)])
def test_intervals_cover_the_true_ratio(recordings: int, shared: float, rest: float, unequal: float) -> None:
    """Percent between recordings, for all cells alike and for each alone; the second drive's, in those of the first."""
    random, true, studies, cells = np.random.default_rng(5), math.log(1.3), 600, 12
    covered, false_calls = [], []
    for _ in range(studies):
        sides = [
            level
            + scale * (random.normal(0, shared / 100, recordings) + random.normal(0, rest / 100, (cells, recordings)))
            for level, scale in ((0.0, 1.0), (true, unequal))
        ]
        low, high = interval(ratios(*sides), np.full(cells, 0.05))
        covered.append(((low <= true) & (true <= high)).mean())
        none = ratios(sides[0], sides[1] - true)
        false_calls.append((stats.false_discovery_control(p_values(none, 0.05).difference) <= 0.05).any())
    error = 2.5 * np.std(covered) / math.sqrt(studies)
    assert 0.93 - error <= np.mean(covered) <= 0.97 + error
    assert np.mean(false_calls) <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / studies)


def test_ten_percent_are_found_with_three_recordings_a_side() -> None:
    """The power of the shipped studies: 3 % between recordings."""
    random, found = np.random.default_rng(6), []
    for _ in range(150):
        sides = [random.normal(level, 0.03, (20, 3)) for level in (0.0, math.log(1.1))]
        found.append((p_values(ratios(*sides), 0.05).difference <= 0.05).mean())
    assert np.mean(found) >= 0.8


def test_the_recordings_needed_decide_in_four_of_five_studies() -> None:
    one = Ratios(np.array([math.log(1.07)]), np.array([0.05 * math.sqrt(2 / 3)]), np.array([4.0]), np.zeros(1))
    (needed,) = recordings_needed(one, np.array([3.0]), math.log(1.05), 0.05)
    random, found = np.random.default_rng(7), []
    for _ in range(2000):
        sides = (random.normal(level, 0.05, (1, int(needed))) for level in (0.0, math.log(1.07)))
        found.append(p_values(ratios(*sides), 0.05).difference[0] <= 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


def test_the_scatter_of_log_variances_is_a_trigamma() -> None:
    """The fact that the shrinking rests on."""
    random = np.random.default_rng(8)
    logs = np.log(random.chisquare(4, 200_000))
    assert logs.var() == pytest.approx(float(special.polygamma(1, 2)), rel=0.02)


def test_what_shifts_a_whole_block_cancels_in_pairs() -> None:
    """The room warms by 20 % from run to run; the drives differ by 10 %."""
    random, covered, widths = np.random.default_rng(9), [], {True: [], False: []}
    for _ in range(100):
        block = np.array([0.0, 0.2, 0.4]) + random.normal(0, 0.01, 3)
        basis, comparison = (block + random.normal(0, 0.01, (8, 3)) for _ in range(2))
        for paired, found in widths.items():
            low, high = interval(ratios(basis, comparison + math.log(1.1), paired=paired), np.full(8, 0.05))
            found.append((high - low).mean())
            if paired:
                covered.append(((low < math.log(1.1)) & (math.log(1.1) < high)).mean())
    assert 0.93 < np.mean(covered) < 0.99
    assert np.mean(widths[True]) < 0.1 * np.mean(widths[False])
