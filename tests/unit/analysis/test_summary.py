from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rows import key, loop, soak, table
from scipy import stats
from scipy.stats import median_abs_deviation

from drivelab.analysis.values.summary import summary_table
from drivelab.criteria.repeats import relative_standard_error_pct
from drivelab.replay.evaluation.passes import passes
from drivelab.tables import io
from drivelab.tables.windows import windows_table

from .summaries import value

TRACK = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "metric": "iops"}
CRITERION = {"window": 5, "data_excursion": 0.2, "slope_excursion": 0.1, "track": [TRACK]}
SETTLED = [900.0, 500.0, 100.0, 104.0, 96.0, 102.0, 98.0]


def summarise(rows: list[dict[str, Any]], replays: list[dict[str, Any]] | None = None, **settings: Any) -> pd.DataFrame:
    cells, runs = table("cells", rows), table("replays", replays or [])
    return summary_table(cells, windows_table(cells, {0: CRITERION}), runs, in_passes(runs), **settings)


def in_passes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the table `replay_passes` of these replays."""
    return passes(runs) if len(runs) else table("replay_passes", [])


def replay(latencies: list[float], *, where: dict[str, Any] | None = None, **more: Any) -> list[dict[str, Any]]:
    """Return a cold run, then warm runs with these access times."""
    return [
        {
            **(where or key(measurement="trace-replay")), "trace": "sqlite", "repeat": repeat, "warm": repeat > 1,
            "counted": repeat > 1, "timing_mode": "original", "duration_s": 1000 / latency, "access_time_us": latency,
            "bandwidth_mib_s": 100 / latency, "score": 1e4 / latency, "p99_latency_us": 10 * latency,
            "read_ios": 1, "read_bytes": 100 << 20, "busy_s": latency, **more,
        }
        for repeat, latency in enumerate([9999.0, *latencies], 1)
    ]  # fmt: skip


def test_a_loop_is_averaged_over_the_steady_window(tmp_path: Path) -> None:
    summary = summarise(loop(SETTLED) + loop([7.0] * 7, read_share=65))
    result = value(summary)
    assert result["value"] == pytest.approx(100)
    assert (result["spread_low"], result["spread_high"]) == (96, 104)
    assert (result["n"], result["verdict"], result["statistic"]) == (1, "steady", "window average")
    assert (result["kind"], result["unit"]) == ("speed", "IOPS")
    assert pd.isna(result["rse_pct"])
    assert list(result["recordings"]) == [key()["recording"]]
    assert value(summary, label="RND 4KiB 65/35")["value"] == 7
    latency = value(summary, "mean_latency_us")
    assert (latency["kind"], latency["unit"]) == ("time", "us")
    assert latency["value"] == pytest.approx(sum(16e6 / v for v in SETTLED[2:]) / 5)
    io.write(summary, tmp_path / "s", "summary")


def test_a_window_average_has_its_rounds_as_samples() -> None:
    result = value(summarise([row | {"directory": f"cells/{row['round']}"} for row in loop(SETTLED)]))
    assert (list(result["samples"]), result["scope"]) == (SETTLED[2:], "rounds")
    assert result["mad"] == pytest.approx(median_abs_deviation(SETTLED[2:]))
    assert pd.isna(result["interval_low"])
    assert list(result["evidence"]) == [f"{key()['recording']}/cells/{number}" for number in range(3, 8)]


def test_pooled_recordings_are_the_samples_and_all_their_cells_the_evidence() -> None:
    rows = [row | {"directory": f"cells/{row['round']}"} for run, level in ((1, 1.0), (2, 1.1), (3, 1.02))
            for row in loop([v * level for v in SETTLED], where=key(run=run))]  # fmt: skip
    result = value(summarise(rows))
    assert list(result["samples"]) == pytest.approx([100, 110, 102])
    assert (result["scope"], result["mad"]) == ("recordings", pytest.approx(2))
    logs = np.log([100, 110, 102])
    ends = stats.t.interval(0.95, 2, logs.mean(), stats.sem(logs))
    assert (result["interval_low"], result["interval_high"]) == pytest.approx(tuple(np.exp(ends)))
    assert list(result["evidence"]) == [f"{key(run=run)['recording']}/cells/{number}"
                                       for run in (1, 2, 3) for number in range(3, 8)]  # fmt: skip


def test_a_loop_that_is_not_steady_marks_all_its_cells() -> None:
    summary = summarise(loop([100.0 * 1.2**i for i in range(7)]) + loop([7.0] * 7, read_share=65))
    assert set(summary["verdict"]) == {"not steady"}
    assert value(summary)["value"] == pytest.approx(sum(100 * 1.2**i for i in range(2, 7)) / 5)


def test_a_doubt_about_a_cell_in_the_window_is_one_about_the_value() -> None:
    rows, limit = loop(SETTLED), "fio's threads used 97 % of a CPU each, so the drive may be faster"
    rows[0] |= {"host_limit": limit, "tainted": True, "taint_reason": "load: others"}  # before the window
    found = value(summarise(rows))
    assert (found["verdict"], found["taint_reason"], found["host_limit"]) == ("steady", None, None)
    rows[4]["host_limit"] = limit
    found = value(summarise(rows))
    assert (found["verdict"], found["taint_reason"], found["host_limit"]) == ("host-limited", None, limit)
    rows[4] |= {"tainted": True, "taint_reason": "load: others"}
    found = value(summarise(rows))
    assert (found["verdict"], found["taint_reason"], found["host_limit"]) == ("tainted", "load: others", limit)


def test_a_disturbed_replay_taints_the_value_only_if_it_counts() -> None:
    cold, *warm = replay([100, 101, 102])
    for disturbed_run, verdict in ((cold, "repeats agree"), (warm[1], "tainted")):
        disturbed = [run | ({"tainted": True, "taint_reason": "steal: 9 %"} if run is disturbed_run else {})
                     for run in (cold, *warm)]  # fmt: skip
        result = value(summarise([], disturbed), "access_time_us", "replay sqlite")
        assert result["verdict"] == verdict
        assert result["taint_reason"] == ("steal: 9 %" if verdict == "tainted" else None)


@pytest.mark.parametrize(("reasons", "expected"), [
    (["load: 1", "load: 2", None], (3, "tainted", "load: 2 at worst")),
    (["foreign: x", None, None, None], (3, "steady", None)),  # left out
    (["throttled: x", None, None, None], (4, "tainted", "throttled: x")),  # by the drive itself
])  # fmt: skip
def test_what_disturbs_a_recording(reasons: list[str | None], expected: tuple[int, str, str | None]) -> None:
    rows = [loop(SETTLED, where=key(run=run)) for run in range(1, len(reasons) + 1)]
    for of_run, reason in zip(rows, reasons, strict=True):
        of_run[-1] |= {"tainted": reason is not None, "taint_reason": reason}
    result = value(summarise([row for of_run in rows for row in of_run]))
    assert (result["n"], result["verdict"], result["taint_reason"]) == expected
    assert ("left out" in result["statistic"]) == (expected[0] < len(reasons))


@pytest.mark.parametrize(("latencies", "asked", "n", "median", "statistic", "verdict"), [
    ([100.0, 106.0, 100.5], None, 3, 100.5, "median of warm runs", "repeats agree"),
    ([100.0, 101.0], None, 1, 100.0, "median of warm runs", "too few runs"),
    ([100.0, 102.0, 101.0, 500.0], None, 3, 101.0, "median of warm runs", "repeats agree"),
    ([100.0], 1, 1, 100.0, "one pass", "single run"),
    ([100.0], 3, 1, 100.0, "one pass", "too few runs"),
    ([100.0, 104.0], 2, 2, 102.0, "median of 2 passes", "two runs"),
    ([100.0, 101.0, 99.0, 102.0], 4, 4, 100.5, "median of 4 passes", "repeats agree"),
])  # fmt: skip
def test_a_replay_is_the_median_of_its_counted_warm_runs(
    latencies: list[float], asked: int | None, n: int, median: float, statistic: str, verdict: str
) -> None:
    """An odd number of runs counts, unless the protocol asks for a number of passes."""
    summary = summarise([], replay(latencies, asked_passes=asked))
    result = value(summary, "access_time_us", "replay sqlite")
    assert (result["n"], result["value"], result["statistic"], result["verdict"]) == (n, median, statistic, verdict)
    assert (result["spread_low"], result["spread_high"]) == (min(latencies[:n]), max(latencies[:n]))
    assert result["rse_pct"] == pytest.approx(
        relative_standard_error_pct(latencies[:n]) if n > 2 else None, nan_ok=True
    )
    assert value(summary, "bandwidth_mib_s", "replay sqlite")["kind"] == "speed"
    assert "duration_s" not in set(summary["metric"])


def test_an_asap_replay_has_a_duration() -> None:
    summary = summarise([], replay([100.0, 106.0, 100.5], timing_mode="asap"))
    result = value(summary, "duration_s", "replay sqlite")
    assert (result["kind"], result["unit"], result["value"]) == ("time", "s", 1000 / 100.5)


def test_agreement_of_repeats_depends_on_the_threshold() -> None:
    runs = replay([100.0, 120.0, 85.0, 100.0, 110.0])
    verdicts = [set(summarise([], runs, rse_threshold_pct=pct)["verdict"]) for pct in (5.0, 6.0)]
    rse_pct = relative_standard_error_pct([100, 120, 85, 100, 110])
    assert 5.0 < rse_pct < 6.0
    assert verdicts == [{"repeats do not agree"}, {"repeats agree"}]


def test_a_run_that_does_not_count_is_left_out() -> None:
    runs = replay([100.0, 101.0, 102.0])
    runs[2]["counted"] = False
    assert value(summarise([], runs), "access_time_us", "replay sqlite")["n"] == 1


def test_a_replay_without_a_warm_run_is_refused() -> None:
    with pytest.raises(ValueError, match="replay sqlite has no warm run"):
        summarise([], replay([]))


@pytest.mark.parametrize("levels", [(1.0, 1.1), (1.0, 1.1, 1.02), (1.0, 1.1, 1.02, 0.97)])
def test_several_recordings_give_their_geometric_mean(levels: tuple[float, ...]) -> None:
    rows = [row for run, level in reversed(list(enumerate(levels, 1)))
            for row in loop([v * level for v in SETTLED], where=key(run=run))]  # fmt: skip
    result, number = value(summarise(rows)), len(levels)
    assert result["value"] == pytest.approx(100 * stats.gmean(levels))
    assert (result["n"], result["verdict"]) == (number, "steady")
    assert result["statistic"] == f"window average, geometric mean of {number} recordings"
    assert result["rse_pct"] == pytest.approx(100 * stats.sem(np.log(levels)))
    assert (result["spread_low"], result["spread_high"]) == pytest.approx((100 * min(levels), 100 * max(levels)))
    assert list(result["recordings"]) == [key(run=run)["recording"] for run in range(1, number + 1)]


def test_a_recording_that_is_not_steady_marks_the_pooled_value() -> None:
    rows = [row for run in (1, 2) for row in loop(SETTLED, where=key(run=run))]
    rows += loop([50.0, 60, 80, 100, 130, 160, 200], where=key(run=3))
    assert value(summarise(rows))["verdict"] == "not steady"


def test_only_recordings_under_equal_conditions_are_pooled() -> None:
    rows = [row for run in (1, 2, 3) for row in loop(SETTLED, where=key(run=run, reduced=run == 3))]
    summary = summarise(rows)
    assert summary[summary["metric"] == "iops"]["n"].tolist() == [2, 1]


def test_nothing_gives_an_empty_table(tmp_path: Path) -> None:
    io.write(summarise([]), tmp_path / "s", "summary")


def test_a_loop_without_its_window_is_refused() -> None:
    cells = table("cells", loop(SETTLED))
    with pytest.raises(ValueError, match="op7/pts-iops/0123456789ab-run1: a loop has no steady-state window"):
        summary_table(cells, table("steady_state", []), table("replays", []), table("replay_passes", []))


def in_phase(phase: str, latencies: list[float], step: int, trace: str = "sqlite") -> list[dict[str, Any]]:
    runs = [run for number, latency in enumerate(latencies, 1)
            for run in replay([latency], trace=trace, step=step, phase=phase, phase_pass=number)[1:]]  # fmt: skip
    return [run | {"repeat": 1} for run in runs]


def test_a_set_is_summarised_by_pass_and_listed_before_its_traces() -> None:
    runs = replay([100.0, 110.0, 104.0]) + replay([300.0, 330.0, 312.0], trace="boot")
    summary = summarise([], runs)
    assert list(dict.fromkeys(summary["cell_label"])) == ["set of 2 traces", "replay sqlite", "replay boot"]
    result = value(summary, "access_time_us", "set of 2 traces")
    assert (result["value"], result["spread_low"], result["spread_high"], result["n"]) == (208, 200, 220, 3)
    bandwidth = value(summary, "bandwidth_mib_s", "set of 2 traces")["value"]
    assert bandwidth == pytest.approx(200 / (104 + 312))  # all bytes by all busy time, not a mean of two bandwidths
    score = value(summary, "score", "set of 2 traces")
    assert (score["kind"], score["value"]) == ("score", pytest.approx((bandwidth * 1e6 / 208) ** 0.5))


def test_a_phase_is_the_median_of_its_passes_with_their_range() -> None:
    runs = in_phase("degradation", [100.0, 200.0, 400.0, 800.0], step=3) + in_phase("steady", [900.0], step=12)
    summary = summarise([], runs)
    result = value(summary, "access_time_us", "replay sqlite, degradation")
    assert (result["value"], result["n"], result["spread_low"], result["spread_high"]) == (300, 4, 100, 800)
    assert (result["statistic"], result["verdict"]) == ("median of 4 passes", "in a phase")
    assert pd.isna(result["rse_pct"])  # passes that are meant to differ are not repeats
    assert value(summary, "score", "replay sqlite, steady")["statistic"] == "one pass"


def test_writes_between_the_passes_of_a_phase_are_no_result() -> None:
    where = key(measurement="trace-consistency")
    runs = [run | where for run in in_phase("degradation", [100.0, 200.0, 300.0], step=1)]
    writes = soak([4000.0] * 9, step=0, where=where) + soak([3000.0] * 9, step=2, where=where)
    assert set(summarise(writes, runs)["cell_label"]) == {"replay sqlite, degradation"}
    assert "RND 4KiB 0/100" in set(summarise(writes)["cell_label"])


def test_a_trace_repeated_in_a_later_step_has_another_label() -> None:
    summary = summarise([], replay([100.0] * 3) + replay([50.0] * 3, step=4))
    assert value(summary, "access_time_us", "replay sqlite")["value"] == 100
    assert value(summary, "access_time_us", "replay sqlite step 4")["value"] == 50


def test_a_partial_replay_is_marked_and_unknown_metrics_are_left_out() -> None:
    runs = replay([100.0, 101.0, 102.0])
    runs[2] |= {"partial": True}
    assert value(summarise([], runs), "access_time_us", "replay sqlite")["verdict"] == "partial"
    runs[2] |= {"p99_latency_us": None}
    assert set(summarise([], runs)["metric"]) == {"access_time_us", "bandwidth_mib_s", "score"}
    unknown = [
        run | dict.fromkeys(("access_time_us", "bandwidth_mib_s", "score", "busy_s", "p99_latency_us")) for run in runs
    ]
    assert summarise([], unknown).empty


def test_a_phase_with_passes_that_differ_by_design_is_marked() -> None:
    runs = [run | {"alike_passes": False} for run in in_phase("degradation", [100.0, 200.0], step=3)]
    runs += [run | {"alike_passes": True} for run in in_phase("steady", [900.0, 910.0], step=9)]
    verdicts = summarise([], runs).groupby("cell_label")["verdict"].unique()
    assert list(verdicts["replay sqlite, degradation"]) == ["in a changing phase"]
    assert list(verdicts["replay sqlite, steady"]) == ["in a phase"]
