from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import cell, key, table

from drivelab.analysis.values.latency_values import latency_heat, tail_contribution, timed_bins

HISTOGRAMS = st.dictionaries(st.integers(1, 10**9), st.integers(1, 10**6), min_size=1, max_size=40)


def frame(counts: dict[int, int]) -> pd.DataFrame:
    return pd.DataFrame({"latency_ns": list(counts), "count": list(counts.values())}, dtype="int64")


def test_one_in_ten_thousand_takes_half_of_the_time() -> None:
    tail = tail_contribution(frame({100_000: 9_999, 999_900_000: 1}))
    assert tail["percentile"].tolist() == pytest.approx([0, 99.99])
    assert tail["share_of_ios"].tolist() == pytest.approx([1, 1e-4])
    assert tail["share_of_time"].tolist() == pytest.approx([1, 0.5])


@settings(max_examples=50, deadline=None)
@given(HISTOGRAMS)
def test_the_time_share_of_the_tail_exceeds_its_io_share(counts: dict[int, int]) -> None:
    tail = tail_contribution(frame(counts))
    assert len(tail) == len(counts)
    assert (tail["share_of_time"] >= tail["share_of_ios"] * (1 - 1e-12)).all()
    assert (np.diff(tail["share_of_time"]) < 0).all()
    assert (np.diff(tail["percentile"]) >= 0).all()


@settings(max_examples=50, deadline=None)
@given(HISTOGRAMS)
def test_the_tail_equals_that_of_a_list_of_all_ios(counts: dict[int, int]) -> None:
    tail = tail_contribution(frame(counts))
    ordered = sorted(counts.items())
    whole = sum(latency * count for latency, count in ordered)
    for place, row in enumerate(tail.itertuples()):
        above = ordered[place:]
        assert row.share_of_ios == pytest.approx(sum(count for _, count in above) / sum(counts.values()))
        assert row.share_of_time == pytest.approx(sum(latency * count for latency, count in above) / whole)


def test_no_ios_give_no_tail_and_zero_latencies_share_time_evenly() -> None:
    assert tail_contribution(frame({})).empty
    assert tail_contribution(frame({0: 4}))["share_of_time"].tolist() == [1.0]


def test_the_heat_map_counts_each_io_once_in_its_cell() -> None:
    bins = pd.DataFrame(
        [(0.0, 1.0, 100_000, 5), (0.0, 1.0, 100_100, 2), (0.0, 1.0, 1_000_000, 1), (1.0, 2.0, 100_000, 7),
         (1.0, 2.0, 0, 3), (1.0, 2.0, 50_000, 0)],
        columns=["begin_s", "end_s", "latency_ns", "count"],
    )  # fmt: skip
    heat = latency_heat(bins, bins_per_decade=10)
    assert heat[["begin_s", "count"]].values.tolist() == [[0, 7], [0, 1], [1, 3], [1, 7]]
    assert heat["low_us"].tolist() == pytest.approx([100, 1000, 0.001, 100])
    assert (heat["high_us"] / heat["low_us"]).tolist() == pytest.approx([10**0.1] * 4)
    assert latency_heat(bins.head(0)).empty


@settings(max_examples=50, deadline=None)
@given(HISTOGRAMS)
def test_the_heat_map_loses_nothing(counts: dict[int, int]) -> None:
    heat = latency_heat(frame(counts).assign(begin_s=0.0, end_s=1.0))
    assert heat["count"].sum() == sum(counts.values())
    lowest, highest = min(counts) / 1000, max(counts) / 1000
    assert heat["low_us"].min() <= lowest * (1 + 1e-9)
    assert heat["high_us"].max() > highest * (1 - 1e-9)


def test_bins_get_the_time_of_their_slice() -> None:
    where = {**key(), "kind": "soak", "step": 2, "cell": 0}
    cells = table("cells", [{**where, **cell(100.0), "round": n, "elapsed_s": 5.0 * n, "runtime_s": 5.0}
                            for n in (1, 2)])  # fmt: skip
    bins = table("latency_bins", [{**where, "round": n, "latency_ns": 1000, "count": n} for n in (1, 2, 3)])
    timed = timed_bins(bins, cells)
    assert timed[["begin_s", "end_s", "count"]].values.tolist() == [[5, 10, 1], [10, 15, 2]]
