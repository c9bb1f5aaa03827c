"""Differences, findings, saturation, capacities and excluded data in the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from drivelab.analysis.verdict import FASTER_BEYOND
from drivelab.report.content import build
from drivelab.report.document import Report, Table
from drivelab.report.html import render
from drivelab.report.inputs import Inputs
from drivelab.report.numbers import DASH, MINUS, MISSING
from drivelab.report.sections.comparison import capacity_table

Tables = dict[str, pd.DataFrame]
Plans = list[dict[str, Any]]
Reported = Callable[[Tables], Report]
RUN = "1a2b3c4d5e6f-run1"


def keyed(drive: str, measurement: str) -> dict[str, Any]:
    return {"recording": f"{drive}/{measurement}/{RUN}", "drive": drive, "serial": "S", "protocol": measurement,
            "measurement": measurement, "run": 1, "reduced": False, "virtual": False, "clock": "wall"}  # fmt: skip


def texts(table: Table | None) -> list[list[str]]:
    assert table is not None
    return [[cell.text.replace("\u00a0", " ") for cell in row] for row in table.rows]


def banner(report: Report, name: str) -> Any:
    return next((banner for banner in report.banners if banner.id == name), None)


@pytest.fixture
def differences() -> pd.DataFrame:
    pair = {"basis": "op7", "comparison": "op28"}
    rows = [("pts-iops", "over-provisioning", "drive", "7 %", "28 %", True),
            ("trace-replay", "over-provisioning", "drive", "7 %", "28 %", True),
            ("pts-iops", "kernel", "host", "6.1.0-28", "6.12.1", False)]  # fmt: skip
    names = ("measurement", "facet", "kind", "basis_value", "comparison_value", "intended")
    return pd.DataFrame([{**pair, **dict(zip(names, row, strict=True))} for row in rows])


def test_unintended_differences_are_with_the_verdict_and_first_in_the_comparison(
    tables: Tables, reported: Reported, differences: pd.DataFrame
) -> None:
    report = reported({**tables, "differences": differences})
    table = report.comparison_tables[0]
    assert table.id == "ceteris-paribus"
    assert texts(table)[0] == ["kernel", "NO", "6.1.0-28", "6.12.1", "pts-iops"]
    assert texts(table)[1][-1] == "every test"
    assert report.verdict_table is not None
    assert report.verdict_table.reasons == ("also differs: kernel",)
    assert [row[1].verdict.endswith(" [1]") for row in report.verdict_table.rows] == [True] * 3 + [False] * 2
    warning = banner(report, "also-differs")
    assert warning.reasons == ("op28 against op7: kernel",)
    assert list(warning.affected.values()) == ["op28 · pts-iops"]
    intended = differences[differences["intended"]]
    assert banner(reported({**tables, "differences": intended}), "also-differs") is None


def test_conditions_not_recorded_are_one_count_and_a_folded_table(
    tables: Tables, reported: Reported, differences: pd.DataFrame
) -> None:
    of_kernel = differences["facet"] == "kernel"
    unknown = differences.assign(basis_value=differences["basis_value"].mask(of_kernel, "not recorded"))
    neither = unknown[of_kernel].assign(facet="CPU", comparison_value="not recorded")
    rows = pd.concat([unknown, neither], ignore_index=True)
    report = reported({**tables, "differences": rows})
    words = "2 conditions are not recorded on one or both sides"
    assert banner(report, "also-differs") is None, "it may be equal"
    assert banner(report, "not-recorded").reasons == (f"op28 against op7: {words}",)
    assert report.verdict_table is not None
    assert report.verdict_table.reasons == (words,)
    known, folded = report.comparison_tables[:2]
    assert [row[0] for row in texts(known)] == ["over-provisioning"]
    assert (folded.id, folded.caption, folded.collapsed) == ("conditions-not-recorded", words, True)
    assert [row[:4] for row in texts(folded)] == [
        ["kernel", "no", "not recorded", "6.12.1"], ["CPU", "no", "not recorded", "not recorded"],
    ]  # fmt: skip
    assert f"<details><summary>{words}" in render(report)


def test_conditions_that_are_meant_to_differ_need_no_warning_when_not_recorded(
    tables: Tables, reported: Reported, differences: pd.DataFrame
) -> None:
    rows = differences[differences["intended"]].assign(basis_value="not recorded")
    report = reported({**tables, "differences": rows})
    assert banner(report, "not-recorded") is None
    assert report.comparison_tables[0].caption == "1 condition is not recorded on one or both sides"


def test_a_difference_that_cannot_act_is_shown_as_such(
    tables: Tables, reported: Reported, differences: pd.DataFrame
) -> None:
    rows = differences[differences["facet"] == "kernel"].assign(
        facet="drive setting: Read-ahead", kind="cannot act", intended=True
    )
    report = reported({**tables, "differences": rows})
    assert banner(report, "also-differs") is None
    cell = report.comparison_tables[0].rows[0][1]
    assert (cell.text, cell.small) == ("cannot act", "direct I/O bypasses read-ahead")


def finding(key: dict[str, Any], detector: str, found: bool, **other: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("cell_label", "metric", "value", "threshold", "unit", "begin_s", "end_s"))
    return {**key, **nothing, "detector": detector, "found": found, "words": "", **other}


def test_the_verdict_lists_findings_and_each_page_also_other_checks(tables: Tables, reported: Reported) -> None:
    key = keyed("op7", "pts-write-saturation")
    rows = [
        finding(key, "periodic_dips", True, value=12.5, threshold=3.0, unit="s", begin_s=4.0, end_s=40.0,
                words="A dip every 12.5 s"),
        finding(key, "thermal_throttling", False),
        finding(keyed("op28", "pts-iops"), "drift", False),
    ]  # fmt: skip
    report = reported({**tables, "findings": pd.DataFrame(rows)})
    assert report.findings is not None
    assert report.findings.caption == "1 finding in 3 checks by 3 detectors"
    assert texts(report.findings) == [["Periodic dips", "A dip every 12.5 s", "12.50 s", "3 s", "4 s to 40 s"]]
    pages = {(page.drive, page.measurement): page for page in report.pages}
    page = pages["op7", "pts-write-saturation"]
    assert report.findings.rows[0][0].anchor == page.id
    assert page.findings is not None
    assert page.findings.note == "Checked without further findings: Thermal throttling."
    assert [column.text for column in page.findings.columns] == [
        "Detector", "Finding", "Statistic", "Threshold", "When"
    ]  # fmt: skip
    nothing = pages["op28", "pts-iops"].findings
    assert texts(nothing)[0][0] == "Nothing"
    assert nothing is not None
    assert nothing.note == "Checked without findings: Drift."
    assert pages["op28", "trace-replay"].findings is None


def test_findings_of_several_runs_name_the_run(tables: Tables, reported: Reported) -> None:
    key = keyed("op7", "pts-iops")
    rows = [finding({**key, "run": run}, "bimodality", True, cell_label="RND 4KiB 0/100") for run in (1, 2)]
    report = reported({**tables, "findings": pd.DataFrame(rows)})
    assert report.findings is not None
    assert [row[0].small for row in report.findings.rows] == ["op7, pts-iops, run 1", "op7, pts-iops, run 2"]
    (page,) = [page for page in report.pages if (page.drive, page.measurement) == ("op7", "pts-iops")]
    assert page.findings is not None
    assert [row[0].small for row in page.findings.rows] == ["RND 4KiB 0/100, run 1", "RND 4KiB 0/100, run 2"]


def test_findings_are_grouped_with_disturbances_first_and_without_empty_columns(
    tables: Tables, reported: Reported
) -> None:
    key = keyed("op7", "pts-write-saturation")
    rows = [
        *(finding(key, "bimodality", True, words="two modes", value=90.0, threshold=50.0, unit="pct") for _ in "123"),
        finding(key, "bathtub", True, words="a bathtub"),
        finding(key, "drift", True, words="it rises", begin_s=4.0),
    ]
    table = reported({**tables, "findings": pd.DataFrame(rows)}).findings
    assert table is not None
    parts = {part.caption: part for part in table.parts}
    assert list(parts) == ["Drift", "Bathtub", "Bimodality"]
    assert len(parts["Bimodality"].rows) == 3
    assert [column.text for column in parts["Bathtub"].columns] == ["Detector", "Finding"]
    assert [column.text for column in parts["Drift"].columns] == ["Detector", "Finding", "When"]
    assert len({part.id for part in table.parts}) == 3


CLIFF = {"cliff_time_s": 31.0, "cliff_bytes": 80 << 20, "cliff_drive_fills": 1.25, "iops_before": 12856.0,
         "iops_after": 1500.0}  # fmt: skip
NO_CLIFF = ["none found", *[DASH] * 5]


@pytest.mark.parametrize(
    ("cliff", "fields", "drift_pct", "drift", "level", "verdict"),
    [
        (CLIFF, ["yes", "31 s", "80 MiB", "1.250", "12,856", "1,500"], -0.4, f"{MINUS}0.40 %", f", drift {MINUS}0.40 %",
         "steady"),
        ({}, NO_CLIFF, -7.0, f"{MINUS}7.0 %", f", drift {MINUS}7.0 %", "steady"),
        ({}, NO_CLIFF, -3.0, f"{MINUS}3.0 %", f", drift {MINUS}3.0 %", "NOT steady"),
        ({}, NO_CLIFF, -11.0, f"{MINUS}11 %", f", still falls, drift {MINUS}11 %", "NOT steady"),
        ({}, NO_CLIFF, 11.0, "+11 %", ", still rises, drift +11 %", "NOT steady"),
        ({}, NO_CLIFF, None, MISSING, "", "steady"),
    ],
)  # fmt: skip
def test_saturation_has_its_cliff_and_its_level_with_its_drift(
    tables: Tables, reported: Reported, cliff: dict[str, Any], fields: list[str],
    drift_pct: float | None, drift: str, level: str, verdict: str,
) -> None:  # fmt: skip
    row = {
        **keyed("op7", "pts-write-saturation"), "step": 0, "cell_label": "RND 4KiB 0/100", "slices": 40,
        "cliff": bool(cliff), **dict.fromkeys(CLIFF), **cliff, "level_iops": 1486.0, "level_low_iops": 1450.0,
        "level_high_iops": 1520.0, "level_variation_pct": 1.3, "level_drift_pct": drift_pct,
        "level_steady": verdict == "steady", "level_from_s": 33.0, "level_from_drive_fills": 2.2,
        "bytes_written": 300 << 20, "drive_fills": 4.7,
    }  # fmt: skip
    report = reported({**tables, "saturation": pd.DataFrame([row])})
    page = next(p for p in report.pages if (p.drive, p.measurement) == ("op7", "pts-write-saturation"))
    table = next(table for table in page.tables if table.id.endswith("-saturation"))
    shown = [cell.text.replace("\u00a0", " ") for cell in table.rows[0]]
    assert shown == ["RND 4KiB 0/100", *fields, "1,486", "1.3 %", drift, "2.200", "4.700"]
    assert table.rows[0][7].small.replace("\u00a0", " ") == f"1,450{DASH}1,520{level}"
    assert table.rows[0][9].small == verdict
    facts = {fact.name: fact.value.replace("\u00a0", " ") for group in page.groups.values() for fact in group}
    told = f"steady by its own limits, but level NOT steady: drift {drift}"
    assert facts["Values are"] == ("steady" if verdict == "steady" else told)


def test_drives_are_ordered_by_capacity(tables: Tables, plans: Plans) -> None:
    drives = tables["drives"].assign(capacity_bytes=[1000 * 10**9, 500 * 10**9])
    (table,) = capacity_table(Inputs.of({**tables, "drives": drives}, {"basis": "op7"}, plans), "pts-iops")
    assert [column.text.replace("\u00a0", " ") for column in table.columns] == [
        "Parameter", "500 GB (op28)", "Δ op28", "1 TB (op7)"
    ]  # fmt: skip
    assert texts(table)[0] == ["RND 4KiB 0/100", "2,310", "+62 %", "1,428"]
    assert table.rows[0][2].tone == "good"


def excluded(recording: str, place: str, fault: str, words: str) -> pd.DataFrame:
    drive, measurement, _ = recording.split("/")
    row = {"recording": recording, "drive": drive, "measurement": measurement, "place": place, "fault": fault}
    return pd.DataFrame([{**row, "words": words}])


def test_an_unsound_cell_is_named_and_excluded_from_tables(tables: Tables, reported: Reported) -> None:
    cells, name = tables["cells"], f"op7/pts-write-saturation/{RUN}"
    bad = cells.index[(cells["recording"] == name) & (cells["round"] == 3)]
    cells.loc[bad, "iops"] = 987_654.0
    cells.loc[bad, "unsound"] = "not a number: its rate"
    exclusions = excluded(name, "slice 3, RND 4KiB 0/100", "not a number", "fio's output holds no number for its rate")
    report = reported({**tables, "cells": cells, "exclusions": exclusions})
    assert report.banners[0].id == "excluded"
    assert report.banners[0].reasons == (f"{name}, slice 3, RND 4KiB 0/100: fio's output holds no number for its rate",)
    page = next(p for p in report.pages if (p.drive, p.measurement) == ("op7", "pts-write-saturation"))
    soaks = next(table for table in page.tables if table.id.endswith("-soaks"))
    assert texts(soaks)[0][1] == "39"
    assert "987,654" not in {cell.text for row in soaks.rows for cell in row}


def test_an_excluded_recording_has_no_tables_and_figures(
    tables: Tables, study: dict[str, Any], plans: Plans, figures: Any
) -> None:
    name = f"op7/pts-iops/{RUN}"
    copied = name.replace("run1", "run2")
    windows = tables["steady_state"]
    again = windows[windows["recording"] == name].assign(recording=copied, run=2, average=987_654.0)
    tables |= {
        "steady_state": pd.concat([windows, again]),
        "exclusions": excluded(
            copied, "recording", "duplicated run", f"it has the same evidence as {name}, which counts"
        ),
    }
    plan = next(plan for plan in plans if plan["recording"] == name)
    two_figures = [{**figures[0], "recording": recording} for recording in (name, copied)]
    report = build(tables, study, [*plans, {**plan, "recording": copied, "run": 2}], two_figures, None)
    page = next(p for p in report.pages if (p.drive, p.measurement) == ("op7", "pts-iops"))
    assert page.determination is not None
    assert len(page.determination.columns) == 4
    assert len(page.figures) == 1
    assert copied in banner(report, "excluded").reasons[0]


def test_imported_results_say_so(tables: Tables, reported: Reported) -> None:
    summary = tables["summary"]
    for place, row in summary[summary["measurement"] == "pts-iops"].iterrows():
        summary.loc[place, "protocol"] = "imported from TKperf"
        summary.at[place, "recordings"] = [f"{row['drive']}/imported-tkperf/iops"]
    warning = banner(reported(tables), "imported")
    assert warning.title == "Imported: conditions not recorded"
    assert warning.reasons[0] == "op7 · pts-iops: imported from TKperf"
    assert len(warning.affected) == 2


def test_values_have_interval_and_deviation_unless_samples_are_few(tables: Tables, reported: Reported) -> None:
    report = reported(tables)
    all_values = report.pages[0].tables[-1]
    assert all_values.caption == "All values of this test"
    assert all_values.rows[0][1].small.replace("\u00a0", " ") == f"1,386{DASH}1,471, 95 %: 1,400{DASH}1,457, MAD 14.28"
    assert "fewer than 3" not in all_values.note
    few = tables["summary"].assign(samples=[[1.0]] * len(tables["summary"]), mad=None, interval_low=None)
    table = reported({**tables, "summary": few}).pages[0].tables[-1]
    assert "All values have fewer than 3 samples" in table.note
    assert FASTER_BEYOND in {row[1].verdict.removesuffix(" *") for row in report.verdict_table.rows}  # type: ignore[union-attr]


def test_repeats_and_samples_are_shown_separately(tables: Tables, reported: Reported) -> None:
    averages = tables["summary"]["scope"] == "rounds"
    tables["summary"].loc[averages, "n"] = 1  # a window average
    report = reported(tables)
    page = next(p for p in report.pages if (p.drive, p.measurement) == ("op7", "pts-iops"))
    assert {(row[-2].text, row[-2].small) for row in page.tables[-1].rows} == {("1", "5 rounds")}
    (table,) = (t for t in report.comparison_tables if t.group == "pts-iops" and t.id == "deltas-1")
    facts = dict(table.rows[0][1].proof.facts)  # type: ignore[union-attr]
    assert [facts[drive].partition(", ")[2] for drive in ("op7", "op28")] == ["n = 1, scatter of 5 rounds"] * 2
