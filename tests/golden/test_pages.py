"""The printed numbers of others through the importer and the report's pages: they come out as they were printed."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.deltas.differences import differences_table, known_differences
from drivelab.imported import printed
from drivelab.imported.imported_report import report_of
from drivelab.imported.tables import Recording, tables_of
from drivelab.report.document import Page, Report, Table
from drivelab.report.html import render
from drivelab.report.numbers import DASH, number
from drivelab.report.sections.proof import tables_of as tables_shown

HERE = Path(__file__).parent
MB_PER_MIB = 2**20 / 1e6


def recordings(name: str, unit: str | None = None) -> list[Recording]:
    return printed.read(HERE / f"{name}.csv", "drive", unit=unit)


def report(name: str, unit: str | None = None) -> Report:
    result = recordings(name, unit)
    return report_of(tables_of(result), result, HERE / f"{name}.csv", datetime(2026, 1, 1, tzinfo=UTC))


def page(name: str, unit: str | None = None) -> Page:
    (only,) = report(name, unit).pages
    return only


def rows(name: str) -> list[dict[str, str]]:
    with (HERE / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def cells(table: Table) -> dict[tuple[str, str], str]:
    """Texts of a table by heading of row and column."""
    heads = [column.text for column in table.columns]
    return {(row[0].text, head): one.text for row in table.rows for head, one in zip(heads[1:], row[1:], strict=True)}


def matrix(one: Page, words: str) -> dict[tuple[str, str], str]:
    """The table of block sizes and mixes whose caption begins so."""
    (result,) = [table for table in one.tables if table.caption.startswith(words) and "R/W mix" in table.caption]
    return cells(result)


def size(row: dict[str, str]) -> str:
    """A block size as the report names it."""
    text = row.get("block_size") or f"{float(row['block_size_kib']):g}k"
    return {"0.5k": "512B", "512": "512B"}.get(text, text.replace("k", "KiB"))


def test_the_determination_has_the_averages_that_tkperf_printed() -> None:
    determination = page("tkperf_dc_s4600_steady_state").determination
    assert determination is not None
    result = {row[0].text: row[1:] for row in determination.rows}
    assert [one.text for one in result["Steady state reached"]] == ["YES"] * 3
    expected = []
    for row, factor in zip(rows("tkperf_dc_s4600_steady_state"), (1, 1 / 1024, 1), strict=True):
        expected.append(number(factor * float(row["average_printed"])))
    assert [one.text for one in result["Average"]] == expected == ["61,265", "485.9", "56.68"]
    assert [one.text for one in result["Window (rounds)"]] == [
        f"2{DASH}6 of 6", f"1{DASH}5 of 5", f"1{DASH}5 of 5"
    ]  # fmt: skip
    assert result["Values in the window"][0].text == "60,546 · 60,013 · 62,932 · 61,774 · 61,061"
    assert result["Allowed maximum data excursion"][0].text == number(0.2 * 61265.2)
    assert result["Measured maximum data excursion"][0].text == "2,919"


def test_the_window_averages_have_all_the_digits_that_were_printed() -> None:
    windows = tables_of(recordings("tkperf_dc_s4600_steady_state"))["steady_state"]
    printed_so = [row["average_printed"] for row in rows("tkperf_dc_s4600_steady_state")]
    found = [value * factor for value, factor in zip(windows["average"], (1, 1024, 1), strict=True)]
    assert [f"{found[0]:.0f}", f"{found[1]:.0f}", f"{found[2]:.7f}"] == printed_so


@pytest.mark.parametrize(
    ("name", "unit", "words"),
    [
        ("tkperf_dc_s4600_iops", "IOPS", "IOPS"),
        ("snia_slides_slc100gb_iops", "IOPS", "IOPS"),
        ("snia_slides_slc100gb_throughput_mb_s", "MiB/s", "Throughput"),
    ],
)
def test_tables_of_blocks_and_mixes(name: str, unit: str, words: str) -> None:
    result = matrix(page(name, unit), words)
    given = rows(name)
    expected = {(size(row), mix): number(float(text)) for row in given for mix, text in row.items() if "/" in mix}
    assert result == expected
    assert len(result) == len(given) * len([mix for mix in given[0] if "/" in mix])


def test_the_iops_table_is_seven_by_eight() -> None:
    assert len(matrix(page("tkperf_dc_s4600_iops", "IOPS"), "IOPS")) == 7 * 8


def test_throughput_of_tkperf_which_calls_mebibytes_megabytes() -> None:
    """The average of its 1024k window, 497561 KiB/s, is printed as 485.9 MB/s in the table."""
    result = matrix(page("tkperf_dc_s4600_throughput", "MiB/s"), "Throughput")
    for row in rows("tkperf_dc_s4600_throughput"):
        assert result[size(row), "100/0"] == number(float(row["read_mb_s"]))
        assert result[size(row), "0/100"] == number(float(row["write_mb_s"]))
    assert result["1024KiB", "0/100"] == number(497561 / 1024)


def test_a_column_in_megabytes_is_in_megabytes_unless_told_otherwise() -> None:
    result = tables_of(recordings("tkperf_dc_s4600_throughput"))["summary"]
    assert result["value"].iloc[0] * MB_PER_MIB == pytest.approx(485.027)


@pytest.mark.parametrize("name", ["tkperf_dc_s4600_latency_ms", "snia_slides_slc100gb_latency_ms"])
def test_mean_and_maximum_latency(name: str) -> None:
    one = page(name, "ms")
    tables = {"mean": matrix(one, "Mean latency"), "max": matrix(one, "Maximum latency")}
    in_ms = {
        words for words in tables if any(re.match(f"{words}[a-z]* latency, ms", t.caption, re.I) for t in one.tables)
    }
    for row in rows(name):
        for mix in ("0/100", "65/35", "100/0"):
            factor = 1 if row["statistic"] in in_ms else 1000
            assert tables[row["statistic"]][size(row), mix] == number(round(factor * float(row[mix]), 6))


CAPACITIES = ("512GB", "1TB", "2TB")


def test_the_table_by_capacity_has_values_and_deltas() -> None:
    (table,) = [one for one in report("solidigm_p41_plus").comparison_tables if "capacity" in one.caption]
    heads = [column.text for column in table.columns]
    assert [head.partition(" ")[0].replace("\xa0", "") for head in heads[1:]] == ["512GB", "1TB", "Δ", "2TB", "Δ"]
    result = {row[0].text: row[1:] for row in table.rows}
    for row in rows("solidigm_p41_plus"):
        load = f" T{row['threads']}Q{row['queue_depth']}" if row["threads"] else ""
        small, middle, middle_delta, large, large_delta = result[row["parameter"] + load]
        factor = {"MB/s": 1 / MB_PER_MIB, "KIOPS": 1000, "score": 1}[row["unit"]]
        values = [factor * float(row[capacity]) for capacity in CAPACITIES]
        assert [one.value for one in (small, middle, large)] == pytest.approx(values)
        assert middle_delta.value == pytest.approx(100 * (values[1] / values[0] - 1), abs=1e-9)
        assert large_delta.value == pytest.approx(100 * (values[2] / values[0] - 1), abs=1e-9)


def test_the_report_shows_the_table_by_capacity() -> None:
    (table,) = [one for one in report("solidigm_p41_plus").comparison_tables if "capacity" in one.caption]
    html = render(report("solidigm_p41_plus"))
    _, _, shown = html.partition(f'id="{table.id}"')
    shown = re.sub(r"<[^>]+>", " ", shown[: shown.index("</table>")])
    assert table.caption in shown
    words = [*(column.text for column in table.columns), *(cell.text for row in table.rows for cell in row)]
    places = [shown.find(word) for word in words]
    assert -1 not in places, [word for word, place in zip(words, places, strict=True) if place < 0]


def test_single_printed_values_prove_nothing() -> None:
    summary = tables_of(recordings("solidigm_p41_plus"))["summary"]
    deltas = deltas_table(summary, "drive-512gb")
    assert len(deltas) == 2 * len(rows("solidigm_p41_plus"))
    assert set(deltas["verdict"]) == {"cannot tell"}
    assert deltas["interval_low_pct"].isna().all()


@pytest.mark.parametrize("name", ["tkperf_dc_s4600_steady_state", "solidigm_p41_plus"])
def test_the_whole_report_says_that_it_is_imported(name: str) -> None:
    html = render(report(name))
    assert "imported" in html
    assert "not recorded" in html


def test_the_formula_of_replays_does_not_stand_under_scores_of_others() -> None:
    result = report("solidigm_p41_plus")
    assert any("score" in cell.small for table in result.comparison_tables for row in table.rows for cell in row)
    assert not [table.caption for table in tables_shown(result) if "sqrt" in table.note]


def test_that_nobody_wrote_down_when_it_was_measured_is_said() -> None:
    assert report("solidigm_p41_plus").measured == "time of measurement not recorded"


def test_conditions_are_not_made_up() -> None:
    tables = tables_of(recordings("solidigm_p41_plus"))
    conditions = tables["conditions"]
    known = conditions[conditions["value"] != "not recorded"]
    assert set(known["facet"]) == {"capacity", "protocol", "clock"}
    assert list(tables["drives"]["capacity_bytes"]) == [512 * 10**9, 10**12, 2 * 10**12]


def test_what_differs_beside_the_results_is_the_capacity() -> None:
    result = recordings("solidigm_p41_plus")
    pairs = [(result[0].drive, one.drive) for one in result[1:]]
    differences = known_differences(differences_table(tables_of(result)["conditions"], pairs))
    assert list(differences["facet"]) == ["capacity"] * 2
    assert differences["intended"].all()
