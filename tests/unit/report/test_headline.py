from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from drivelab.analysis.values.rows import row
from drivelab.report.headline import first_headlines, headline_inputs, headline_tests, lead
from drivelab.report.inputs import Inputs
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS


@pytest.fixture
def paths(tmp_path: Path, tables: Any) -> dict[str, Path]:
    tables = {**tables, **{name: pd.DataFrame(columns=SCHEMAS[name].names) for name in ("conditions", "cells")}}
    names = ("summary", "deltas", "conditions", "steady_state", "replays", "cells")
    files = {name: tmp_path / f"{name}.parquet" for name in names}
    for name, path in files.items():
        io.write(tables[name], path, name)
    return files


def lines_of(paths: dict[str, Path], most: int = 3) -> list[str]:
    return first_headlines(headline_inputs(paths["summary"].parent, ["."], "op7"), most)


def test_a_verdict_on_a_busy_machine_says_so(paths: dict[str, Path]) -> None:
    quiet, deltas = lines_of(paths), io.read(paths["deltas"], "deltas")
    loaded = deltas["measurement"] == "pts-iops"
    doubt = "op7: tainted (load: others used 30 % of the host's CPU time)"
    deltas.loc[loaded, "disturbance_pct"] = 8.0
    deltas["doubts"] = [[doubt] if busy else [] for busy in loaded]
    io.write(deltas, paths["deltas"], "deltas")
    busy = lines_of(paths)
    assert busy[0] == f"{quiet[0].removesuffix('.')}, measured on a busy machine."
    assert busy[1:] == quiet[1:]
    (words,) = lead(headline_inputs(paths["summary"].parent, ["."], "op7"))
    assert " faster than op7 in " in words
    assert words.endswith("of these tests were measured on a busy machine.")


def test_what_was_not_purged_is_labelled(paths: dict[str, Path]) -> None:
    row = {"recording": "r", "drive": "op7", "measurement": "pts-iops", "facet": "purge", "kind": "drive"}
    io.write(pd.DataFrame([{**row, "value": "not purged"}]), paths["conditions"], "conditions")
    label = "(single recording, not purged, virtual drive, reduced)"
    assert [label in line for line in lines_of(paths)] == [True, False, False]


def test_a_single_drive_shows_its_first_tracked_variable(paths: dict[str, Path]) -> None:
    windows = io.read(paths["steady_state"], "steady_state")
    summary = io.read(paths["summary"], "summary")
    single = summary[summary["drive"] == "op7"].sort_values("cell_label", ascending=False)
    io.write(single, paths["summary"], "summary")
    io.write(io.read(paths["deltas"], "deltas").iloc[:0], paths["deltas"], "deltas")
    for order in (windows, windows.iloc[::-1]):
        io.write(order, paths["steady_state"], "steady_state")
        first = order[order["measurement"] == "pts-iops"].iloc[0]
        (line,) = [line for line in lines_of(paths) if line.startswith("pts-iops ")]
        assert f": {first['variable']} {first['metric']}: " in line
    assert len({*windows[windows["measurement"] == "pts-iops"]["variable"]}) > 1


def test_each_cell_leads_with_what_it_is_known_by() -> None:
    """At a limited rate drives differ in latency only, and sequential I/O is known by its throughput."""
    cells = pd.DataFrame(
        [("tasks", "office work", "random", 500.0), ("tasks", "video editing", "sequential", None),
         ("tasks", "database", "random", None)],
        columns=["measurement", "cell_label", "pattern", "rate_iops"],
    )  # fmt: skip
    key = {"drive": "a", "measurement": "tasks", "protocol": "task-synthetic"}
    labels = [*cells["cell_label"], "SEQ 4KiB 100/0"]
    summary = [row(key, label, metric, value=1.0) for label in labels
               for metric in ("iops", "bandwidth_mib_s", "mean_latency_us")]  # fmt: skip
    chosen = headline_tests(
        Inputs.of({"cells": cells, "summary": pd.DataFrame(summary)}, {"basis": None}, []), "summary"
    )
    assert {one["cell_label"]: one["metric"] for one in chosen} == dict(
        zip(labels, ("mean_latency_us", "bandwidth_mib_s", "iops", "bandwidth_mib_s"), strict=True)
    )
