"""Figures of replays and open loads draw the values of the tables."""

from __future__ import annotations

import math

import comparison_frames as frames
import numpy as np
import pandas as pd
import pts_frames as pts
import pytest
from drawn import artists, legend, rows, texts
from drawn import artists as drawn

from drivelab.figures.base.sheets import render
from drivelab.figures.kinds.load_curve import load_curve
from drivelab.figures.kinds.replays import median_runs, of_runs

TIMES = "\N{MULTIPLICATION SIGN}"
ALL = ("replay", "replay_fidelity", "replay_latency", "replay_over_time")


def test_runs_and_medians_by_drive() -> None:
    result = pts.replayed("op7", "op28")
    figure, runs = render("replay", result, "all"), result["replays"]
    for panel, metric in enumerate(("access_time_us", "bandwidth_mib_s", "score")):
        for number, drive in enumerate(("op7", "op28")):
            of_drive = runs[runs["drive"] == drive]
            counted = of_drive[of_drive["counted"]][metric]
            assert list(artists(figure, "counted", panel)[number].get_xdata()) == counted.tolist()
            cold = of_drive[~of_drive["counted"]][metric]
            assert list(artists(figure, "not counted", panel)[number].get_xdata()) == cold.tolist()
            assert artists(figure, "median", panel)[0].get_xdata()[number] == counted.median()
        assert figure.axes[panel].get_xlim()[0] == 0
    assert rows(figure) == [f"op7\n1.000 {TIMES} planned time", f"op28\n1.000 {TIMES} planned time"]
    assert texts(figure, "note") == ["engine: native; timing: original"]


def test_a_set_has_a_row_of_its_own() -> None:
    result = pts.replayed(traces=("boot", "sqlite"))
    figure = render("replay", result, "op7")
    assert [name.partition("\n")[0] for name in rows(figure)] == ["set of 2 traces", "boot", "sqlite"]
    passes = result["replay_passes"]
    medians = passes[passes["counted"]]["score"].median()
    assert artists(figure, "median", 2)[0].get_xdata()[0] == pytest.approx(medians)
    in_phases = pts.replayed(traces=("boot", "sqlite"), phases=(("steady", 2), ("rest", 2)))
    assert rows(render("replay", in_phases, "op7")) == ["steady", "rest"]


@pytest.mark.parametrize("name", ALL)
def test_what_limits_a_replay_is_on_every_figure(name: str) -> None:
    assert texts(render(name, pts.replayed(), "op7"), "badge") == []
    badges = texts(render(name, pts.replayed(partial=True, lost=3), "op7"), "badge")
    assert badges == ["PARTIAL replay", "LOSSY trace"]


def test_issue_errors_have_their_percentiles_and_the_hosts_noise_beside() -> None:
    result = pts.replayed()
    figure, bins = render("replay_fidelity", result, "op7"), result["replay_issue_errors"]
    counted = bins[bins["counted"]]
    values = np.repeat(counted["error_ns"].to_numpy(), counted["count"].to_numpy()) / 1e3
    (line,) = artists(figure, "issue error")
    said = dict(part.split(" % ") for part in str(line.get_label()).partition(": ")[2].split(", "))
    for percent in (50, 95, 99):
        bound_us = max(np.percentile(values, percent, method="inverted_cdf"), 0.1)
        shown, unit = said[str(percent)].removeprefix("≤ ").split()
        assert float(shown) * {"µs": 1, "ms": 1000}[unit] == pytest.approx(bound_us, rel=0.02)
    (noise,) = artists(figure, "wake-up")
    assert list(noise.get_xdata()) == [4.1, 11.0, 61.0]


def test_the_median_run_is_drawn_over_time() -> None:
    result = pts.replayed()
    figure = render("replay_over_time", result, "op7")
    shown = of_runs(result["replay_over_time"], median_runs(result["replays"]), "")
    lines = {line.get_label(): line.get_ydata()[:-1].tolist() for line in artists(figure, "line", 0)}
    assert lines == {"planned": shown["planned_iops"].tolist(), "replayed": shown["iops"].tolist()}


def test_without_deadlines_nothing_is_late() -> None:
    figure = render("replay_fidelity", pts.replayed(asap=True), "op7")
    assert "no deadline" in texts(figure, "nothing")[0]
    over_time = render("replay_over_time", pts.replayed(asap=True), "op7")
    assert legend(over_time) == ["in the trace", "replayed"]
    assert rows(render("replay", pts.replayed(asap=True), "op7"))[0].endswith("trace's time")


