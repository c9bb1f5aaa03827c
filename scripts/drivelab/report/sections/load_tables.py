"""Tables of loads: the answer of each, and every rate of the search."""

from __future__ import annotations

from drivelab.analysis.values.load_values import LoadAnswer, load_answers
from drivelab.criteria.rate_search import PASSES
from drivelab.criteria.tail_interval import CONFIDENCE, WARM_UP
from drivelab.plan.loops import time_words
from drivelab.report.document import Cell
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.marks import taint_mark
from drivelab.report.numbers import DASH, is_missing
from drivelab.report.table import Field, PageTable, Rows, cell, fields, percentages, words


def _answers(inputs: Inputs, key: Key) -> Rows:
    """Select the `answer` of each load with its `run`, which is empty for a single load, and its `recordings`."""
    rates = inputs.frame_of("load_rates", key)
    answers = list(load_answers(rates)) if len(rates) else []
    return [
        {"answer": answer, "run": _run(answer) if len(answers) > 1 else "", "recordings": answer.rates["recording"]}
        for answer in answers
    ]


def _rates(inputs: Inputs, key: Key) -> Rows:
    return [{**rate, "of": row["run"]} for row in _answers(inputs, key) for rate in rows_of(row["answer"].rates)]


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


def _answer(row: Row) -> Cell:
    return Cell(row["answer"].sentence(), tone="bad" * (row["answer"].found.passing_iops is None))


def _response(row: Row) -> Cell:
    low = DASH if is_missing(row["low_us"]) else time_words(row["low_us"])
    high = "no upper end" if is_missing(row["high_us"]) else time_words(row["high_us"])
    return cell(row["response_us"], time_words, f"{low} to {high}", missing="not served")


LOAD_TABLES = (
    PageTable(
        "load-answer", "Most IOPS within the limit", _answers,
        (
            words("Load", lambda row: Cell(row["answer"].label, row["run"])),
            words("Answer", _answer),
            Field("Highest that passes, IOPS", lambda row: row["answer"].found.passing_iops, missing=DASH),
            Field("Lowest that fails, IOPS", lambda row: row["answer"].found.failing_iops, missing=DASH),
            words("Doubts", lambda row: _doubts(row["answer"])),
        ),
        "The answer is an interval: from the highest rate that passes to the lowest that fails. A rate passes if the "
        f"whole {100 * CONFIDENCE:g} % interval of the percentile lies below the limit, and fails if it lies above. "
        "The answer holds for the runtime of a rate, on a drive in the state that the protocol prepares.",
    ),
    PageTable(
        "load-rates", "Every rate of the search", _rates,
        (
            *fields(rate_iops="Offered, IOPS"),
            words("Outcome", "outcome", _remarks, lambda row: "" if row["outcome"] == PASSES else "mark"),
            *fields(achieved_iops="Completed, IOPS"),
            Field("Response time", _response),
            *fields(time_words, DASH, p50_response_us="Median", p99_response_us="p99", max_response_us="Maximum"),
            *fields(requests="Requests", effective_requests="Effective requests"),
            *fields(time_words, DASH, late_issue_us="Late issue"),
            *percentages(depth_limited_pct="Waited for depth"),
            *fields(most_in_flight="Most in flight"),
        ),
        "A response time counts from when the request is due, so it includes the time in a queue. Below the response "
        "time of the limited percentile: its interval. Requests in one queue are late together, so they hold less "
        "information than independent ones; effective requests are the independent requests that hold as much. The "
        f"first {100 * WARM_UP:g} % of the requests of a measurement do not count. Late issue: the same percentile of "
        "the host's own delay. Waited for depth: share of the requests that found the most allowed requests in flight.",
        collapsed_above=24,
    ),
)  # fmt: skip
"""Tables of the loads of a test: the answers, then the rates."""
