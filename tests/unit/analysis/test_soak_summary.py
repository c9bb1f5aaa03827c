"""Summarise soaks: which slices count, and their averages and tail latency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from rows import key, loop, soak, table

from drivelab.analysis.values.summary import summary_table

from .summaries import READS, WRITES, beside, value

WINDOW = {"ended_by": "steady state"}


def summarise(rows: list[dict[str, Any]], **more: Any) -> pd.DataFrame:
    empty = (table(name, []) for name in ("steady_state", "replays", "replay_passes"))
    return summary_table(table("cells", rows), *empty, **more)


def within(rows: list[dict[str, Any]], first: int, last: int) -> list[dict[str, Any]]:
    """Mark a soak as steady from slice `first` to `last`."""
    return [row | WINDOW | {"in_window": first <= row["round"] <= last} for row in rows]


def bins(step: int, slices: dict[int, list[tuple[int, int]]], *, part: int | None = None) -> pd.DataFrame:
    """Return latency bins; `slices` has (latency in us, tens of I/Os) pairs by slice number."""
    rows = [(key()["recording"], step, number, part, latency_us * 1000, 10 * count)
            for number, pairs in slices.items() for latency_us, count in pairs]  # fmt: skip
    return pd.DataFrame(rows, columns=["recording", "step", "round", "part", "latency_ns", "count"])


def tail(rows: list[dict[str, Any]], found: pd.DataFrame) -> pd.DataFrame:
    return summarise(rows, soak_bins=found)


def test_a_steady_state_soak_is_averaged_over_its_window() -> None:
    result = value(summarise(within(soak([900.0, 500.0, 100.0, 101.0, 102.0, 103.0, 104.0, 105.0]), 3, 7)))
    assert (result["value"], result["spread_low"], result["spread_high"]) == (pytest.approx(102), 100, 104)
    assert (result["statistic"], result["verdict"]) == ("steady-state window", "steady")


def test_the_stop_rule_of_the_soak_decides_steadiness() -> None:
    """A study may set other limits than 20 % and 10 %."""
    falling = [100.0, 90.0, 80.0, 70.0, 60.0]
    assert value(summarise(within(soak(falling), 1, 5)))["verdict"] == "steady"
    assert value(summarise(soak(falling)))["verdict"] == "not steady"


@pytest.mark.parametrize(("unsound", "missing", "verdict"), [
    *((lost, [], "incomplete window") for lost in ([3], [7], [5], [3, 4, 5, 6], [3, 4, 5, 6, 7])),
    ([], [5], "incomplete window"),
    ([1, 8], [], "steady"),  # outside the window
])  # fmt: skip
def test_a_window_that_lacks_a_sound_slice_is_incomplete(unsound: list[int], missing: list[int], verdict: str) -> None:
    rows = within(soak([900.0, 500.0, 100.0, 101.0, 102.0, 103.0, 104.0, 105.0]), 3, 7)
    rows = [row | {"unsound": "no I/O: made"} if row["round"] in unsound else row for row in rows]
    assert value(summarise([row for row in rows if row["round"] not in missing]))["verdict"] == verdict


def test_a_window_counts_although_the_next_step_continues_its_workload() -> None:
    rows = within(soak([900.0, *[100.0] * 5]), 2, 6) + soak([500.0] * 9, step=1)
    result = bins(0, {1: [(900, 1000)], **{number: [(100, 1000)] for number in range(2, 7)}})
    later = bins(1, {number: [(700, 1000)] for number in range(1, 10)})
    summary = summarise(rows, soak_bins=pd.concat([result, later]))
    assert value(summary)["value"] == pytest.approx(100)
    last = value(summary, "p99_latency_us")
    assert (last["value"], last["statistic"]) == (100, "percentile of the steady-state window")


COURSE = [400.0] * 10 + [100.0] * 10
"""The average of the whole soak is 250, that of its last fifth 100."""


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ([], {"filled": True}),
        ([], {"phase": "histogram", "phase_value": "0", "phase_pass": 1}),
        ([], {"phase": "point", "phase_value": "max", "phase_pass": 1, "point": "max"}),
        (soak([5.0], step=0, size=8192), {"step": 1}),
        (loop([5.0], step=0, size=8192, until="rounds"), {"step": 1}),
    ],
    ids=["filled", "phase", "point", "after a soak", "after a loop"],
)
def test_a_soak_that_does_not_saturate_a_fresh_drive_counts_whole(
    before: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    result = summarise(before + [row | more for row in soak(COURSE)])
    iops = result[(result["metric"] == "iops") & result["cell_label"].str.startswith("RND 4KiB")].iloc[0]
    load = ", at T2Q8" if "point" in more else ""
    assert (iops["value"], iops["statistic"]) == (pytest.approx(250), f"average of the whole soak{load}")
    assert (iops["spread_low"], iops["spread_high"], iops["verdict"]) == (100, 400, "not steady")


def test_a_saturating_soak_counts_its_last_fifth() -> None:
    for rows in (soak(COURSE), soak(COURSE[:10]) + soak(COURSE[10:], step=1)):
        result = value(summarise(rows))
        assert (result["value"], result["statistic"], result["verdict"]) == (100, "post-saturation average", "steady")


def test_the_parts_of_a_cross_stimulus_test() -> None:
    rows = soak(COURSE) + soak(COURSE, step=1, size=8192) + soak(COURSE, step=2)
    statistics = summarise(rows).drop_duplicates("cell_label").set_index("cell_label")["statistic"]
    assert statistics.to_dict() == {
        "RND 4KiB 0/100": "post-saturation average", "RND 8KiB 0/100": "average of the whole soak",
        "RND 4KiB 0/100 soak": "average of the whole soak",
    }  # fmt: skip


def test_another_recording_is_not_an_earlier_workload() -> None:
    rows = soak(COURSE, where=key(run=1), size=8192) + soak(COURSE, where=key("op28"), step=1)
    assert set(summarise(rows)["statistic"]) == {"post-saturation average"}


@pytest.mark.parametrize(("slices", "verdict"), [(1, "single slice"), (4, "too few slices"), (5, "steady")])
def test_fewer_than_five_slices_are_not_judged(slices: int, verdict: str) -> None:
    summary = summarise([row for drive, iops in (("op7", 100.0), ("op28", 200.0))
                         for row in soak([iops] * slices, where=key(drive), filled=True)])  # fmt: skip
    assert set(summary["verdict"]) == {verdict}


def test_two_workloads_at_the_same_time_have_rows_each() -> None:
    writes, reads = [100.0] * 10, [*[1000.0] * 5, *[250.0] * 5]
    both = bins(0, {number: [(900, 99), (5000, 1)] for number in range(1, 11)}, part=1)
    both = pd.concat([both, bins(0, {number: [(50, 9990), (70, 10)] for number in range(1, 11)}, part=2)])
    summary = summarise(beside(soak(writes, filled=True), reads), soak_bins=both)
    labels = [WRITES, READS]
    assert list(dict.fromkeys(summary["cell_label"])) == labels
    iops = [value(summary, label=label) for label in labels]
    assert [(row["value"], row["verdict"]) for row in iops] == [(100, "steady"), (625, "not steady")]
    latency = [value(summary, "mean_latency_us", label)["value"] for label in labels]
    assert latency == pytest.approx([16e4, np.average([50, 200], weights=[1000, 250])])
    tails = [value(summary, "p99_latency_us", label) for label in labels]
    assert [row["value"] for row in tails] == [900, 50]
    assert [row["verdict"] for row in tails] == ["steady", "not steady"]
    assert value(summary, "p9999_latency_us", labels[1])["value"] == 70
    assert "p9999_latency_us" not in set(summary.loc[summary["cell_label"] == labels[0], "metric"])


def test_a_steady_sum_does_not_make_its_parts_steady() -> None:
    reads = [800.0, 700.0, 600.0, 500.0, 400.0]
    rows = within(beside(soak([1000.0 - read for read in reads]), reads), 1, 5)
    result = value(summarise(rows), label=READS)
    assert (result["value"], result["statistic"], result["verdict"]) == (600, "steady-state window", "not steady")


def test_tail_latency_of_a_saturating_soak_is_that_of_its_last_fifth() -> None:
    fresh = bins(0, {number: [(900, 1000)] for number in range(1, 21)})
    settled = bins(0, {number: [(100, 19_800), (500, 200)] for number in range(21, 26)})
    summary = tail(soak([100.0] * 25), pd.concat([fresh, settled]))
    result = value(summary, "p99_latency_us")
    assert (result["value"], result["statistic"], result["kind"]) == (100, "percentile of the saturated slices", "time")
    assert value(summary, "p99999_latency_us")["value"] == 500
    few = tail(soak([100.0] * 25), settled.assign(count=settled["count"] // 2))
    assert "p9999_latency_us" in set(few["metric"])
    assert "p99999_latency_us" not in set(few["metric"]), "500 000 I/Os are too few for it"


def test_tail_latency_uses_the_same_slices_as_the_averages() -> None:
    """For saturation in two steps it is the last fifth of both, for a filled drive the whole soak."""
    result = pd.concat([bins(step, {1: [(100, 99_000), (700, 1_000)], **{number: [(100, 100_000)] for number in more}})
                       for step, more in ((0, range(2, 11)), (1, range(2, 4)))])  # fmt: skip
    rows = soak([100.0] * 10) + soak([100.0] * 3, step=1)
    last = value(tail(rows, result), "p99999_latency_us")
    assert (last["value"], last["spread_low"], last["spread_high"]) == (700, 100, 700)
    assert last["statistic"] == "percentile of the saturated slices"
    beginning = result[(result["step"] == 1) | (result["round"] < 9)]
    assert len(tail(rows, beginning)) == len(tail(rows, result))
    assert value(tail(rows, result[(result["step"] == 0) | (result["round"] > 1)]), "p99999_latency_us")["value"] == 100
    whole = value(tail([row | {"filled": True} for row in rows[:10]], result), "p9999_latency_us")
    assert (whole["value"], whole["statistic"]) == (700, "percentile of the whole soak")


def test_soaks_of_phases_without_replays_are_results() -> None:
    """The soaks are pre-write and mix at the points of a demand sweep."""
    rows: list[dict[str, Any]] = []
    for number, point in enumerate(("max", "min")):
        turn = {"phase": "point", "phase_value": point, "phase_pass": number + 1, "point": point}
        rows += soak([100.0] * 9, step=2 * number, threads=8 - 7 * number, **turn)
        rows += soak([50.0] * 9, step=2 * number + 1, read_share=65, threads=8 - 7 * number, **turn)
    summary = summarise(rows)
    assert list(dict.fromkeys(summary["cell_label"])) == [
        "RND 4KiB 0/100, MAX", "RND 4KiB 65/35, MAX", "RND 4KiB 0/100, MIN", "RND 4KiB 65/35, MIN",
    ]  # fmt: skip
    at_max, at_min = (value(summary, label=f"RND 4KiB 65/35, {point}") for point in ("MAX", "MIN"))
    assert at_max["statistic"] == "average of the whole soak, at T8Q8"
    assert at_min["statistic"] == "average of the whole soak, at T1Q8"


def test_pooled_recordings_name_all_loads_of_a_point() -> None:
    turn = {"phase": "point", "phase_value": "max", "phase_pass": 1, "point": "max", "filled": True}
    rows = [
        row for run, threads in enumerate((8, 2, 8), start=1)
        for row in soak([100.0] * 9, where=key(run=run), threads=threads, **turn)
    ]  # fmt: skip
    assert value(summarise(rows))["statistic"] == (
        "average of the whole soak, at T8Q8 or T2Q8, geometric mean of 3 recordings"
    )


def test_a_soak_has_iops_per_watt_too() -> None:
    rows = [row | {"power_w": 5.0, "power_source": "meter"} for row in soak([400.0] * 20 + [100.0] * 20)]
    result = value(summarise(rows), "iops_per_watt")
    assert result["value"] == pytest.approx(20)
    assert result["statistic"] == "post-saturation average, power by the meter"


def test_the_samples_of_a_soak_are_its_five_parts_or_its_slices() -> None:
    long = value(summarise([row | {"directory": "cells/0-soak-part1"} for row in soak(list(range(100, 120)))]))
    assert list(long["samples"]) == [115, 116, 117, 118, 119]
    assert (long["scope"], long["spread_low"]) == ("slices", min(long["samples"]))
    assert list(long["evidence"]) == [f"{key()['recording']}/cells/0-soak-part1"]
    assert pd.isna(long["interval_low"]), "parts of one recording show no interval of the drive"
    short = value(summarise(soak([100.0, 101.0], filled=True)))
    assert list(short["samples"]) == [100, 101]
