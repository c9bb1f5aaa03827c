"""Summarise loops whose rounds are repeats, and scores over all cells of a loop."""

from __future__ import annotations

import statistics
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import key, loop, table

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.values.summary import summary_table
from drivelab.tables.windows import windows_table

from .summaries import READS, WRITES, beside, value

FIXED = {"until": "rounds"}
AGREEING = {"until": "relative standard error"}
NO_TABLES = [table(name, []) for name in ("steady_state", "replays", "replay_passes")]


def summarise(rows: list[dict[str, Any]], **more: Any) -> pd.DataFrame:
    return summary_table(table("cells", rows), *NO_TABLES, **more)


def cold(rows: list[dict[str, Any]], rounds: int = 1) -> list[dict[str, Any]]:
    return [row | {"cold": row["round"] <= rounds} for row in rows]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(1, 1e6), min_size=3, max_size=9))
def test_the_median_is_a_measured_value_of_an_odd_number(values: list[float]) -> None:
    result = value(summarise(loop(values, **FIXED)))
    used = values[: len(values) if len(values) % 2 else -1]
    assert (result["n"], result["value"]) == (len(used), statistics.median(used))
    assert result["value"] in values


@pytest.mark.parametrize(
    ("until", "values", "verdict", "statistic"),
    [
        ("rounds", [90.0], "single run", "one warm round"),
        ("rounds", [90.0, 110.0], "two runs", "mean of 2 warm rounds"),
        ("relative standard error", [90.0, 110.0], "too few runs", "mean of 2 warm rounds"),
    ],
)
def test_fewer_than_three_rounds_give_a_mean(until: str, values: list[float], verdict: str, statistic: str) -> None:
    result = value(summarise(loop(values, until=until)))
    assert (result["verdict"], result["statistic"], result["n"]) == (verdict, statistic, len(values))
    assert result["value"] == statistics.fmean(values)
    assert pd.isna(result["rse_pct"])


def test_cells_may_have_different_numbers_of_rounds() -> None:
    rows = loop([100.0] * 3, **AGREEING) + [row | {"cell": 1} for row in loop([7.0] * 5, read_share=65, **AGREEING)]
    summary = summarise(rows)
    assert (value(summary)["n"], value(summary, label="RND 4KiB 65/35")["n"]) == (3, 5)


def test_the_percentiles_of_repeats_at_one_outstanding_io() -> None:
    rows = [row | {"queue_depth": 1, "threads": 1, "p99_latency_us": row["iops"], "p99999_latency_us": 2 * row["iops"],
                   "write_ios": 1_000_000}
            for row in loop([10.0, 30.0, 20.0], **FIXED)]  # fmt: skip
    summary = summarise(rows)
    assert (value(summary, "p99_latency_us")["value"], value(summary, "p99999_latency_us")["value"]) == (20, 40)
    assert value(summary, "p99_latency_us")["kind"] == "time"
    assert "p50_latency_us" not in set(summary["metric"]), "not every round has p50"
    assert "p99_latency_us" not in set(summarise([row | {"queue_depth": 2} for row in rows])["metric"])
    fewer = summarise([*rows[:2], rows[2] | {"write_ios": 999_999}])
    assert set(summary["metric"]) - set(fewer["metric"]) == {"p99999_latency_us"}, "a round has nine I/Os beyond it"


def test_iops_per_watt_where_power_was_measured_throughout() -> None:
    rows = [row | {"power_w": 5.0, "power_source": "drive"} for row in loop([100.0, 120.0, 110.0], **FIXED)]
    result = value(summarise(rows), "iops_per_watt")
    assert (result["value"], result["kind"], result["unit"]) == (22, "speed", "IOPS/W")
    assert result["statistic"] == "median of 3 warm rounds, power by the drive's own sensor"
    rows[1] |= {"power_w": None, "power_source": None}
    assert "iops_per_watt" not in set(summarise(rows)["metric"])


def test_a_meter_against_a_drives_own_sensor_has_no_verdict() -> None:
    rows = [row | {"power_w": 5.0, "power_source": source} for drive, source in (("op7", "drive"), ("op28", "meter"))
            for row in loop([100.0, 101.0, 102.0], where=key(drive), **FIXED)]  # fmt: skip
    delta = deltas_table(summarise(rows), "op7").set_index("metric").loc["iops_per_watt"]
    assert (delta["verdict"], bool(pd.isna(delta["p_value"]))) == ("cannot tell", True)
    assert "meter" in " ".join(delta["doubts"])


def test_the_best_run_beside_the_median() -> None:
    rows = [row | {"bandwidth_mib_s": row["iops"]} for row in cold(loop([999.0, 100.0, 300.0, 200.0], **FIXED))]
    scores = {"pts-iops": {"best_run": "CrystalDiskMark score"}}
    summary = summarise(rows, scores=scores)
    result = value(summary, "best_bandwidth_mb_s")
    assert result["value"] == pytest.approx(300 * 1.048576)
    assert (result["kind"], result["unit"]) == ("speed", "MB/s")
    assert result["statistic"] == "CrystalDiskMark score: best of 3 runs"
    latency = value(summary, "best_mean_latency_us")
    assert (latency["value"], latency["kind"]) == (pytest.approx(16e6 / 300), "time")
    assert "best_bandwidth_mb_s" not in set(summarise(rows, scores={"other": scores["pts-iops"]})["metric"])


def two_cells(first: list[float], second: list[float]) -> list[dict[str, Any]]:
    return loop(first, **FIXED) + [row | {"cell": 1} for row in loop(second, read_share=65, **FIXED)]