def test_latencies_of_replay_and_trace_by_direction() -> None:
    result = pts.replayed()
    bins = result["replay_latency"]
    figure = render("replay_latency", result, "op7")
    for operation in ("read", "write"):
        for source in ("replay", "trace"):
            (line,) = artists(figure, f"{operation} {source}")
            part = bins[bins["counted"] & (bins["operation"] == operation) & (bins["source"] == source)]
            assert line.get_xdata()[-1] == pytest.approx(part["latency_ns"].max() / 1e3)
            assert (line.get_ydata()[0], len(line.get_xdata())) == (1.0, part["latency_ns"].nunique())
    assert not artists(figure, "flush replay")
    without = result | {"replay_latency": bins[bins["source"] == "replay"]}
    assert "has no latencies" in texts(render("replay_latency", without, "op7"), "note")[0]


def test_phases_follow_each_other() -> None:
    result = pts.replayed(traces=("boot", "sqlite"), phases=(("degradation", 3), ("recovery", 2)))
    figure = render("replay_phases", result, "op7")
    *_, line = artists(figure, "line", 0)
    assert list(line.get_xdata()) == [1, 2, 3, 4, 5]
    assert list(line.get_ydata()) == pytest.approx(result["replay_passes"]["access_time_us"].tolist())
    assert texts(figure, "phase name") == ["degradation", "recovery"]
    assert legend(figure) == ["boot", "sqlite", "set of 2 traces"]


def test_figures_of_an_engine_without_single_requests_say_so() -> None:
    result = dict(pts.replayed())
    unknown = ["access_time_us", "bandwidth_mib_s", "score"]
    result["replays"] = result["replays"].assign(**dict.fromkeys(unknown, float("nan")))
    for name in ("replay_issue_errors", "replay_over_time", "replay_latency"):
        result[name] = result[name].iloc[:0]
    for name in ("replay", "replay_fidelity", "replay_latency", "replay_over_time"):
        assert len(texts(render(name, result, "op7"), "nothing")) == 1


def test_the_median_run_is_one_that_was_measured() -> None:
    runs = pts.replayed()["replays"]
    counted = runs[runs["counted"]]
    assert median_runs(runs)["access_time_us"].iloc[0] == counted["access_time_us"].median()
    two = pd.concat([runs[~runs["counted"]], counted.head(2)])
    assert median_runs(two)["access_time_us"].iloc[0] == counted.head(2)["access_time_us"].min()


def test_a_single_load_has_its_percentiles_limit_and_answer() -> None:
    rates = frames.loads(("op7",))
    figure = load_curve(rates)
    (line,) = drawn(figure, "percentile")
    assert list(line.get_xdata()) == [1000, 2000, 4000, 8000, 9000]
    assert list(line.get_ydata()) == rates["response_us"].dropna().tolist()
    (limit,) = drawn(figure, "limit")
    assert limit.get_ydata()[0] == 700
    (band,) = drawn(figure, "answer")
    assert (band.get_x(), band.get_x() + band.get_width()) == (8000, 9000)
    assert len(drawn(figure, "median")) == 1
    assert not drawn(figure, "p99"), "it is the limited percentile"
    (share,) = drawn(figure, "delivered", 1)
    assert list(share.get_ydata()) == [100] * 6
    assert texts(figure, "note") == [
        "8,000 IOPS with p99 below 700 µs (between 8,000 and 9,000)",
        "not shown: 1 rate whose requests were not all served",
    ]


def test_undecided_rates_are_hollow_and_inside_the_answer() -> None:
    figure = load_curve(frames.loads(("op7",), undecided=True))
    (hollow,) = drawn(figure, "undecided")
    assert list(hollow.get_xdata()) == [9000]
    (band,) = drawn(figure, "answer")
    assert band.get_x() + band.get_width() == 10_000
    assert texts(figure, "note")[0] == "8,000 IOPS with p99 below 700 µs (between 8,000 and 10,000; 9,000 undecided)"


def test_each_drive_has_a_curve_and_an_answer() -> None:
    figure = load_curve(frames.loads(("op7", "op28")))
    assert [line.get_label() for line in drawn(figure, "percentile")] == ["op7", "op28"]
    assert len(drawn(figure, "answer")) == 2
    assert len(drawn(figure, "limit")) == 1
    assert texts(figure, "note")[1].startswith("op28: 16,000 IOPS")


def test_a_load_without_a_finite_percentile_is_drawn() -> None:
    rates = frames.loads(("op7",)).assign(response_us=math.nan, low_us=math.nan, high_us=math.nan, outcome="fails")
    figure = load_curve(rates.assign(p99_response_us=math.nan))
    assert texts(figure, "note")[0] == "no measured rate keeps p99 below 700 µs; 1,000 IOPS fail"
    assert not drawn(figure, "answer")


def test_uncounted_rates_are_refused() -> None:
    with pytest.raises(ValueError, match="no rate that counts"):
        load_curve(frames.loads(("op7",)).assign(counted=False))
