from __future__ import annotations

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


@pytest.mark.parametrize(("ios", "deepest"), [(1, 50), (9, 50), (10, 90), (34_362, 99.99), (10**6, 99.9999)])
def test_a_quantile_needs_an_io_above_it(ios: int, deepest: float) -> None:
    assert nines(bins((100_000, ios)))["quantile_pct"].iloc[-1] == deepest


def test_without_ios_there_are_no_nines() -> None:
    with pytest.raises(ValueError, match="at least one I/O"):
        nines(bins())
