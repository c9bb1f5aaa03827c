"""Inference from recordings: known truth by simulation, and the closed forms of the literature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from drivelab.analysis.deltas.inference import interval, p_values
from drivelab.analysis.deltas.power import recordings_needed
from drivelab.analysis.deltas.recordings import FEWEST_BLOCKS, Ratios, ratios

ALIKE = np.zeros(100, dtype=int)


def test_a_single_cell_is_tested_as_by_welch() -> None:
    random = np.random.default_rng(1)
    basis, comparison = random.normal(0, 1, (1, 3)), random.normal(0, 3, (1, 5))
    result = ratios(basis, comparison, ALIKE[:1])
    reference = stats.ttest_ind(comparison[0], basis[0], equal_var=False)
    assert p_values(result, 0.05).difference == pytest.approx([reference.pvalue])
    low, high = interval(result, np.array([0.05]))
    assert (low[0], high[0]) == pytest.approx(tuple(reference.confidence_interval(0.95)))


@pytest.mark.parametrize("recordings", [3, 4, 5, 9])
def test_cells_unlike_any_other_are_tested_as_by_welch(recordings: int) -> None:
    random = np.random.default_rng(2)
    basis, comparison = random.normal(0, 1, (2, 12, recordings))
    result = ratios(basis, comparison, np.arange(12))
    reference = stats.ttest_ind(comparison, basis, axis=1, equal_var=False)
    assert p_values(result, 0.05).difference == pytest.approx(reference.pvalue)


def test_like_cells_help_each_other_at_three_recordings_only() -> None:
    """Cells 0 to 7 are alike and scatter alike; there are too few of the others."""
    random = np.random.default_rng(3)
    basis, comparison = random.normal(0, 0.02, (2, 12, 4))
    alike = np.array([0] * 8 + [1] * 4)
    three, four = (ratios(basis[:, :n], comparison[:, :n], alike) for n in (3, 4))
    alone, alone_of_four = (ratios(basis[:, :n], comparison[:, :n], np.arange(12)) for n in (3, 4))
    assert three.errors[8:] == pytest.approx(alone.errors[8:])
    helped = three.errors[:8] != alone.errors[:8]
    assert helped.sum() >= 5
    assert three.freedom[:8][helped].min() > 4
    assert four.errors == pytest.approx(alone_of_four.errors)


def test_a_noisy_cell_is_left_alone() -> None:
    random = np.random.default_rng(4)
    scatter = np.array([0.05, *[0.005] * 7])[:, None]
    for _ in range(50):
        sides = scatter * random.normal(size=(2, 8, 3))
        assert ratios(*sides, ALIKE[:8]).errors[0] == pytest.approx(ratios(*sides, np.arange(8)).errors[0])


def test_a_recording_that_moves_half_of_the_like_cells_is_covered() -> None:
    """Its effect less the mean over the cells scatters in all of them alike, so their variances do not tell."""
    random, studies = np.random.default_rng(11), 500
    moved, covered = np.repeat([1.0, 0.0], 5), np.zeros(10)
    for _ in range(studies):
        sides = moved[:, None] * random.normal(0, 0.03, (2, 1, 3)) + random.normal(0, 0.005, (2, 10, 3))
        low, high = interval(ratios(*sides, ALIKE[:10]), np.full(10, 0.05))
        covered += (low <= 0) & (high >= 0)
    assert covered[:5].mean() / studies > 0.93
    assert covered[5:].mean() / studies > 0.93


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
        low, high = interval(ratios(*sides, ALIKE[:cells]), np.full(cells, 0.05))
        covered.append(((low <= true) & (true <= high)).mean())
        none = ratios(sides[0], sides[1] - true, ALIKE[:cells])
        false_calls.append((stats.false_discovery_control(p_values(none, 0.05).difference) <= 0.05).any())
    error = 2.5 * np.std(covered) / math.sqrt(studies)
    assert 0.93 - error <= np.mean(covered) <= 0.97 + error
    assert np.mean(false_calls) <= 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / studies)


def test_ten_percent_are_found_with_three_recordings_a_side() -> None:
    """The power of the shipped studies: 3 % between recordings."""
    random, found = np.random.default_rng(6), []
    for _ in range(150):
        sides = [random.normal(level, 0.03, (20, 3)) for level in (0.0, math.log(1.1))]
        found.append((p_values(ratios(*sides, ALIKE[: len(sides[0])]), 0.05).difference <= 0.05).mean())
    assert np.mean(found) >= 0.8


def test_the_recordings_needed_decide_in_four_of_five_studies() -> None:
    one = Ratios(np.array([math.log(1.07)]), np.array([0.05 * math.sqrt(2 / 3)]), np.array([4.0]), np.zeros(1))
    (needed,) = recordings_needed(one, np.array([3.0]), math.log(1.05), 0.05)
    random, found = np.random.default_rng(7), []
    for _ in range(2000):
        sides = [random.normal(level, 0.05, (1, int(needed))) for level in (0.0, math.log(1.07))]
        found.append(p_values(ratios(*sides, ALIKE[: len(sides[0])]), 0.05).difference[0] <= 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.04)


def test_what_shifts_a_whole_block_cancels_in_pairs() -> None:
    """The room warms by 20 % from run to run; the drives differ by 10 %."""
    random, covered, widths = np.random.default_rng(9), [], {True: [], False: []}
    for _ in range(100):
        block = np.linspace(0.0, 0.4, FEWEST_BLOCKS) + random.normal(0, 0.01, FEWEST_BLOCKS)
        basis, comparison = block + random.normal(0, 0.01, (2, 8, FEWEST_BLOCKS))
        for paired, found in widths.items():
            low, high = interval(ratios(basis, comparison + math.log(1.1), ALIKE[:8], paired=paired), np.full(8, 0.05))
            found.append((high - low).mean())
            if paired:
                covered.append(((low < math.log(1.1)) & (math.log(1.1) < high)).mean())
    assert 0.93 < np.mean(covered) < 0.99
    assert np.mean(widths[True]) < 0.1 * np.mean(widths[False])
