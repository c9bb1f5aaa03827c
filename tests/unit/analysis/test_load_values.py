"""The value of a load in the summary: the highest rate that passes, its bounds and its verdict."""

from __future__ import annotations

import comparison_frames as frames
import pandas as pd

from drivelab.analysis.values.load_values import load_answers, load_rows
from drivelab.tables.schemas import SCHEMAS, SHAPE


def test_the_value_is_the_highest_rate_that_passes() -> None:
    (row,) = load_rows(frames.loads(("op7",)))
    assert (row["metric"], row["value"], row["unit"], row["kind"]) == ("iops_within_limit", 8000, "IOPS", "speed")
    assert (row["spread_low"], row["spread_high"], row["samples"]) == (8000, 9000, [8000, 9000])
    assert row["verdict"] == "limit found"
    assert row["cell_label"] == "RND 4KiB 70/30, poisson arrivals, p99 below 700 µs"
    assert row["evidence"] == ["op7/test/0123456789ab-run1/cells/1-load-rate4-1"]
    computed_later = {"recordings", "mad", "interval_low", "interval_high", "asymptote_pct", *SHAPE}
    assert set(SCHEMAS["summary"].names) - computed_later <= row.keys()


def test_undecided_rates_make_the_value_a_lower_bound() -> None:
    (row,) = load_rows(frames.loads(("op7",), undecided=True))
    assert (row["value"], row["spread_high"], row["verdict"]) == (8000, 10_000, "limit open")


def test_a_load_that_never_fails_is_a_lower_bound() -> None:
    rates = frames.loads(("op7",)).query("outcome == 'passes'")
    (row,) = load_rows(rates)
    assert (row["value"], row["spread_high"], row["verdict"]) == (8000, 8000, "limit open")
    (found,) = load_answers(rates)
    assert found.sentence() == "at least 8,000 IOPS with p99 below 700 µs (no rate fails)"


def test_a_load_without_a_passing_rate_has_no_value() -> None:
    rates = frames.loads(("op7",)).assign(outcome="fails")
    assert list(load_rows(rates)) == []
    (found,) = load_answers(rates.assign(outcome="undecided"))
    assert found.sentence() == "no measured rate keeps p99 below 700 µs; 1,000 IOPS are undecided"


def test_a_host_that_is_too_slow_is_named() -> None:
    rates = frames.loads(("op7",), undecided=True)
    host = rates.assign(outcome=rates["outcome"].replace({"undecided": "host-limited", "fails": "host-limited"}))
    (found,) = load_answers(host)
    assert found.sentence() == (
        "at least 8,000 IOPS with p99 below 700 µs (no rate fails; 9,000 to 10,000 host-limited)"
    )


def test_a_tainted_rate_taints_the_value() -> None:
    rates = frames.loads(("op7",))
    rates.loc[rates["rate_iops"] == 8000, ["tainted", "taint_reason"]] = [True, "load: 40 % of the host"]
    (row,) = load_rows(rates)
    assert (row["verdict"], row["taint_reason"]) == ("tainted", "load: 40 % of the host")


def test_steps_with_one_label_are_told_apart() -> None:
    rates = frames.loads(("op7",))
    labels = [row["cell_label"] for row in load_rows(pd.concat([rates, rates.assign(step=3)]))]
    assert labels[1] == f"{labels[0]} step 3"
