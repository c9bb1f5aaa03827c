"""The tables and headline of a load."""

from __future__ import annotations

import comparison_frames as frames
import pandas as pd

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.values.load_values import load_rows
from drivelab.analysis.values.summary import pooled
from drivelab.report.inputs import Inputs
from drivelab.report.sections.steps import LOAD_TABLES

KEY = ("op7", "test")


def inputs(rates: pd.DataFrame) -> Inputs:
    values = [{**row, "asymptote_pct": None} for row in load_rows(rates)]
    summary = pooled(values)
    tables = {"load_rates": rates, "summary": summary, "deltas": deltas_table(summary, "op7")}
    return Inputs.of(tables, {"basis": "op7", "margin_pct": 5.0, "confidence_pct": 95.0}, [])


def test_the_answer_is_an_interval_with_its_doubts() -> None:
    read = inputs(frames.loads(("op7",), undecided=True))
    answer, rates = (table for declared in LOAD_TABLES for table in declared(read, KEY))
    ((load, sentence, passes, fails, doubts),) = answer.rows
    assert load.text == "RND 4KiB 70/30, poisson arrivals, p99 below 700 µs"
    assert sentence.text == "8,000 IOPS with p99 below 700 µs (between 8,000 and 10,000; 9,000 undecided)"
    assert (passes.value, fails.value) == (8000, 10_000)
    assert doubts.text == "too few requests: 200"
    outcomes = [(row[0].value, row[1].text) for row in rates.rows]
    assert outcomes == [(1000, "passes"), (2000, "passes"), (4000, "passes"), (8000, "passes"), (9000, "undecided"),
                        (10_000, "fails")]  # fmt: skip
    responses = [(row[3].text, row[3].small) for row in rates.rows]
    assert responses[3] == ("500 µs", "400 µs to 600 µs")
    assert responses[4] == ("1 ms", "800 µs to no upper end")
    assert responses[5][0] == "not served"
    assert rates.rows[4][1].small == "too few requests: 200"
