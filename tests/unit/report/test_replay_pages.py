"""What the report says of replays."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import replay_frames

from drivelab.analysis.deltas import deltas_table
from drivelab.analysis.replay_metrics import SCORE_FORMULA
from drivelab.analysis.summary import summary_table
from drivelab.analysis.verdict import CANNOT_TELL
from drivelab.report.header import _seals
from drivelab.report.html import render
from drivelab.report.model import build
from drivelab.report.numbers import TIMES
from drivelab.report.view import Page, Report, Table
from drivelab.tables.schemas import SCHEMAS

STUDY = {"name": "demo", "title": "Replays", "basis": "op7", "rse_threshold_pct": 5.0}
FORMULA = SCORE_FORMULA[0].upper() + SCORE_FORMULA[1:]


def study_of(slower: dict[str, Any], **options: Any) -> tuple[Report, dict[str, pd.DataFrame]]:
    """Report and tables of op7, with what `slower` changes, and op28."""
    tables = replay_frames.together(
        replay_frames.tables("op7", requests=600, **options, **slower),
        replay_frames.tables("op28", requests=600, slowness=0.8, **options),
    )
    empty = {name: SCHEMAS[name].empty_table().to_pandas() for name in ("cells", "steady_state")}
    summary = summary_table(empty["cells"], empty["steady_state"], tables["replays"], tables["replay_passes"])
    whole = {**tables, **empty, "summary": summary, "deltas": deltas_table(summary, "op7")}
    return build(whole, STUDY, [], {}, None), whole


def page(report: Report, drive: str) -> Page:
    return next(one for one in report.pages if one.drive == drive)


def table(page_: Page, ending: str) -> Table:
    return next(one for one in page_.tables if one.id.endswith(ending))


def by_name(one: Table) -> dict[str, list[Any]]:
    return {row[0].text: list(row[1:]) for row in one.rows}


def test_the_result_stands_first_with_score_formula_and_basis() -> None:
    report, tables = study_of({})
    result = page(report, "op28").result
    assert result is not None
    assert result.note.startswith(f"{FORMULA}.")
    scores = tables["summary"][tables["summary"]["metric"] == "score"].set_index("drive")["value"]
    place = [column.text for column in result.columns].index("Score")
    (row,) = result.rows
    assert row[0].text == "Replay sqlite-inserts"
    assert row[0].small == "median of warm runs, n = 3"
    assert row[1].text == "repeats agree"
    assert row[place + 1].text == f"{scores['op28'] / scores['op7']:.3f}"
    assert result.columns[place + 1].text == f"{TIMES}\u00a0op7"
    assert page(report, "op7").result.rows[0][place + 1].text == "1.000"  # type: ignore[union-attr]
    html = render(report)
    assert html.index("Result of the replay") < html.index("Fidelity: was it replayed")
    (normalised,) = [one for one in report.comparison_tables if one.caption.endswith("scores")]
    assert [cell.small for cell in normalised.rows[0][1:]] == [
        f"1.000 {TIMES}",
        f"{scores['op28'] / scores['op7']:.3f} {TIMES}",
    ]
    shown = [one for one in (*report.comparison_tables, *page(report, "op7").tables, result)
             if any("Score" in column.text for column in one.columns)
             or any(cell.text == "score" for row in one.rows for cell in row)]  # fmt: skip
    assert all(FORMULA in one.note for one in shown)
    assert len(shown) >= 3


def test_fidelity_has_the_hosts_own_noise_beside_the_issue_errors() -> None:
    report, tables = study_of({"kernel": False})
    told = by_name(table(page(report, "op7"), "-fidelity"))
    runs = tables["replays"][(tables["replays"]["drive"] == "op7") & tables["replays"]["counted"]]
    (cell,) = told["Issue error, 95 %, µs"]
    assert float(cell.text) == pytest.approx(runs["issue_error_p95_us"].median(), rel=1e-3)
    assert cell.small.endswith("this host's wake-up 11")
    assert told["Duration ratio"][0].text == "1.0000"
    assert (told["The kernel's own view"][0].text, told["The kernel's own view"][0].small) == (
        "none", "this kernel is locked down"
    )  # fmt: skip
    seen = by_name(table(page(report, "op28"), "-fidelity"))["The kernel's own view"][0]
    assert seen.small.startswith("issue error, µs: 50 % 2.100, 95 % 9.700, 99 % 55; duration ratio 1.0002")


def test_without_deadlines_there_is_no_issue_error() -> None:
    report, _ = study_of({}, asap=True)
    told = by_name(table(page(report, "op7"), "-fidelity"))
    assert told["Issue error, 50 %, µs"][0].text == "no deadlines"
    assert told["Replayed"][0].text == "as soon as possible at the trace's depth"
    assert any("Duration, s" in column.text for column in page(report, "op7").result.columns)  # type: ignore[union-attr]


def test_a_partial_replay_of_a_lossy_trace_is_marked_everywhere() -> None:
    report, _ = study_of({"partial": True, "lost": 7})
    (banner,) = [one for one in report.banners if one.id == "partial"]
    assert [link.anchor for link in banner.affected] == [page(report, "op7").id]
    assert "300 of 600 requests completed or failed" in banner.reasons[0]
    assert "partial replay" in page(report, "op7").labels
    assert "partial replay" not in page(report, "op28").labels
    told = by_name(table(page(report, "op7"), "-fidelity"))
    assert (told["Requests issued"][0].text, told["Requests issued"][0].tone) == ("300", "bad")
    assert "lossy: the trace lacks 7 events" in told["Replayed"][0].small
    assert page(report, "op7").result.rows[0][1].text == "partial"  # type: ignore[union-attr]
    assert {one.outcome for one in report.headlines} == {CANNOT_TELL}


def test_a_set_has_its_passes_and_one_headline() -> None:
    report, _ = study_of({}, traces=("boot", "sqlite", "compile"))
    assert [headline.sentence.partition(", 1.25 times as fast")[0] for headline in report.headlines] == [
        "op28 beats op7 in access time of the set of 3 traces"
    ]
    passes = table(page(report, "op7"), "-passes")
    assert [row[0].text for row in passes.rows] == ["1, cold", "2, warm", "3, warm", "4, warm"]
    assert passes.caption == "Passes over boot, sqlite, compile"
    assert FORMULA in passes.note
    labels = [row[0].text for row in page(report, "op7").result.rows]  # type: ignore[union-attr]
    assert labels == ["Set of 3 traces", "Replay boot", "Replay sqlite", "Replay compile"]
    streams = table(page(report, "op7"), "-stream-streams")
    assert all(sum(row[0].small == name for row in streams.rows) <= 9 for name in ("boot", "sqlite", "compile"))


def test_phases_say_best_and_worst_pass() -> None:
    report, _ = study_of({}, traces=("boot", "sqlite"), phases=(("degradation", 3), ("recovery", 2)))
    result = page(report, "op7").result
    assert result is not None
    assert [row[0].text for row in result.rows][:2] == ["Set of 2 traces, degradation", "Set of 2 traces, recovery"]
    assert result.rows[0][1].text == "in a phase"
    assert [row[0].text for row in table(page(report, "op7"), "-passes").rows][-2:] == ["recovery 1", "recovery 2"]


def test_the_mapping_says_before_and_after() -> None:
    report, _ = study_of({})
    (row,) = table(page(report, "op7"), "-mapping").rows
    assert [cell.text for cell in row[1:5]] == ["modulo", "28\u00a0MiB", "83\u00a0MiB", "31\u00a0%"]
    assert row[2].small == "in the trace 30\u00a0MiB"
    assert row[6].text == "3,805"


def test_what_the_kernel_saw_of_a_run_that_does_not_count_is_shown_as_such() -> None:
    _, tables = study_of({})
    kernel = [name for name in tables["replays"] if name.startswith("kernel_")]
    runs, operations = tables["replays"].copy(), tables["replay_operations"].copy()
    runs.loc[runs["counted"], kernel] = None
    operations.loc[operations["counted"], ["seen_requests", "seen_bytes"]] = None
    report = build({**tables, "replays": runs, "replay_operations": operations}, STUDY, [], {}, None)
    (seen,) = by_name(table(page(report, "op7"), "-fidelity"))["The kernel's own view"]
    assert seen.small.startswith("of run 1, cold, which does not count; issue error, µs: 50 % 2.100")
    assert by_name(table(page(report, "op7"), "-operations"))["read"][3].text == "500"


def test_in_flight_stands_beside_the_trace_and_the_wake_up_only_where_it_is_known() -> None:
    report, tables = study_of({})
    fidelity = table(page(report, "op7"), "-fidelity")
    told = by_name(fidelity)
    assert "in the trace" in told["In flight at most"][0].small
    assert "wakes a sleeping program" in fidelity.note
    wakeups = [name for name in tables["replays"] if name.startswith("wakeup_")]
    runs = tables["replays"].assign(**dict.fromkeys(wakeups))
    report = build({**tables, "replays": runs}, STUDY, [], {}, None)
    assert "wakes a sleeping program" not in table(page(report, "op7"), "-fidelity").note


def test_a_single_run_that_was_asked_for_raises_no_alarm() -> None:
    _, tables = study_of({}, runs=1)
    asked = {name: tables[name].assign(asked_passes=1) for name in ("replays", "replay_passes")}
    summary = summary_table(tables["cells"], tables["steady_state"], asked["replays"], asked["replay_passes"])
    whole = {**tables, **asked, "summary": summary, "deltas": deltas_table(summary, "op7")}
    report = build(whole, STUDY, [], {}, None)
    assert not [one for one in report.banners if one.id == "not-repeatable"]
    assert page(report, "op7").result.rows[0][1].text == "single run"  # type: ignore[union-attr]
    assert {one.outcome for one in report.headlines} == {CANNOT_TELL}


@pytest.mark.parametrize(("clock", "told"), [("wall", "nobody wrote, by the kernel's counters"),
                                             ("virtual", "nobody wrote")])  # fmt: skip
def test_no_kernel_counts_on_the_virtual_clock(clock: str, told: str) -> None:
    assert _seals({"clock": clock, "condition": {"seals": ["nobody wrote, by the kernel's counters"]}}) == told
