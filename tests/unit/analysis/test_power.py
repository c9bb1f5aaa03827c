"""The planned power is the power that a t-test has, by simulation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from drivelab.analysis.deltas.power import POWER, detectable, recordings_for, scatter_of


@pytest.mark.parametrize("recordings", [3, 5, 9])
def test_a_detectable_difference_is_shown_in_four_of_five_studies(recordings: int) -> None:
    random, scatter = np.random.default_rng(recordings), 0.03
    shape = (recordings, 20_000)
    basis = random.normal(0.0, scatter, shape)
    comparison = random.normal(detectable(scatter, recordings, 0.05), scatter, shape)
    shown = stats.ttest_ind(comparison, basis).pvalue <= 0.05
    assert shown.mean() == pytest.approx(POWER, abs=0.03)


def test_as_many_recordings_as_a_difference_needs_show_it() -> None:
    for difference in (0.03, 0.05, 0.1, 0.2):
        needed = recordings_for(0.03, difference, 0.05)
        assert needed is not None
        assert detectable(0.03, needed, 0.05) <= difference
        assert needed == 3 or detectable(0.03, needed - 1, 0.05) > difference
    assert recordings_for(0.03, 0.001, 0.05) is None


def test_the_scatter_is_pooled_over_all_values_with_several_recordings() -> None:
    random = np.random.default_rng(1)
    samples = [np.exp(random.normal(7.0, 0.02, 3)) for _ in range(2000)]
    summary = pd.DataFrame({"scope": "recordings", "metric": "iops", "samples": samples})
    alone = pd.DataFrame({"scope": "rounds", "metric": "iops", "samples": [[1.0, 2.0, 3.0]]})
    tail = pd.DataFrame({"scope": "recordings", "metric": "p9999_latency_us", "samples": [[1.0, 2.0, 3.0]] * 500})
    scatter = scatter_of(pd.concat([summary, alone, tail]))
    assert scatter == pytest.approx(0.02, rel=0.05)
    assert scatter_of(alone) is None
    assert math.isclose(scatter_of(summary), scatter)
