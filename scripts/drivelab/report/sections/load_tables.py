"""Tables of loads: the answer of each, and every rate of the search."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from drivelab.analysis.values.load_values import LoadAnswer, load_answers
from drivelab.criteria.rate_search import PASSES
from drivelab.criteria.tail_interval import CONFIDENCE, WARM_UP
from drivelab.plan.loops import time_words
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.marks import taint_mark
from drivelab.report.numbers import DASH, is_missing
from drivelab.report.table import Field, cell, fields, percentages, table, words
from drivelab.report.view import Cell, Table

_MANY_ROWS = 24
"""A longer table starts folded."""


def load_tables(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Yield the answers, then the rates of all loads of a test; nothing without a load."""
    if not inputs.of_key("load_rates", key):
        return
    answers = list(load_answers(inputs.frame_of("load_rates", key)))
    runs = [_run(answer) if len(answers) > 1 else "" for answer in answers]
    rates = [{**row, "of": run} for answer, run in zip(answers, runs, strict=True) for row in rows_of(answer.rates)]
    yield table(
        f"{inputs.anchors[key]}-load-answer",
        "Most IOPS within the limit",
        (
            words("Load", lambda row: Cell(row[0].label, row[1])),
            words("Answer", lambda row: Cell(row[0].sentence(), tone="bad" * (row[0].found.passing_iops is None))),
            Field("Highest that passes, IOPS", lambda row: cell(row[0].found.passing_iops, missing=DASH)),
            Field("Lowest that fails, IOPS", lambda row: cell(row[0].found.failing_iops, missing=DASH)),
            words("Doubts", lambda row: _doubts(row[0])),
        ),
        zip(answers, runs, strict=True),
        "The answer is an interval: from the highest rate that passes to the lowest that fails. A rate passes if the "
        f"whole {100 * CONFIDENCE:g} % interval of the percentile lies below the limit, and fails if it lies above. "
        "The answer holds for the runtime of a rate, on a drive in the state that the protocol prepares.",
        sources=inputs.sources_of(rates),
    )
    yield table(
        f"{inputs.anchors[key]}-load-rates",
        "Every rate of the search",
        (
            *fields(rate_iops="Offered, IOPS"),
            words("Outcome", "outcome", _remarks, lambda row: "" if row["outcome"] == PASSES else "mark"),
            *fields(achieved_iops="Completed, IOPS"),
            Field("Response time", _response),
            *(Field(title, partial(_time, column=column)) for title, column in _TIMES),
            *fields(requests="Requests", effective_requests="Effective requests"),
            Field("Late issue", partial(_time, column="late_issue_us")),
            *percentages(depth_limited_pct="Waited for depth"),
            *fields(most_in_flight="Most in flight"),
        ),
        rates,
        "A response time counts from when the request is due, so it includes the time in a queue. Below the response "
        "time of the limited percentile: its interval. Requests in one queue are late together, so they hold less "
        "information than independent ones; effective requests are the independent requests that hold as much. The "
        f"first {100 * WARM_UP:g} % of the requests of a measurement do not count. Late issue: the same percentile of "
        "the host's own delay. Waited for depth: share of the requests that found the most allowed requests in flight.",
        sources=inputs.sources_of(rates),
        collapsed=len(rates) > _MANY_ROWS,
    )


def _run(answer: LoadAnswer) -> str:
    first = answer.rates.iloc[0]
    return f"run {first['run']}, step {int(first['step']) + 1}"


def _doubts(answer: LoadAnswer) -> Cell:
    """Return the doubts about the rates at the limit, and about undecided rates between them."""
    found = answer.found
    rates = (found.passing_iops, found.failing_iops, *found.undecided)
    of_rates = [_doubts_of(row) for row in rows_of(answer.rates) if row["rate_iops"] in rates]
    doubts = dict.fromkeys(doubt for doubts in of_rates for doubt in doubts)
    return Cell("; ".join(doubts) or "none", tone="bad" if doubts else "")


def _doubts_of(row: Row) -> list[str]:
    return [*map(str, row["doubts"]), *filter(None, [taint_mark(row)])]


def _remarks(row: Row) -> str:
    return "; ".join([*_doubts_of(row), *filter(None, [row["of"]])])


_TIMES = (("Median", "p50_response_us"), ("p99", "p99_response_us"), ("Maximum", "max_response_us"))


def _time(row: Row, column: str) -> Cell:
    return cell(row[column], time_words, missing=DASH)


def _response(row: Row) -> Cell:
    low = DASH if is_missing(row["low_us"]) else time_words(row["low_us"])
    high = "no upper end" if is_missing(row["high_us"]) else time_words(row["high_us"])
    return cell(row["response_us"], time_words, f"{low} to {high}", missing="not served")
