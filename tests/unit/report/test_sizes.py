"""One table for measurements with different block sizes, with the values of the summary."""

from __future__ import annotations

import comparison_frames
import pandas as pd
import pytest

from drivelab.report.inputs import Inputs
from drivelab.report.numbers import DASH, number
from drivelab.report.sections.comparison import size_tables

METRIC = "bandwidth_mib_s"


def tables() -> dict[str, pd.DataFrame]:
    """Return tables of two drives and sizes; the summary averages rounds 2 and 3."""
    frames = comparison_frames.single_sizes(drives=("op7", "op28"))
    cells = frames["cells"][frames["cells"]["round"] > 1]
    summary = cells.groupby(["drive", "measurement", "workload", "recording"], as_index=False, sort=False)[
        METRIC
    ].mean()
    summary = summary.rename(columns={"workload": "cell_label", METRIC: "value"})
    recordings = [[name] for name in summary["recording"]]
    frames["summary"] = summary.drop(columns="recording").assign(
        metric=METRIC, kind="speed", unit="MiB/s", n=2, taint_reason=None, statistic="window average",
        verdict="steady", scope="rounds", mad=None, interval_low=None, interval_high=None, spread_low=summary["value"],
        spread_high=summary["value"], rse_pct=None, recordings=recordings, evidence=recordings,
        samples=[[value] * 2 for value in summary["value"]],
    )  # fmt: skip
    return frames


def inputs(frames: dict[str, pd.DataFrame]) -> Inputs:
    return Inputs.of(frames, {"basis": "op7"}, [])


def test_a_row_for_each_size_and_mix_and_a_column_for_each_drive() -> None:
    frames = tables()
    (table,) = size_tables(inputs(frames))
    assert table.group == "throughput"
    assert table.caption == "throughput: throughput, MiB/s, by block size"
    assert [column.text for column in table.columns] == ["Block size", "R/W mix %", "op7", "op28"]
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        ("128KiB", "SEQ 0/100"), ("128KiB", "SEQ 100/0"), ("1024KiB", "SEQ 0/100"), ("1024KiB", "SEQ 100/0")
    ]  # fmt: skip
    values = frames["summary"].set_index(["drive", "cell_label"])["value"]
    for row in table.rows:
        for drive, cell in zip(("op7", "op28"), row[2:], strict=True):
            value = values[drive, f"SEQ {row[0].text} {row[1].text.split()[1]}"]
            assert (cell.value, cell.text) == (pytest.approx(value), number(value))
            assert cell.proof is not None
    assert {name.partition("/")[0] for name in table.sources} == {"op7", "op28"}


def test_a_missing_size_is_a_dash() -> None:
    frames = tables()
    missing = (frames["summary"]["drive"] == "op28") & (frames["summary"]["cell_label"] == "SEQ 128KiB 0/100")
    frames["summary"] = frames["summary"][~missing]
    (table,) = size_tables(inputs(frames))
    assert [row[3].text == DASH for row in table.rows] == [True, False, False, False]


@pytest.mark.parametrize("change", [
    pytest.param(lambda t: {**t, "cells": t["cells"].assign(block_size_bytes=4096)}, id="one size"),
    pytest.param(lambda t: {**t, "steady_state": t["steady_state"].iloc[:0]}, id="repeats"),
    pytest.param(lambda t: {**t, "steady_state": t["steady_state"].assign(
        metric=["iops", *t["steady_state"]["metric"].iloc[1:]])}, id="two metrics"),
    pytest.param(lambda t: {name: frame[frame["measurement"] == "throughput.128KiB"] for name, frame in t.items()},
                 id="one measurement"),
])  # fmt: skip
def test_other_measurements_have_no_table_by_size(change) -> None:  # type: ignore[no-untyped-def]
    assert not list(size_tables(inputs(change(tables()))))
