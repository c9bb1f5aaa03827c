"""The table of scores over several measurements."""

from __future__ import annotations

from typing import Any

import pandas as pd

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.values.rows import row
from drivelab.analysis.values.scores import with_scores
from drivelab.analysis.values.summary import pooled
from drivelab.report.first_screen import FirstScreen
from drivelab.report.headline import headline_tests
from drivelab.report.inputs import Inputs
from drivelab.report.sections.comparison import set_scores

SETS = {"storage": ["a", "b"], "overall": ["storage", "c"]}


def value(drive: str, measurement: str, amount: float) -> dict[str, Any]:
    recording = f"{drive}/{measurement}/abc-run1"
    key = {"recording": recording, "drive": drive, "serial": drive.upper(), "protocol": "p", "measurement": measurement,
           "run": 1, "reduced": False, "virtual": False, "clock": "wall"}  # fmt: skip
    result = {"value": amount, "n": 3, "samples": [amount] * 3, "scope": "runs", "evidence": [recording],
              "rse_pct": 1.0, "spread_low": amount, "spread_high": amount, "statistic": "median of 3 warm runs",
              "verdict": "repeats agree", "taint_reason": None, "asymptote_pct": None}  # fmt: skip
    return row(key, "replay x", "score", **result)


def inputs(values: list[dict[str, Any]]) -> Inputs:
    summary = with_scores(values, SETS, "old", pooled(values))
    tables: dict[str, pd.DataFrame] = {"summary": summary, "deltas": deltas_table(summary, "old")}
    return Inputs.of(tables, {"basis": "old", "scores": SETS, "margin_pct": 5.0, "confidence_pct": 95.0}, [])


def test_scores_of_each_drive_and_what_a_drive_lacks() -> None:
    values = [value(drive, name, amount) for name in "abc" for drive, amount in (("old", 1.0), ("new", 2.0))]
    values += [value("third", "a", 1.0), value("third", "c", 1.0)]
    given = inputs(values)
    (table,) = set_scores(given)
    assert table.caption == "Scores, old = 100"
    assert [column.text for column in table.columns] == ["Score", "Of", "old", "new", "third", "new against old",
                                                         "third against old"]  # fmt: skip
    by_name = {line[0].text: line for line in table.rows}
    assert [cell.text for cell in by_name["storage"][1:4]] == ["a and b", "100", "200"]
    assert by_name["storage"][4].small == "no b"
    assert by_name["overall"][4].small == "no storage"
    assert given.measurements == ("a", "b", "c"), "a score has no page"
    assert [delta["measurement"] for delta in headline_tests(given, "deltas")][:2] == ["storage", "overall"]


def test_a_study_without_scores_has_no_table() -> None:
    assert not list(set_scores(Inputs.of({}, {"basis": "old"}, [])))


def test_more_of_a_score_is_better_on_the_first_screen() -> None:
    values = [value(drive, name, amount) for name in "abc" for drive, amount in (("old", 1.0), ("new", 1.02))]
    glance = FirstScreen(inputs(values)).glance()
    assert glance is not None
    assert {line[0].text: line[0].small for line in glance.rows}["Score of 2 results"] == "score"
    assert [cell.text for cell in glance.rows[0][1:]] == ["102", "100"], "the best first, without a unit"


def test_drives_with_the_same_value_share_the_first_place() -> None:
    def sentence(**amounts: float) -> str:
        values = [value(drive, name, amount) for name in "abc" for drive, amount in amounts.items()]
        return FirstScreen(inputs(values)).sentence()

    assert "new and third share the best value of 3 drives" in sentence(old=1.0, third=1.02, new=1.02)
    assert ": 102, against 100 of old, the basis." in sentence(old=1.0, third=1.02, new=1.02)
    assert "new and old (the basis) share the best value" in sentence(old=1.0, new=1.0, third=0.9)
    assert "new has the best value of 3 drives" in sentence(old=1.0, third=1.02, new=1.05)
