"""Idle time, streams, and the effects of the PTS tests at demo scale."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from made_bench import PROGRESS, Bench
from made_traces import Row, write
from stages import lines, plan_of, plans_of, run_stages

from drivelab.collect.collect import collect
from drivelab.core.errors import UserError
from drivelab.run.idle import run_idle
from drivelab.run.loop import run_loop
from drivelab.tables.labels import cell_labels
from drivelab.tables.windows import windows_table


def test_idle_time_passes_once_and_is_recorded() -> None:
    bench = Bench()
    for _ in range(2):  # the second call is a resumed measurement
        run_idle(bench, PROGRESS, 3, {"time_s": 300.0, "phase": "recovery", "phase_pass": 2})  # type: ignore[arg-type]
    assert bench.idled == [300.0]
    (line,) = bench.lines
    assert line == {
        "event": "idle", "step": 3, "idle_s": 300.0, "phase": "recovery", "phase_pass": 2, "directory": "cells/3-idle",
    }  # fmt: skip


def test_each_idle_step_passes_its_own_time() -> None:
    bench = Bench()
    for step in (1, 2):
        run_idle(bench, PROGRESS, step, {"time_s": 1.0})  # type: ignore[arg-type]
    assert bench.idled == [1.0, 1.0]
    assert "phase" not in bench.lines[0]


def test_idle_time_reports_progress_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench("wall")
    now = [50.0]
    monkeypatch.setattr("drivelab.run.idle.time.monotonic", lambda: now[0])

    def pass_time(seconds: float) -> None:
        bench.idled.append(seconds)
        now[0] += seconds

    bench.device.idle = pass_time
    fractions: list[float] = []
    run_idle(bench, SimpleNamespace(say=lambda text, fraction: fractions.append(fraction)), 0, {"time_s": 2.5})  # type: ignore[arg-type]
    assert bench.idled == [1.0, 1.0, 0.5]
    assert fractions == pytest.approx([0.0, 0.4, 0.8])
    assert bench.lines[0]["started_s"] == 50.0


STREAMS: dict[str, Any] = {
    "streams": {"kind": "individual", "most": 1, "threads": [4, 1], "queue_depth": [8], "runtime_s": 1.0,
                "range_share": 1.0},
    "until": {"window": 5, "max_rounds": 25, "data_excursion": 0.2, "slope_excursion": 0.1,
              "track": [{"streams": "all", "threads": 4, "queue_depth": 8, "metric": "iops"}]},
}  # fmt: skip


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    rows = [Row(n, operation="read" if n % 4 else "write", offset_bytes=(40 - n) << 24) for n in range(40)]
    return write(tmp_path / "trace.parquet", rows)


def test_streams_run_until_their_tracked_variables_are_steady(trace: Path) -> None:
    bench = Bench(trace=trace)
    bench.iops = lambda number: 100.0 if number % 2 else 100.0 * number  # the second combination never settles
    list(run_loop(bench, PROGRESS, 0, STREAMS))  # type: ignore[arg-type]
    assert [cell.label for cell in bench.cells] == ["RND 4KiB 100/0 T4Q8", "RND 4KiB 100/0 T1Q8"] * 5
    assert bench.lines[0]["event"] == "streams"
    assert bench.lines[0]["trace"] == "t"
    assert bench.lines[0]["cells"][0]["read_share"] == 100
    assert bench.lines[-1] == {"event": "loop", "step": 0, "rounds": 5, "steady": True}


def test_an_interrupted_loop_of_streams_resumes_only_with_its_trace(trace: Path) -> None:
    bench = Bench(trace=trace)
    list(run_loop(bench, PROGRESS, 0, STREAMS))  # type: ignore[arg-type]
    bench.lines = bench.lines[:4]  # the line of the streams, and one and a half rounds
    bench.cells.clear()
    list(run_loop(bench, PROGRESS, 0, STREAMS))  # type: ignore[arg-type]
    assert len(bench.cells) == 7
    assert sum(line["event"] == "streams" for line in bench.lines) == 1
    bench.lines = bench.lines[:4]
    write(trace, [Row(1)])
    with pytest.raises(UserError, match="this is not the trace that a/m/0-run1 began with"):
        list(run_loop(bench, PROGRESS, 0, STREAMS))  # type: ignore[arg-type]


CELL = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1,
        "runtime_s": 1.0}  # fmt: skip
REPEATS = {"cells": [CELL, {**CELL, "read_share": 0}], "cold_rounds": 1, "until": {"threshold": 0.02, "metric": "iops"}}


@pytest.mark.parametrize(("over_after", "rounds"), [(1, 3), (8, 3), (9, 5), (12, 5), (13, 7)])
def test_a_loop_out_of_time_ends_when_its_rounds_have_a_result(over_after: int, rounds: int) -> None:
    """Rates never agree. Two cells and a cold round: three rounds end with cell 8, five with 12, seven with 16."""
    bench = Bench()
    bench.iops = lambda number: 100.0 * (1 + number % 3)
    steps = run_loop(bench, PROGRESS, 0, REPEATS)  # type: ignore[arg-type]
    next(steps)
    cells = 1
    with suppress(StopIteration):
        while True:
            steps.send(cells >= over_after)
            cells += 1
    assert bench.lines[-1]["event"] == "loop"
    assert bench.lines[-1]["rounds"] == rounds
    assert bench.lines[-1].get("ended_by") == (None if rounds == 7 else "time")
    assert len(bench.cells) == 2 * (1 + rounds)


def test_streams_on_the_virtual_clock(project: Path) -> None:
    """From the plan to the tables, at demo scale."""
    labels = ["SEQ 4KiB 0/100", "RND 4KiB 100/0", "RND 4KiB 0/100"]
    plan = plan_of("{protocol: rwsw-streams, scale: demo, trace: a}", "traces: {a: {shipped: sqlite-inserts}}\n")
    run_stages(plan)
    (streams_line,) = lines(plan, "streams")
    assert [trace["sha256"] for trace in plan.subject["traces"]] == [streams_line["trace_sha256"]]
    cells = collect(plan.recording_path, reduced=True)["cells"]
    first = cells[cells["round"] == 1]
    assert cell_labels(first) == labels
    assert (first["iops"] > 0).all()
    windows = windows_table(cells, {0: plan.subject["measure"][0]["loop"]["until"]})
    assert sorted(windows["variable"]) == sorted(labels)
    assert windows["reached"].all(), "every variable of the demo must be steady"


Measured = Callable[[str], list[pd.DataFrame]]


@pytest.fixture
def measured(project: Path) -> Measured:
    """Return a function that gives table `cells` of each measurement of a protocol on a drive that does not vary."""

    def run(protocol: str) -> list[pd.DataFrame]:
        measurement = f"{{protocol: {protocol}, scale: demo}}"
        plans = plans_of(f"name: mine\nclock: virtual\ndrives: [op7-512e]\nmeasurements: [{measurement}]\n")
        return [collect(run_stages(plan), reduced=True)["cells"] for plan in plans]

    return run


def test_write_saturation_has_a_cliff_and_a_plateau(measured: Measured) -> None:
    (cells,) = measured("pts-write-saturation-steady")
    until_steady, histogram = (cells[cells["step"] == step]["iops"] for step in (0, 1))
    assert until_steady.iloc[0] > 4 * until_steady.iloc[-1]
    assert until_steady.iloc[1] < 0.6 * until_steady.iloc[0]
    assert histogram.mean() == pytest.approx(until_steady.iloc[-1], rel=0.1)


def test_a_smaller_active_range_is_faster(measured: Measured) -> None:
    steady = [cells.groupby("round")["iops"].mean().iloc[-5:].mean() for cells in measured("pts-active-range")]
    assert steady == sorted(steady)
    assert steady[-1] > 2 * steady[0]
