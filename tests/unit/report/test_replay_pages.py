"""Replays in the report."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import replay_frames
from said import headline_sentences

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.values.summary import summary_table
from drivelab.analysis.verdict import CANNOT_TELL
from drivelab.replay.evaluation.metrics import SCORE_FORMULA
from drivelab.report.content import build
from drivelab.report.document import Page, Report, Table
from drivelab.report.sections.replays import REPLAY_TABLES
from drivelab.tables.schemas import SCHEMAS

STUDY = {"name": "demo", "title": "Replays", "basis": "op7", "rse_threshold_pct": 5.0}
FORMULA = SCORE_FORMULA[0].upper() + SCORE_FORMULA[1:]


def study_of(slower: dict[str, Any], **options: Any) -> tuple[Report, dict[str, pd.DataFrame]]:
    """Return report and tables of op7, changed by `slower`, and op28."""
    tables = replay_frames.together(
        replay_frames.tables("op7", requests=600, **options, **slower),
        replay_frames.tables("op28", requests=600, slowness=0.8, **options),
    )
    empty = {name: SCHEMAS[name].empty_table().to_pandas() for name in ("cells", "steady_state")}
    summary = summary_table(empty["cells"], empty["steady_state"], tables["replays"], tables["replay_passes"])
    complete = {**tables, **empty, "summary": summary, "deltas": deltas_table(summary, "op7")}
    return build(complete, STUDY, [], [], None), complete


def page(report: Report, drive: str) -> Page:
    return next(page for page in report.pages if page.drive == drive)


def table(page: Page, ending: str) -> Table:
    return next(table for table in page.tables if table.id.endswith(ending))


def by_name(table: Table) -> dict[str, list[Any]]:
    return {row[0].text: list(row[1:]) for row in table.rows}


def test_fidelity_shows_the_hosts_wake_up_with_the_issue_errors() -> None:
    report, tables = study_of({})
    fidelity = by_name(table(page(report, "op7"), "-fidelity"))
    runs = tables["replays"][(tables["replays"]["drive"] == "op7") & tables["replays"]["counted"]]
    (cell,) = fidelity["Issue error, 95 %, µs"]
    assert float(cell.text) == pytest.approx(runs["issue_error_p95_us"].median(), rel=1e-3)
    assert cell.small.endswith("this host's wake-up 11")
    assert fidelity["Duration ratio"][0].text == "1.0000"


def test_without_deadlines_there_is_no_issue_error() -> None:
    report, _ = study_of({}, asap=True)
    fidelity = by_name(table(page(report, "op7"), "-fidelity"))
    assert fidelity["Issue error, 50 %, µs"][0].text == "no deadlines"
    assert fidelity["Replayed"][0].text == "as soon as possible at the trace's depth"
    assert any("Duration, s" in column.text for column in page(report, "op7").result.columns)  # type: ignore[union-attr]


def test_a_partial_replay_of_a_lossy_trace_is_marked_everywhere() -> None:
    report, _ = study_of({"partial": True, "lost": 7})
    (banner,) = [banner for banner in report.banners if banner.id == "partial"]
    assert list(banner.affected) == [page(report, "op7").id]
    assert "300 of 600 requests completed or failed" in banner.reasons[0]
    assert "partial replay" in page(report, "op7").labels
    assert "partial replay" not in page(report, "op28").labels
    fidelity = by_name(table(page(report, "op7"), "-fidelity"))
    assert (fidelity["Requests issued"][0].text, fidelity["Requests issued"][0].tone) == ("300", "bad")
    assert "lossy: the trace lacks 7 events" in fidelity["Replayed"][0].small
    assert page(report, "op7").result.rows[0][-1].text.startswith("partial")  # type: ignore[union-attr]
    assert report.verdict_table is not None
    assert {row[1].verdict.partition(" [")[0] for row in report.verdict_table.rows} == {CANNOT_TELL}


def test_a_set_has_its_passes_and_one_headline() -> None:
    report, tables = study_of({}, traces=("boot", "sqlite", "compile"))
    assert [sentence.partition(", access time")[0] for sentence in headline_sentences(tables, STUDY)] == [
        "In these recordings, op28 is 1.25 times as fast as op7: set of 3 traces"
    ]
    passes = table(page(report, "op7"), "-passes")
    assert [row[0].text for row in passes.rows] == ["1, cold", "2, warm", "3, warm", "4, warm"]
    assert passes.caption == "Passes over boot, sqlite, compile"
    assert FORMULA in passes.note
    labels = [row[0].text for row in page(report, "op7").result.rows]  # type: ignore[union-attr]
    assert labels == ["set of 3 traces", "replay boot", "replay sqlite", "replay compile"]
    streams = table(page(report, "op7"), "-stream-streams")
    assert all(sum(row[0].small == name for row in streams.rows) <= 9 for name in ("boot", "sqlite", "compile"))


def test_each_declared_table_is_on_the_page_of_a_set() -> None:
    report, _ = study_of({}, traces=("boot", "sqlite"))
    (anchor,) = {page.id for page in report.pages if page.drive == "op7"}
    expected = {f"{anchor}-{declared.id}" for declared in REPLAY_TABLES} - {f"{anchor}-applications"}
    assert expected <= {table.id for table in page(report, "op7").tables}


def test_phases_have_a_result_and_their_passes() -> None:
    report, _ = study_of({}, traces=("boot", "sqlite"), phases=(("degradation", 3), ("recovery", 2)))
    result = page(report, "op7").result
    assert result is not None
    assert [row[0].text for row in result.rows][:2] == ["set of 2 traces, degradation", "set of 2 traces, recovery"]
    assert result.rows[0][-1].text == "in a phase"
    assert [row[0].text for row in table(page(report, "op7"), "-passes").rows][-2:] == ["recovery 1", "recovery 2"]


def test_fidelity_shows_in_flight_in_the_trace_and_a_known_wake_up() -> None:
    report, tables = study_of({})
    fidelity = table(page(report, "op7"), "-fidelity")
    assert "in the trace" in by_name(fidelity)["In flight, maximum"][0].small
    assert "wakes a sleeping program" in fidelity.note
    wakeups = [name for name in tables["replays"] if name.startswith("wakeup_")]
    runs = tables["replays"].assign(**dict.fromkeys(wakeups))
    report = build({**tables, "replays": runs}, STUDY, [], [], None)
    assert "wakes a sleeping program" not in table(page(report, "op7"), "-fidelity").note


def test_a_planned_single_run_gives_no_warning() -> None:
    _, tables = study_of({}, runs=1)
    planned = {name: tables[name].assign(asked_passes=1) for name in ("replays", "replay_passes")}
    summary = summary_table(tables["cells"], tables["steady_state"], planned["replays"], planned["replay_passes"])
    complete = {**tables, **planned, "summary": summary, "deltas": deltas_table(summary, "op7")}
    report = build(complete, STUDY, [], [], None)
    assert not [banner for banner in report.banners if banner.id == "not-repeatable"]
    assert page(report, "op7").result.rows[0][-1].text == "single run"  # type: ignore[union-attr]
    assert all(sentence.startswith("In these recordings, ") for sentence in headline_sentences(complete, STUDY))
