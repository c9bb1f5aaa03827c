"""Tables of loads: the answer of each, and every rate of the search."""

from __future__ import annotations

from collections.abc import Iterator

from drivelab.analysis.values.load_values import LoadAnswer, load_answers
from drivelab.criteria.rate_search import PASSES
from drivelab.criteria.tail_interval import CONFIDENCE, WARM_UP
from drivelab.plan.loops import time_words
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.measurement_outcome import taint_mark
from drivelab.report.numbers import DASH, is_missing
from drivelab.report.table_fields import number_cell, percent_cell
from drivelab.report.view import Cell, Column, Table

_MANY_ROWS = 24
"""A longer table starts folded."""


def load_tables(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Yield the answers, then the rates of all loads of a test; nothing without a load."""
    if not inputs.of_key("load_rates", key):
        return
    answers = list(load_answers(inputs.frame_of("load_rates", key)))
    sources = inputs.sources(each.rates["recording"].iloc[0] for each in answers)
    several = len(answers) > 1
    yield Table(
        id=f"{inputs.anchors[key]}-load-answer",
        caption="Most IOPS within the limit",
        columns=(
            Column("Load", numeric=False),
            Column("Answer", numeric=False),
            Column("Highest that passes, IOPS"),
            Column("Lowest that fails, IOPS"),
            Column("Doubts", numeric=False),
        ),
        rows=tuple(_answer(each, several) for each in answers),
        note="The answer is an interval: from the highest rate that passes to the lowest that fails. A rate passes if "
        f"the whole {100 * CONFIDENCE:g} % interval of the percentile lies below the limit, and fails if it lies "
        "above. The answer holds for the runtime of a rate, on a drive in the state that the protocol prepares.",
        sources=sources,
    )
    rows = [(each, row) for each in answers for row in rows_of(each.rates)]
    names = ("Offered, IOPS", "Outcome", "Completed, IOPS", "Response time", "Median", "p99", "Maximum", "Requests",
             "Effective requests", "Late issue", "Waited for depth", "Most in flight")  # fmt: skip
    yield Table(
        id=f"{inputs.anchors[key]}-load-rates",
        caption="Every rate of the search",
        columns=tuple(Column(name, numeric=name != "Outcome") for name in names),
        rows=tuple(_rate(row, _run(each) if several else "") for each, row in rows),
        note="A response time counts from when the request is due, so it includes the time in a queue. Below the "
        "response time of the limited percentile: its interval. Requests in one queue are late together, so they hold "
        "less information than independent ones; effective requests are the independent requests that hold as much. "
        f"The first {100 * WARM_UP:g} % of the requests of a measurement do not count. Late issue: the same percentile "
        "of the host's own delay. Waited for depth: share of the requests that found the most allowed requests in "
        "flight.",
        sources=sources,
        collapsed=len(rows) > _MANY_ROWS,
    )


def _run(each: LoadAnswer) -> str:
    first = each.rates.iloc[0]
    return f"run {first['run']}, step {int(first['step']) + 1}"


def _answer(each: LoadAnswer, several: bool) -> tuple[Cell, ...]:
    found, doubts = each.found, list(dict.fromkeys(_doubts(each)))
    return (
        Cell(each.label, small=_run(each) if several else ""),
        Cell(each.sentence(), tone="bad" if found.passing_iops is None else ""),
        *(Cell(DASH) if iops is None else number_cell(iops) for iops in (found.passing_iops, found.failing_iops)),
        Cell("; ".join(doubts) or "none", tone="bad" if doubts else ""),
    )


def _doubts(each: LoadAnswer) -> Iterator[str]:
    """Yield the doubts about the rates at the limit, and about undecided rates between them."""
    for row in rows_of(each.rates):
        if row["rate_iops"] in (each.found.passing_iops, each.found.failing_iops, *each.found.undecided):
            yield from map(str, row["doubts"])
            if mark := taint_mark(row):
                yield mark


def _rate(row: Row, run: str) -> tuple[Cell, ...]:
    marks = [*map(str, row["doubts"]), *filter(None, [taint_mark(row)]), *filter(None, [run])]
    low, high = row["low_us"], row["high_us"]
    upper = "no upper end" if is_missing(high) else time_words(high)
    interval = f"{DASH if is_missing(low) else time_words(low)} to {upper}"
    return (
        number_cell(row["rate_iops"]),
        Cell(str(row["outcome"]), small="; ".join(marks), tone="" if row["outcome"] == PASSES else "mark"),
        number_cell(row["achieved_iops"]),
        _time(row["response_us"], interval),
        *(_time(row[name]) for name in ("p50_response_us", "p99_response_us", "max_response_us")),
        *(number_cell(row[name]) for name in ("requests", "effective_requests")),
        _time(row["late_issue_us"]),
        percent_cell(row["depth_limited_pct"]),
        number_cell(row["most_in_flight"]),
    )


def _time(value: object, small: str = "") -> Cell:
    if is_missing(value):
        return Cell("not served" if small else DASH, small=small, tone="missing")
    return Cell(time_words(float(value)), small=small, value=float(value))  # type: ignore[arg-type]
