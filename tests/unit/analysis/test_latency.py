from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.analysis.values.latency_values import merge_bins, percentiles_us
from drivelab.fio.document import documents, from_document

DATA = Path(__file__).parents[1] / "fio/data"


def frame(*rows: tuple[str, int, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["direction", "latency_ns", "count"])


def test_bins_of_both_directions_add_up() -> None:
    bins = frame(("read", 2000, 3), ("read", 1000, 1), ("write", 2000, 4))
    merged = merge_bins(bins)
    assert merged.to_dict("list") == {"latency_ns": [1000, 2000], "count": [1, 7]}
    by_direction = merge_bins(bins, ["direction"])
    assert by_direction["count"].tolist() == [1, 3, 4]


def test_percentiles_are_of_all_ios_and_not_averaged() -> None:
    """99 % of the reads take 1 us, the writes 1 ms: the average of both p99 is not a percentile."""
    bins = frame(("read", 1000, 990), ("read", 5000, 10), ("write", 1_000_000, 10))
    assert percentiles_us(bins, [50, 99, 100]).tolist() == [1.0, 5.0, 1000.0]


@pytest.mark.parametrize(("name", "direction"), [("mix", "read"), ("mix", "write"), ("soak", "write")])
def test_percentiles_count_as_fio_does(name: str, direction: str) -> None:
    """Percentages that are a whole number of I/Os are left out: rounding in fio makes 99.9 % of 3000 more than 2997,
    and 99.99 % of 10000 less than 9999."""
    *_, last = documents((DATA / name / "fio.json").read_text())
    latency = last["jobs"][0][direction]["lat_ns"]
    bins = frame(*((direction, int(key), count) for key, count in latency["bins"].items()))
    compared = 0
    for percent, printed_ns in latency["percentile"].items():
        needed = float(percent) / 100 * latency["N"]
        if abs(needed - round(needed)) > 1e-6:
            assert round(percentiles_us(bins, [float(percent)])[0] * 1000) == printed_ns
            compared += 1
    assert compared >= 2


def test_a_whole_number_of_ios_is_not_rounded_up() -> None:
    bins = frame(("read", 1000, 999), ("read", 2000, 1))
    assert percentiles_us(bins, [99.9])[0] == 1.0


@given(st.dictionaries(st.integers(1, 10**6), st.integers(1, 10**6), min_size=1), st.floats(0.01, 100))
def test_a_percentile_is_the_first_bin_that_reaches_it(bins: dict[int, int], percent: float) -> None:
    table = frame(*(("read", key, count) for key, count in bins.items()))
    result = round(percentiles_us(table, [percent])[0] * 1000)
    total = sum(bins.values())
    at_most = sum(count for key, count in bins.items() if key <= result)
    below = sum(count for key, count in bins.items() if key < result)
    assert at_most >= percent / 100 * total * (1 - 1e-9)
    assert below < percent / 100 * total


def test_the_measuring_process_counts_the_same_way() -> None:
    *_, last = documents((DATA / "mix/fio.json").read_text())
    result = from_document(last)
    table = frame(*(("read", k, n) for k, n in result.read.bins.items()),
                  *(("write", k, n) for k, n in result.write.bins.items()))  # fmt: skip
    percents = [0.1, 1, 50, 90, 99, 99.9, 99.99, 99.999, 100]
    expected = percentiles_us(table, percents).clip(max=result.max_latency_us)
    assert expected.tolist() == list(result.percentiles_us(*percents))


def test_percentiles_without_ios_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one I/O"):
        percentiles_us(frame(), [99])