def test_the_figure_of_merit_is_the_geometric_mean_over_the_cells() -> None:
    scores = {"pts-iops": {"figure_of_merit": "iops"}}
    summary = summarise(two_cells([4.0, 9.0, 16.0], [100.0, 100.0, 100.0]), scores=scores)
    result = value(summary, "figure_of_merit", "figure of merit")
    assert result["value"] == pytest.approx(30)
    assert (result["kind"], result["unit"], result["n"]) == ("score", "score", 3)
    assert result["statistic"] == "geometric mean of iops over 2 cells, median of 3 warm rounds"
    twice = summarise(two_cells([8.0, 18.0, 32.0], [200.0, 200.0, 200.0]), scores=scores)
    assert value(twice, "figure_of_merit", "figure of merit")["value"] == pytest.approx(60)


def test_a_figure_of_merit_of_a_time_is_refused() -> None:
    with pytest.raises(ValueError, match="not 'mean_latency_us'"):
        summarise(two_cells([1.0], [1.0]), scores={"pts-iops": {"figure_of_merit": "mean_latency_us"}})


def test_recordings_with_different_numbers_of_rounds_are_pooled() -> None:
    rows = [row for run, rounds in ((1, 3), (2, 5), (3, 3))
            for row in loop([100.0 + run] * rounds, where=key(run=run), **AGREEING)]  # fmt: skip
    result = value(summarise(rows, scores={"pts-iops": {"best_run": "Best"}}))
    assert (result["value"], result["n"], result["statistic"]) == (
        pytest.approx((101 * 102 * 103) ** (1 / 3)),
        3,
        "median of 3 warm rounds, geometric mean of 3 recordings",
    )


def test_a_burst_of_a_wait_counts_only_after_idle_time() -> None:
    turn = {"phase": "wait", "phase_value": "5s", "phase_pass": 1, "pause_s": 5.0}
    rows = [row | {"idle_ms": None if row["round"] == 1 else 5000.0}
            for row in loop([9.0, 100.0, 102.0, 101.0], **FIXED, **turn)]  # fmt: skip
    result = value(summarise(rows))
    assert (result["value"], result["n"], result["spread_low"]) == (101, 3, 100)


def test_all_repeats_with_a_pause_outside_a_phase_count() -> None:
    rows = [row | {"idle_ms": None if row["round"] == 1 else 5000.0}
            for row in loop([100.0, 102.0, 101.0], pause_s=5.0, **FIXED)]  # fmt: skip
    assert value(summarise(rows))["n"] == 3


def test_two_workloads_at_the_same_time_have_a_value_each() -> None:
    rows = beside(loop([100.0, 102.0, 101.0], **AGREEING), [1000.0, 3000.0, 2000.0])
    summary = summarise(rows)
    assert list(dict.fromkeys(summary["cell_label"])) == [WRITES, READS]
    writes, reads = (value(summary, label=label) for label in (WRITES, READS))
    assert (writes["value"], writes["verdict"]) == (101, "repeats agree")
    assert (reads["value"], reads["verdict"]) == (2000, "repeats do not agree")
    assert value(summary, "bandwidth_mib_s", READS)["value"] == pytest.approx(2000 / 128)
    assert value(summary, "mean_latency_us", READS)["value"] == 25
    assert value(summary, "mean_latency_us", WRITES)["value"] == pytest.approx(16e6 / 101)


def test_values_known_only_for_all_workloads_together_are_left_out() -> None:
    columns = {"threads": 1, "queue_depth": 1, "p99_latency_us": 70.0, "power_w": 5.0, "power_source": "meter"}
    summary = summarise([row | columns for row in beside(loop([100.0] * 3, **FIXED), [10.0] * 3)])
    assert set(summary["metric"]) == {"iops", "bandwidth_mib_s", "mean_latency_us"}


def test_a_steady_sum_does_not_make_both_directions_steady() -> None:
    """Rising writes compensate for falling reads, so the sum is steady."""
    falling = [800.0, 700.0, 600.0, 500.0, 400.0]
    rows = beside(loop([1000.0 - read for read in falling]), falling)
    cells = table("cells", rows + beside(loop([100.0] * 5, where=key("op28")), [50.0] * 5))
    until = {"window": 5, "data_excursion": 0.2, "slope_excursion": 0.1, "track": [{"read_share": 0, "metric": "iops"}]}
    summary = summary_table(cells, windows_table(cells, {0: until}), *NO_TABLES[1:])
    iops = summary[summary["metric"] == "iops"].set_index(["drive", "cell_label"])["verdict"]
    assert [iops["op7", label] for label in (WRITES, READS)] == ["not steady"] * 2
    assert [iops["op28", label] for label in (WRITES, READS)] == ["steady"] * 2


def test_a_figure_of_merit_counts_both_workloads() -> None:
    rows = beside(loop([100.0] * 3, **FIXED), [400.0] * 3)
    result = value(summarise(rows, scores={"pts-iops": {"figure_of_merit": "iops"}}), "figure_of_merit",
                  "figure of merit")  # fmt: skip
    assert result["value"] == pytest.approx(200)


def test_reads_are_compared_with_reads_and_writes_with_writes() -> None:
    rows = [row for drive, writes, reads in (("op7", 100.0, 400.0), ("op28", 200.0, 300.0))
            for row in beside(loop([writes] * 3, where=key(drive), **FIXED), [reads] * 3)]  # fmt: skip
    deltas = deltas_table(summarise(rows), "op7").set_index(["cell_label", "metric"])["delta_pct"]
    assert deltas[WRITES, "iops"] == pytest.approx(100)
    assert deltas[READS, "iops"] == pytest.approx(-25)
