"""Measurements that differ in their block size in one table, with the values of the summary."""

from __future__ import annotations

import comparison_frames
import pandas as pd
import pytest

from drivelab.report.inputs import Inputs
from drivelab.report.numbers import DASH, number
from drivelab.report.sizes import size_tables

METRIC = "bandwidth_mib_s"


def tables() -> dict[str, pd.DataFrame]:
    """Of two drives and sizes; the summary has the averages of rounds 2 and 3."""
    found = comparison_frames.single_sizes(drives=("op7", "op28"))
    cells = found["cells"][found["cells"]["round"] > 1]
    summary = cells.groupby(["drive", "measurement", "workload", "recording"], as_index=False, sort=False)[
        METRIC
    ].mean()
    summary = summary.rename(columns={"workload": "cell_label", METRIC: "value"})
    recordings = [[name] for name in summary["recording"]]
    found["summary"] = summary.drop(columns="recording").assign(
        metric=METRIC, kind="speed", unit="MiB/s", n=2, taint_reason=None, statistic="window average",
        verdict="steady", scope="rounds", mad=None, interval_low=None, interval_high=None, spread_low=summary["value"],
        spread_high=summary["value"], rse_pct=None, recordings=recordings, evidence=recordings,
        samples=[[value] * 2 for value in summary["value"]],
    )  # fmt: skip
    return found


def inputs(found: dict[str, pd.DataFrame]) -> Inputs:
    return Inputs.of(found, {"basis": "op7"}, [])


def test_a_row_for_each_size_and_mix_and_a_column_for_each_drive() -> None:
    found = tables()
    (table,) = size_tables(inputs(found))
    assert table.group == "throughput"
    assert table.caption == "throughput: throughput, MiB/s, by block size"
    assert [column.text for column in table.columns] == ["Block size", "R/W mix %", "op7", "op28"]
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        ("128KiB", "SEQ 0/100"), ("128KiB", "SEQ 100/0"), ("1024KiB", "SEQ 0/100"), ("1024KiB", "SEQ 100/0")
    ]  # fmt: skip
    values = found["summary"].set_index(["drive", "cell_label"])["value"]
    for row in table.rows:
        for drive, cell in zip(("op7", "op28"), row[2:], strict=True):
            value = values[drive, f"SEQ {row[0].text} {row[1].text.split()[1]}"]
            assert (cell.value, cell.text) == (pytest.approx(value), number(value))
            assert cell.proof is not None
    assert {name.partition("/")[0] for name in table.sources} == {"op7", "op28"}


def test_what_a_drive_was_not_measured_at_is_a_dash() -> None:
    found = tables()
    gone = (found["summary"]["drive"] == "op28") & (found["summary"]["cell_label"] == "SEQ 128KiB 0/100")
    found["summary"] = found["summary"][~gone]
    (table,) = size_tables(inputs(found))
    assert [row[3].text == DASH for row in table.rows] == [True, False, False, False]


@pytest.mark.parametrize("spoilt", [
    pytest.param(lambda t: {**t, "cells": t["cells"].assign(block_size_bytes=4096)}, id="one size"),
    pytest.param(lambda t: {**t, "steady_state": t["steady_state"].iloc[:0]}, id="repeats"),
    pytest.param(lambda t: {**t, "steady_state": t["steady_state"].assign(
        metric=["iops", *t["steady_state"]["metric"].iloc[1:]])}, id="two metrics"),
    pytest.param(lambda t: {name: frame[frame["measurement"] == "throughput.128KiB"] for name, frame in t.items()},
                 id="one measurement"),
])  # fmt: skip
def test_what_does_not_differ_in_its_size_has_no_such_table(spoilt) -> None:  # type: ignore[no-untyped-def]
    assert size_tables(inputs(spoilt(tables()))) == ()
