"""A plan's steps in the tables: from the stages on the virtual clock to the summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from made_plans import made_plan
from stages import conditioned, lines, run_stages

from drivelab.analysis.values.recovery import idle_recovery
from drivelab.analysis.values.summary import summary_table
from drivelab.collect.collect import collect
from drivelab.plan.cell import Cell
from drivelab.run import clock_device
from drivelab.run.measure import measure
from drivelab.tables import io
from drivelab.tables.windows import windows_table

SLC = {
    "slc_cache": "2MiB", "write_buffer": "64KiB", "dies": 4, "command_us": 85, "program_us": 680,
    "slc_program_us": 150, "copy_us": 230, "idle_after_us": 50_000,
}  # fmt: skip
WRITE: dict[str, Any] = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096}
BURST = {**WRITE, "threads": 1, "queue_depth": 32, "runtime_s": 0.03}
SOAK = {**WRITE, "threads": 1, "queue_depth": 32, "slice_s": 0.05}


def tables_of(
    folder: Path, steps: list[dict[str, Any]], condition: dict[str, Any] | None = None
) -> dict[str, pd.DataFrame]:
    """Measure the steps and return the tables as read from disk."""
    recording = run_stages(made_plan(folder, steps, condition or {}, model=SLC), folder)
    tables = {}
    for name, table in collect(recording, reduced=False).items():
        io.write(table, folder / f"{name}.parquet", name)
        tables[name] = io.read(folder / f"{name}.parquet", name)
    return tables


def summary_of(tables: dict[str, pd.DataFrame], criteria: dict[int, dict[str, Any]], folder: Path) -> pd.DataFrame:
    windows = windows_table(tables["cells"], criteria)
    columns = ["recording", "step", "round", "part", "latency_ns", "count"]
    bins = io.read_part([folder / "latency_bins.parquet"], "latency_bins", columns, ("kind", "soak"))
    summary = summary_table(tables["cells"], windows, tables["replays"], tables["replay_passes"], soak_bins=bins)
    io.write(summary, folder / "summary.parquet", "summary")
    return summary


def test_host_idle_recovery_from_the_plan_to_the_summary(tmp_path: Path) -> None:
    """With a cache of 512 pages and bursts of about 350, a burst is fast if the wait before it empties the cache."""
    steps: list[dict[str, Any]] = [{"soak": {"cell": SOAK, "until": {"time_s": 1.0}}}]
    waits = (0.01, 0.2)
    for number, wait_s in enumerate(waits, start=1):
        turn = {"phase": "wait", "phase_value": f"{1000 * wait_s:g}ms", "phase_pass": number}
        bursts = {"cells": [BURST], "until": {"rounds": 5}, "cold_rounds": 2, "pause_s": wait_s}
        steps += [{"loop": {**bursts, **turn}}, {"soak": {"cell": SOAK, "until": {"time_s": 0.5}, **turn}}]
    tables = tables_of(tmp_path, steps)
    cells = tables["cells"]
    loops = cells[cells["kind"] == "loop"]
    assert loops.groupby("step")["cold"].sum().tolist() == [2, 2]
    assert loops["until"].unique().tolist() == ["rounds"]
    assert loops["pause_s"].unique().tolist() == list(waits)
    assert loops.groupby("phase_value")["idle_ms"].max().to_dict() == pytest.approx({"10ms": 10, "200ms": 200})
    assert cells.loc[cells["step"] == 0, ["phase", "phase_value", "pause_s", "until"]].isna().all(axis=None)
    for name in ("cells", "latency_bins", "series"):
        assert tables[name]["workload"].unique().tolist() in (["RND 4KiB 0/100"], []), name
    bins = tables["latency_bins"]
    assert bins.loc[bins["step"] == 3, ["phase", "phase_value", "phase_pass"]].drop_duplicates().values.tolist() == [
        ["wait", "200ms", 2]
    ]
    place = ["step", "round", "cell"]
    slowest_us = cells.set_index(place)["max_latency_us"].dropna()
    assert (bins.groupby(place)["latency_ns"].max() / 1000 <= slowest_us + 0.001).all(), "no bin is above the maximum"

    recovery = idle_recovery(cells).set_index("phase_value")
    assert recovery["bursts"].tolist() == [5, 5]
    assert recovery.loc["10ms", "ratio"] < 1.5, "too short for the drive to become idle"
    assert recovery.loc["200ms", "mean_iops"] == pytest.approx(1e6 / 85, rel=0.02)
    assert recovery.loc["200ms", "ratio"] > 1.8

    summary = summary_of(tables, {}, tmp_path)
    iops = summary[summary["metric"] == "iops"].set_index("cell_label")
    assert list(iops.index) == [
        "RND 4KiB 0/100, wait 10ms", "RND 4KiB 0/100, wait 200ms", "RND 4KiB 0/100",
        "RND 4KiB 0/100, wait 10ms soak", "RND 4KiB 0/100, wait 200ms soak",
    ]  # fmt: skip
    assert iops.loc["RND 4KiB 0/100, wait 200ms", "value"] == pytest.approx(1e6 / 85, rel=0.02)
    assert iops.loc["RND 4KiB 0/100, wait 200ms", "statistic"] == "median of 5 warm rounds"
    tails = summary[summary["metric"] == "p99_latency_us"]
    assert tails["cell_label"].tolist() == [label for label in iops.index if label[-3:] != "0ms"]


def test_points_and_unusual_settings_from_the_plan_to_the_summary(tmp_path: Path) -> None:
    demands = [(1, 1), (1, 8), (4, 8)]
    odd = {"block_size_bytes": 8192, "segments": 4, "range_bytes": 1 << 20, "range_share": 0.0625, "entropy": 0.5,
           "alignment_offset_bytes": 4096}  # fmt: skip
    cells = [{**WRITE, **odd, "threads": t, "queue_depth": q, "runtime_s": 0.05} for t, q in demands]
    of = {"read_share": 0}
    steps: list[dict[str, Any]] = [{"loop": {"cells": cells, "until": {"threshold": 0.5, "metric": "iops"}}}]
    for number, name in enumerate(("max", "min"), start=1):
        point = {"name": name, "step": 0, "of": of, "response_time_us": 1e6}
        turn = {"phase": "point", "phase_value": name, "phase_pass": number, "point": point}
        steps.append({"soak": {"cell": {**WRITE, "slice_s": 0.05}, "until": {"time_s": 0.5}, **turn}})
    tables = tables_of(tmp_path, steps)
    loop, soaks = (tables["cells"][tables["cells"]["kind"] == kind] for kind in ("loop", "soak"))
    columns = ["segments", "range_bytes", "range_share", "entropy", "alignment_offset_bytes", "until"]
    assert loop[columns].drop_duplicates().values.tolist() == [
        [4, 1 << 20, 0.0625, 0.5, 4096, "relative standard error"]
    ]
    assert (loop["p90_latency_us"] <= loop["p99_latency_us"]).all()
    assert soaks.drop_duplicates("step")["point"].tolist() == ["max", "min"]
    assert soaks.drop_duplicates("step")[["threads", "queue_depth"]].values.tolist()[1] == [1, 1]
    labels = list(dict.fromkeys(summary_of(tables, {}, tmp_path)["cell_label"]))
    swept = "RND 8KiB 0/100, unaligned by 4KiB, range 1024KiB, 4 segments, entropy 50%"
    assert labels == [
        f"{swept} T1Q1", f"{swept} T1Q8", f"{swept} T4Q8", "RND 4KiB 0/100, MAX", "RND 4KiB 0/100, MIN",
    ]  # fmt: skip


@pytest.mark.usefixtures("nothing_undone")
def test_the_gap_of_an_interrupted_soak_precedes_the_resumed_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the journal, the gap comes before the line of the interrupted part."""
    steps = [{"soak": {"cell": SOAK, "until": {"time_s": 0.4}}},
             {"loop": {"cells": [BURST], "until": {"rounds": 2}}}]  # fmt: skip
    plan = made_plan(tmp_path, steps, {}, model=SLC)
    original = clock_device.ClockDevice.run

    def killed(device: Any, cell: Cell, directory: Path, *more: Any) -> None:
        """Interrupt the soak after its third slice."""
        original(device, cell, directory, *more)
        text = (directory / "fio.json").read_text()
        third = [place for place in range(len(text)) if text.startswith("\n}\n{", place)][2]
        (directory / "fio.json").write_text(text[: third + 100])
        (directory / "exit_code").unlink()
        raise KeyboardInterrupt

    conditioned(plan, tmp_path)
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(clock_device.ClockDevice, "run", killed)
            with pytest.raises(KeyboardInterrupt):
                measure(plan, tmp_path / "conditioned.json")
    measure(plan, tmp_path / "conditioned.json")
    parts = lines(plan, "soak")
    assert [(line["finished"], line["first_slice"]) for line in parts] == [(False, 1), (False, 4), (True, 7)]
    assert sum(line["runtime_s"] for line in parts) == pytest.approx(0.4, abs=0.11)
    cells = collect(plan.recording_path, reduced=False)["cells"]
    soak = cells[cells["kind"] == "soak"]
    assert soak["round"].tolist() == list(range(1, 9))
    assert soak.loc[soak["after_gap"], "round"].tolist() == [4, 7]
    assert not cells.loc[cells["kind"] == "loop", "after_gap"].any()


