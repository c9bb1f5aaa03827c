"""Scores of several measurements, relative to the basis."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.values.rows import row
from drivelab.analysis.values.scores import with_scores
from drivelab.analysis.values.summary import pooled

LABELS = {"score": "set of 2 traces", "duration_s": "application compile", "figure_of_merit": "figure of merit"}


def value(
    drive: str, measurement: str, amount: float, metric: str = "score", run: int = 1, **other: Any
) -> dict[str, Any]:
    recording = f"{drive}/{measurement}/abc-run{run}"
    key = {"recording": recording, "drive": drive, "serial": drive.upper(), "protocol": "p", "measurement": measurement,
           "run": run, "reduced": False, "virtual": False, "clock": "wall"}  # fmt: skip
    result = {"value": amount, "n": 3, "samples": [amount] * 3, "scope": "runs", "evidence": [recording],
              "rse_pct": 1.0, "spread_low": amount, "spread_high": amount, "statistic": "median of 3 warm runs",
              "verdict": "repeats agree", "taint_reason": None, "asymptote_pct": None}  # fmt: skip
    return row(key, other.pop("label", LABELS[metric]), metric, **result | other)


def scores(values: list[dict[str, Any]], **sets: list[str]) -> pd.DataFrame:
    table = with_scores(values, sets, "a", pooled(values))
    return table[table["protocol"] == "score"].set_index(["measurement", "drive"])


@given(st.lists(st.tuples(*[st.floats(1e-3, 1e6)] * 3), min_size=1, max_size=5), st.floats(0.01, 100))
def test_a_score_is_the_mean_ratio_whatever_the_units(members: list[tuple[float, float, float]], unit: float) -> None:
    """The basis has 100; the unit of a member changes nothing; neither does the order of the drives b and c."""
    values = [value(drive, f"m{n}", amount * (unit if n == 0 else 1))
              for n, amounts in enumerate(members) for drive, amount in zip("abc", amounts, strict=True)]  # fmt: skip
    found = scores(values, all=[f"m{n}" for n in range(len(members))])["value"]
    assert found["all", "a"] == pytest.approx(100)
    for place, drive in enumerate("bc", 1):
        ratios = [amounts[place] / amounts[0] for amounts in members]
        assert found["all", drive] == pytest.approx(100 * math.prod(ratios) ** (1 / len(ratios)), rel=1e-9)


def test_the_interval_of_a_score_includes_the_scatter_of_the_basis() -> None:
    of_runs = {"a": [9.0, 10.0, 11.5], "b": [10.0, 10.1, 10.2]}
    values = [value(drive, "m", of_runs[drive][run], run=run) for drive in "ab" for run in range(3)]
    values += [value("aa", "m", 20.0, run=run, reduced=run == 2) for run in (1, 2)]  # two rows before that of b
    found, ends = scores(values, s=["m"]), ["interval_low", "interval_high"]
    delta = deltas_table(found.reset_index(), "a").set_index("comparison").loc["b"]
    assert found.loc[("s", "b"), ends].tolist() == pytest.approx([100 + delta[f"{end}_pct"] for end in ends])
    assert found.loc[("s", "a"), ends].isna().all(), "100 by definition"


def test_half_the_duration_is_twice_the_score() -> None:
    values = [value("a", "m", 20.0, "duration_s"), value("b", "m", 10.0, "duration_s")]
    assert scores(values, s=["m"])["value"]["s", "b"] == pytest.approx(200)


def test_a_set_represents_its_traces_and_variants_count_together() -> None:
    values = [value(drive, name, amount) for drive, amount in (("a", 10.0), ("b", 40.0)) for name in ("m.1", "m.2")]
    values += [value(drive, "m.1", 5.0, label="replay x") for drive in "ab"]
    assert scores(values, s=["m"])["value"]["s", "b"] == pytest.approx(400)
    assert ("s", "b") not in scores(values[:3], s=["m"]).index, "a variant is missing"


def test_scores_of_scores() -> None:
    values = [value(drive, name, amount) for name, of_b in (("m", 4.0), ("n", 1.0), ("o", 1.0))
              for drive, amount in (("a", 1.0), ("b", of_b))]  # fmt: skip
    found = scores(values, first=["m", "n"], second=["o"], overall=["first", "second"])["value"]
    assert (found["first", "b"], found["second", "b"]) == (pytest.approx(200), pytest.approx(100))
    assert found["overall", "b"] == pytest.approx(100 * math.sqrt(2))


def test_a_missing_member_leaves_no_score_never_a_smaller_set() -> None:
    values = [value("a", "m", 1.0), value("a", "n", 1.0), value("b", "m", 9.0)]
    found = scores(values, s=["m", "n"])
    assert found.index.tolist() == [("s", "a")]
    assert scores(values[2:], s=["m"]).empty, "without the basis there is nothing to relate to"


def test_doubts_about_members_are_doubts_about_the_score() -> None:
    values = [value("a", "m", 1.0), value("b", "m", 2.0), value("a", "n", 1.0),
              value("b", "n", 2.0, verdict="repeats do not agree", reduced=True, taint_reason="load: x")]  # fmt: skip
    of_b = scores(values, s=["m", "n"]).loc[("s", "b")]
    assert (of_b["verdict"], of_b["reduced"], of_b["taint_reason"]) == ("repeats do not agree", True, "load: x")
    assert of_b["recordings"] == ["b/m/abc-run1"]
    assert of_b["evidence"] == ["b/m/abc-run1", "b/n/abc-run1"]


def test_scores_are_compared_like_other_results() -> None:
    """With three runs a score has an interval, and its delta a verdict."""
    values = [value(drive, name, speed * (1 + 0.001 * run), run=run)
              for run in (1, 2, 3) for name in ("m", "n") for drive, speed in (("a", 1.0), ("b", 1.5))]  # fmt: skip
    summary = with_scores(values, {"s": ["m", "n"]}, "a", pooled(values))
    of_b = summary[(summary["measurement"] == "s") & (summary["drive"] == "b")].iloc[0]
    assert of_b["n"] == 3
    assert of_b["interval_low"] < 150 < of_b["interval_high"]
    deltas = deltas_table(summary, "a").set_index("measurement")
    assert deltas.loc["s", "delta_pct"] == pytest.approx(50)
    assert deltas.loc["s", "verdict"] == "faster beyond the margin"
