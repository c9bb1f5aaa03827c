from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from drivelab.analysis.values.latency_values import nines


def bins(*pairs: tuple[int, int]) -> pd.DataFrame:
    return pd.DataFrame(pairs, columns=["latency_ns", "count"])


# directions and rounds that share a bin add up
ALL = bins((100_000, 50_000), (100_000, 40_000), (200_000, 9_000), (300_000, 900), (400_000, 90), (900_000, 10))


def test_the_nines() -> None:
    result = nines(ALL)
    assert result["quantile_pct"].tolist() == [50, 90, 99, 99.9, 99.99, 99.999]
    assert result["latency_us"].tolist() == [100, 100, 200, 300, 400, 900]
    assert result["ios_above"].tolist() == pytest.approx([50_000, 10_000, 1_000, 100, 10, 1])


def test_intervals_of_the_nines_are_exact_or_have_no_upper_bound() -> None:
    result = nines(ALL).set_index("quantile_pct")
    half = 1 / 128
    assert result.loc[99.999, "low_us"] == pytest.approx(900 * (1 - half))  # the ten slowest are equal
    assert np.isnan(result.loc[99.999, "high_us"])
    assert result.loc[50, ["low_us", "high_us"]].tolist() == pytest.approx([100 * (1 - half), 100 * (1 + half)])
    random, covered = np.random.default_rng(0), []
    for _ in range(300):
        drawn = np.bincount(np.ceil(random.exponential(1000, 2000)).astype(int))
        row = nines(bins(*((number * 1000, int(ios)) for number, ios in enumerate(drawn) if ios))).iloc[2]
        covered.append(row["low_us"] <= 1000 * math.log(100) <= row["high_us"])
    assert np.mean(covered) > 0.93


@pytest.mark.parametrize(("ios", "deepest"), [(1, 50), (9, 50), (10, 90), (34_362, 99.99), (10**6, 99.9999)])
def test_a_quantile_needs_an_io_above_it(ios: int, deepest: float) -> None:
    assert nines(bins((100_000, ios)))["quantile_pct"].iloc[-1] == deepest


def test_without_ios_there_are_no_nines() -> None:
    with pytest.raises(ValueError, match="at least one I/O"):
        nines(bins())