def test_soaks_with_a_steady_state_rule_and_with_two_workloads(tmp_path: Path) -> None:
    """The rule uses every second slice; then two workloads run at the same time on a filled drive."""
    rule = {"every_s": 0.1, "window": 3, "data_excursion": 0.9, "slope_excursion": 0.9, "metric": "iops"}
    reads = {**WRITE, "read_share": 100, "threads": 1, "queue_depth": 4}
    steps = [{"soak": {"cell": SOAK, "until": {"time_s": 9.0, "steady_state": rule}}},
             {"soak": {"cell": {**SOAK, "beside": reads}, "until": {"time_s": 0.5}}}]  # fmt: skip
    fill = {"pattern": "sequential", "block_size_bytes": 131072, "capacity_multiple": 1, "queue_depth": 8}
    tables = tables_of(tmp_path, steps, {"fill": fill})
    steady, both = (tables["cells"][tables["cells"]["step"] == step] for step in (0, 1))
    assert steady["ended_by"].unique().tolist() == ["steady state"]
    window = steady.loc[steady["in_window"], "round"].tolist()
    assert window == list(range(len(steady) - 4, len(steady) + 1))
    assert tables["cells"]["filled"].all()
    assert steady["beside"].isna().all()
    assert both["beside"].unique().tolist() == ["RND 4KiB 100/0 T1Q4"]
    assert both["ended_by"].isna().all()
    assert not both["in_window"].any()
    summary = summary_of(tables, {}, tmp_path)
    iops = summary[summary["metric"] == "iops"].set_index("cell_label")
    name = "RND 4KiB 0/100, beside RND 4KiB 100/0 T1Q4"
    assert list(iops.index) == ["RND 4KiB 0/100", f"{name}, writes", f"{name}, reads"]
    assert iops.loc["RND 4KiB 0/100", "value"] == pytest.approx(
        steady.loc[steady["in_window"], "iops"].mean(), rel=0.05
    )
    for direction in ("write", "read"):
        ios, seconds = both[f"{direction}_ios"].sum(), both["runtime_s"].sum()
        assert iops.loc[f"{name}, {direction}s", "value"] == pytest.approx(ios / seconds, rel=0.01)
    tails = summary[summary["metric"] == "p99_latency_us"].set_index("cell_label")["value"]
    assert tails[f"{name}, writes"] != tails[f"{name}, reads"]
