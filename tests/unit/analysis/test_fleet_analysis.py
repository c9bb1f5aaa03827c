"""Compare drives with known truth: spreads, distant drives, slow hosts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from drivelab.analysis.fleet_statistics import (
    apart,
    deviations_table,
    drive_columns,
    hosts_table,
    key_values,
    spread_table,
)


def rows(values: Any, metric: str = "iops", kind: str = "speed", **more: Any) -> pd.DataFrame:
    fixed = {"measurement": "m", "protocol": "p", "cell_label": "RND 4KiB 0/100", "metric": metric, "kind": kind,
             "unit": "IOPS", "verdict": "steady", "taint_reason": None, "reduced": False, "virtual": False,
             "clock": "wall"}  # fmt: skip
    numbers = list(values)
    return pd.DataFrame({"drive": [f"d{number}" for number in range(len(numbers))], "value": numbers, **fixed, **more})


def normal(count: int, seed: int = 1, spread: float = 0.02) -> Any:
    return 1000 * np.exp(np.random.default_rng(seed).normal(0, spread, count))


def test_the_spread_of_values() -> None:
    values = normal(200)
    spread = spread_table(deviations_table(rows(values), 5.0)).iloc[0]
    assert spread["median"] == pytest.approx(np.median(values))
    assert [spread["p5"], spread["p95"]] == pytest.approx(np.percentile(values, (5, 95)))
    assert [spread["min"], spread["max"]] == [values.min(), values.max()]
    assert spread["robust_cv_pct"] == pytest.approx(2.0, rel=0.2)
    assert spread["robust_cv_pct"] == pytest.approx(
        100 * 1.4826 * stats.median_abs_deviation(values) / np.median(values)
    )


@pytest.mark.parametrize("kind", ["speed", "time"])
def test_a_distant_drive_is_an_outlier_and_positive_is_better(kind: str) -> None:
    values = normal(50)
    values[7] = 800
    result = deviations_table(rows(values, "x", kind), 5.0).set_index("drive")
    assert list(result.index[result["outlier"]]) == ["d7"]
    better = kind == "time"
    assert (result.loc["d7", "deviation_pct"] > 0) == better
    assert (result.loc["d7", "modified_z"] > 3.5) == better
    assert result.loc["d7", "place"] == (1 if better else 50)


def test_deviations_follow_the_formula_of_deltas() -> None:
    speed = deviations_table(rows([100.0, 100, 125, 100, 100]), 5.0)
    time = deviations_table(rows([100.0, 100, 125, 100, 100], "mean_latency_us", "time"), 5.0)
    assert speed["deviation_pct"][2] == pytest.approx(25)
    assert time["deviation_pct"][2] == pytest.approx(-20)


def test_a_value_within_the_margin_is_no_outlier() -> None:
    values = normal(50, spread=0.001)
    values[7] = 970
    assert not deviations_table(rows(values), 5.0)["outlier"].any()
    assert deviations_table(rows(values), 2.0)["outlier"].sum() == 1


def test_large_undisturbed_fleets_rarely_have_outliers() -> None:
    result = [deviations_table(rows(normal(1000, seed)), 0.0)["outlier"].any() for seed in range(40)]
    assert sum(result) <= 2  # 1 % by the rule; the modified z-score alone would flag two in five


def test_faulty_values_are_kept_but_not_counted() -> None:
    values = normal(20)
    table = rows(values)
    table.loc[3, ["value", "verdict"]] = [5000.0, "not steady"]
    table.loc[4, "value"] = 0.0
    result = deviations_table(table, 5.0)
    assert result.loc[[3, 4], "place"].isna().all()
    assert not result["outlier"].any()
    assert result["place"].max() == 18
    spread = spread_table(result).iloc[0]
    assert (spread["drives"], spread["faulty"]) == (18, 2)
    assert spread["max"] < 2000
    of_drives = drive_columns(result)
    assert of_drives.loc["d3", ["faulty", "not_steady"]].tolist() == [1, 1]
    assert pd.isna(of_drives.loc["d3", "key_deviation_pct"])


def test_few_drives_have_no_outlier() -> None:
    assert not deviations_table(rows([100.0, 101, 99, 500]), 5.0)["outlier"].any()


def test_the_key_value_is_a_tracked_one_with_the_first_metric() -> None:
    parts = [
        rows([1.0, 2], "mean_latency_us", "time", verdict="in steady window", cell_label="a"),
        rows([1.0, 2], "iops", verdict="in steady window", cell_label="a"),
        rows([1.0, 2], "mean_latency_us", "time", cell_label="b"),
        rows([1.0, 2], "iops", cell_label="b"),
        rows([1.0, 2], "score", "score", measurement="n", verdict="repeats agree"),
        rows([1.0, 2], "iops", measurement="n", verdict="repeats agree"),
    ]
    result = key_values(pd.concat(parts, ignore_index=True))
    assert result[["measurement", "cell_label", "metric"]].to_numpy().tolist() == [
        ["m", "b", "iops"],
        ["n", "RND 4KiB 0/100", "score"],
    ]


def test_the_first_tracked_value_of_the_protocol_is_the_key_value() -> None:
    values = pd.concat([rows([1.0, 2], cell_label=label) for label in ("RND 1024KiB 100/0", "RND 4KiB 0/100")])
    order = {"m": [("RND 4KiB 0/100", "iops"), ("RND 1024KiB 100/0", "iops")]}
    result = key_values(values.reset_index(drop=True), order)
    assert result["cell_label"].tolist() == ["RND 4KiB 0/100"]


def test_the_key_value_of_a_replay_is_the_access_time() -> None:
    kinds = (("iops", "speed"), ("access_time_us", "time"))
    parts = [rows([1.0, 2], metric, kind, cell_label=label, verdict="repeats agree")
             for label in ("replay sqlite", "set of two traces") for metric, kind in kinds]  # fmt: skip
    result = key_values(pd.concat(parts, ignore_index=True)).iloc[0]
    assert (result["cell_label"], result["metric"]) == ("set of two traces", "access_time_us")


def test_a_distant_group_is_found_and_scatter_is_not() -> None:
    result = apart(deviations_table(rows([1760.0, 1760, 1760, 3535, 3535]), 5.0), 5.0)
    assert result["drive"].tolist() == ["d3", "d4"]
    assert apart(deviations_table(rows([1760.0, 1760, 1760, 1800, 1800]), 5.0), 5.0).empty
    of_many = [len(apart(deviations_table(rows(normal(1000, seed)), 5.0), 5.0)) > 0 for seed in range(40)]
    assert sum(of_many) <= 3


def test_an_outlier_is_not_listed_as_apart() -> None:
    values = normal(50)
    values[7] = 800
    assert apart(deviations_table(rows(values), 5.0), 5.0).empty


def test_a_slow_host_is_significant() -> None:
    values = normal(40)
    hosts = pd.Series([f"h{number % 4}" for number in range(40)], index=[f"d{number}" for number in range(40)])
    values[::4] *= 0.97
    result = hosts_table(deviations_table(rows(values), 5.0), hosts).set_index("host")
    assert list(result.index[result["p_adjusted"] < 0.05]) == ["h0"]
    assert result.loc["h0", "difference_pct"] == pytest.approx(-3, abs=1.5)
    assert hosts_table(deviations_table(rows(values), 5.0), hosts.map(lambda _: "one")).empty
