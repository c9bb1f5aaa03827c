from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from drivelab.analysis.values.saturation_values import find_cliff, post_saturation

MIB = 1 << 20


def soak(iops: Sequence[float], slice_s: float | Sequence[float] = 1.0) -> pd.DataFrame:
    """Return slices of random 4 KiB writes."""
    table = pd.DataFrame({"iops": np.asarray(iops, dtype=float)})
    table["runtime_s"] = slice_s
    table["elapsed_s"] = 10 + table["runtime_s"].cumsum() - table["runtime_s"]
    table["write_ios"] = (table["iops"] * table["runtime_s"]).round().astype(int)
    table["read_ios"] = 0
    table["bandwidth_mib_s"] = table["iops"] * 4096 / MIB
    table["mean_latency_us"] = 16 / table["iops"].replace(0, np.nan) * 1e6
    table["bytes_written"] = table["write_ios"] * 4096
    table["bytes_written_total"] = table["bytes_written"].cumsum()
    return table


@pytest.mark.parametrize("iops", [[1000] * 20, [1000, 1100] * 10, [500] * 10 + [1000] * 10, [1000], []])
def test_without_a_fall_there_is_no_cliff(iops: list[float]) -> None:
    assert find_cliff(soak(iops), capacity_bytes=MIB) is None


@pytest.mark.parametrize(("total", "most"), [(0.1, 0.0), (0.3, 0.3)])
def test_a_random_walk_has_a_cliff_only_if_it_ends_lower(total: float, most: float) -> None:
    """With a total of 0.3, 23 % of the walks end lower by a factor of 1.25: a permanent fall without a step."""
    random = np.random.default_rng(3)
    walks = [np.exp(random.normal(0, total / np.sqrt(500), 500).cumsum()) for _ in range(60)]
    result = [find_cliff(soak(2000 * walk), capacity_bytes=MIB) for walk in walks]
    share = sum(cliff is not None for cliff in result) / len(walks)
    print(f"walks of {total}: {100 * share:.0f} % have a cliff")
    assert share <= most
    for walk, cliff in zip(walks, result, strict=True):
        if cliff is not None:
            assert walk[-100:].mean() * 2000 * 1.25 < cliff.iops_before


@pytest.mark.parametrize("hung", [4, 10, 14])
def test_a_hung_slice_does_not_move_the_cliff(hung: int) -> None:
    iops = [4000] * 10 + [1000] * 11
    iops[hung] = 0
    cliff = find_cliff(soak(iops), capacity_bytes=MIB)
    assert cliff is not None
    assert cliff.time_s == 10


def test_the_level_is_that_of_the_end() -> None:
    level = post_saturation(soak([4000] * 50 + [1000, 1010, 990, 1000, 1000] * 10), "iops")
    assert level.slices == 20
    assert level.average == pytest.approx(1000)
    assert (min(level.blocks), max(level.blocks)) == pytest.approx((997.5, 1002.5))
    assert level.steady


def test_a_level_that_still_falls_is_not_steady() -> None:
    assert not post_saturation(soak(np.linspace(2000, 1000, 40)), "iops", last_share=0.5).steady


def test_rates_are_weighted_by_time_and_latency_by_ios() -> None:
    table = soak([1000, 1000, 1000, 1000, 400], [1.0, 1.0, 1.0, 1.0, 0.5])
    ios, seconds = table["write_ios"].sum(), table["runtime_s"].sum()
    assert post_saturation(table, "iops").average == pytest.approx(ios / seconds)
    assert post_saturation(table, "bandwidth_mib_s").average == pytest.approx(ios * 4096 / MIB / seconds)
    busy_us = (table["write_ios"] * table["mean_latency_us"]).sum()
    assert post_saturation(table, "mean_latency_us").average == pytest.approx(busy_us / ios)


def test_too_few_slices_are_not_steady() -> None:
    level = post_saturation(soak([1000] * 4), "iops")
    assert (level.average, level.slices, level.steady) == (1000, 4, False)


def test_hung_slices_count_as_no_io_and_are_not_steady() -> None:
    table = soak([1000, 1000, 0, 1000, 1000])
    assert post_saturation(table, "iops").average == pytest.approx(800)
    assert not post_saturation(table, "iops").steady
    assert post_saturation(table, "mean_latency_us").average == pytest.approx(16000)
    with pytest.raises(ValueError, match="mean_latency_us"):
        post_saturation(soak([0] * 5), "mean_latency_us")


def test_a_level_needs_a_slice() -> None:
    with pytest.raises(ValueError, match="at least one slice"):
        post_saturation(soak([]), "iops")
