"""Tables that a figure cannot show are refused with the reason."""

from __future__ import annotations

import comparison_frames
import pandas as pd
import protocol_frames as frames
import pts_frames as pts
import pytest

from drivelab.figures.base.sheets import render
from drivelab.figures.kinds.cells import measurement_2d
from drivelab.figures.kinds.deltas import comparison
from drivelab.figures.kinds.latency import latency_distribution
from drivelab.figures.kinds.replays import replay
from drivelab.figures.kinds.soaks import saturation_bytes, saturation_time
from drivelab.figures.kinds.steady_state import convergence, window
from drivelab.figures.registry import FIGURES


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return {
        "cells": pd.concat([pts.cells(sizes=(4096,)), pts.soak(measurement="pts-iops")], ignore_index=True).assign(
            started=pd.Timestamp("2026-01-01T00:00:00Z"),
            alignment_offset_bytes=0,
            throttled=False,
            range_start=0.0,
            range_share=1.0,
        ),
        "telemetry": comparison_frames.heated()["telemetry"],
        "application_runs": comparison_frames.applications(),
        "load_rates": comparison_frames.loads(("op7",)),
        "steady_state": pts.steady_state(),
        "drives": pts.drives(op7=1 << 26),
        "series": frames.together()["series"].assign(phase=None, workload="RND 4KiB 0/100"),
        "latency_bins": pts.latency_bins(),
        **pts.replayed(traces=("a", "b"), phases=(("steady", 2),)),
        "deltas": pts.deltas(),
        "summary": pts.summary(),
    }


MAY_BE_EMPTY = {"replay_issue_errors", "replay_over_time", "replay_latency"}
"""Tables that are empty for engines that do not report requests, or without deadlines."""

WITHOUT_SAMPLES = {"telemetry", "series"}
"""Tables that are empty for cells below a second, or on a host without samples."""

WITHOUT_WINDOWS = {"repeats", "demand_intensity", "depth_ramp", "bathtub",
                   "demand_intensity_max", "round_history", "zones"}  # fmt: skip
"""Figures of any loop, steady or not."""


@pytest.mark.parametrize("name", FIGURES)
def test_missing_tables_and_rows(tables: dict[str, pd.DataFrame], name: str) -> None:
    for table in FIGURES[name].required:
        with pytest.raises(ValueError, match=f"needs the table\\(s\\) .*{table}"):
            render(name, {other: frame for other, frame in tables.items() if other != table}, "op7")
        optional = WITHOUT_SAMPLES if name == "telemetry_strip" else MAY_BE_EMPTY
        if table not in optional and not (table == "steady_state" and name in WITHOUT_WINDOWS):
            with pytest.raises(ValueError, match=f"table '{table}' has no rows"):
                render(name, tables | {table: tables[table].iloc[:0]}, "op7")


def test_unknown_names(tables: dict[str, pd.DataFrame]) -> None:
    with pytest.raises(ValueError, match="no figure 'pie'"):
        render("pie", tables, "op7")
    with pytest.raises(ValueError, match="'gap_ms' is not a metric"):
        measurement_2d(tables["cells"].assign(gap_ms=1.0), tables["steady_state"], metric="gap_ms")
    with pytest.raises(ValueError, match="merge the latency bins"):
        measurement_2d(pts.cells(sizes=(4096,)), pts.steady_state(), metric="p99_latency_us")


@pytest.mark.parametrize("column", ["drive", "run", "measurement"])
def test_a_loop_of_two_measurements(column: str) -> None:
    cells = pts.cells(sizes=(4096,))
    other = cells.assign(**{column: 2 if column == "run" else "other"})
    for figure in (convergence, measurement_2d):
        with pytest.raises(ValueError, match=f"2 values of '{column}'"):
            figure(pd.concat([cells, other]), pts.steady_state())


def test_windows_that_do_not_belong() -> None:
    cells, state = pts.cells(sizes=(4096,)), pts.steady_state()
    with pytest.raises(ValueError, match=r"holds 2 windows \(RND 4KiB 0/100.*expected one of each"):
        window(pd.concat([state, state]))
    with pytest.raises(ValueError, match="2 values for a window of 5 rounds"):
        window(state.assign(values=[[1.0, 2.0]]))
    with pytest.raises(ValueError, match="R is the round number"):
        window(state.assign(intercept=state["intercept"] + 2 * state["slope"] + 500))
    with pytest.raises(ValueError, match="no window for step 2"):
        measurement_2d(cells.assign(step=2), state)
    with pytest.raises(ValueError, match="two windows for step 1"):
        measurement_2d(cells, pd.concat([state, state.assign(window_start=1)]))
    with pytest.raises(ValueError, match="no rounds inside"):
        measurement_2d(cells, state.assign(window_start=21, window_end=25))
    with pytest.raises(ValueError, match="several steps or depths"):
        measurement_2d(pd.concat([cells, cells.assign(queue_depth=1)]), state)


def test_soaks_that_cannot_share_axes() -> None:
    cells = pts.soak()
    with pytest.raises(ValueError, match="2 values of 'block_size_bytes'"):
        saturation_time(pd.concat([cells, cells.assign(block_size_bytes=8192)]))
    with pytest.raises(ValueError, match="no value of 'iops, mean_latency_us'"):
        saturation_time(cells.assign(iops=float("nan"), mean_latency_us=float("nan")))
    with pytest.raises(ValueError, match="0 capacities for drive 'op7'"):
        saturation_bytes(cells, pts.drives(op28=1 << 26))


def test_latencies_of_different_work() -> None:
    with pytest.raises(ValueError, match="2 values of 'workload'"):
        latency_distribution(pd.concat([pts.latency_bins(), pts.latency_bins(share=100)]))
    with pytest.raises(ValueError, match="no soaks"):
        latency_distribution(pts.latency_bins(kind="loop"))
    with pytest.raises(ValueError, match="has no rows"):
        latency_distribution(pts.latency_bins().assign(count=0))


def test_replays_without_a_result() -> None:
    result = pts.replayed("op7", "op28")
    runs, passes = result["replays"], result["replay_passes"]
    with pytest.raises(ValueError, match="no counted run of op28"):
        replay(runs.assign(counted=runs["counted"] & (runs["drive"] == "op7")), passes)
    uncounted = result | {"replays": runs.assign(counted=False)}
    for name in ("replay_fidelity", "replay_latency", "replay_over_time"):
        with pytest.raises(ValueError, match="no counted run"):
            render(name, uncounted, "op7")
    with pytest.raises(ValueError, match="no phases"):
        render("replay_phases", pts.replayed(), "op7")
    with pytest.raises(ValueError, match="2 values of 'recording'"):
        render("replay_phases", pts.replayed("op7", "op28", phases=(("steady", 1),)), "op7")


def test_deltas_that_do_not_compare() -> None:
    deltas = pts.deltas()
    with pytest.raises(ValueError, match="2 values of 'basis'"):
        comparison(pd.concat([deltas, deltas.assign(basis="op14")]))
    with pytest.raises(ValueError, match="a cell twice"):
        comparison(pd.concat([deltas, deltas]))
