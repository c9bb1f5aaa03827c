"""The fidelity of replays to their plan."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

from drivelab.core.grouping import grouped
from drivelab.report.document import Cell, Table
from drivelab.report.inputs import Inputs, Key
from drivelab.report.numbers import is_missing, number, percent, text
from drivelab.report.sections.replays import RATIO, counted
from drivelab.report.table import Rows, Show, cell, sideways, table, words

_MOST_COLUMNS = 4
"""With more traces than this, each has a row instead of a column."""


def _values(runs: Rows, name: str) -> list[float]:
    return [float(run[name]) for run in runs if not is_missing(run[name])]


def _middle(
    runs: Rows, name: str, show: Show = number, *, worst: bool = False, in_trace: bool = False, due: bool = False
) -> Cell:
    """Return the median of a property, with the worst run and the trace; `due` if it needs deadlines."""
    values = _values(runs, name)
    if not values:
        return _unknown(runs) if due else cell(None)
    median = statistics.median(values)
    details = [f"worst {number(max(values))}"] if worst and max(values) != median else []
    details += [f"in the trace {number(value)}" for value in _values(runs, f"trace_{name}")[:1]] if in_trace else []
    over = in_trace and worst and any(str(mark).startswith("overloaded:") for run in runs for mark in run["marks"])
    return cell(median, show, "; ".join(details), "bad" if over else "")


def _unknown(runs: Rows) -> Cell:
    return Cell("no deadlines") if all(run["timing_mode"] == "asap" for run in runs) else cell(None)


def _manner(runs: Rows) -> Cell:
    in_order = ["in order of the trace"] if runs[0]["dependencies"] != "none" else []
    faults = dict.fromkeys(str(mark) for run in runs for mark in run["marks"])
    tone = "bad" if any(run["partial"] for run in runs) else ""
    return Cell(text(runs[0]["timing"]), "; ".join([f"engine {text(runs[0]['engine'])}", *in_order, *faults]), tone)


def _duration(runs: Rows) -> Cell:
    ratios, basis = _values(runs, "duration_ratio"), runs[0]["duration_basis"]
    if not ratios:
        return cell(None)
    worst = max(ratios, key=lambda value: abs(value - 1))
    details = ([] if is_missing(basis) else [str(basis)]) + [f"worst {RATIO(worst)}"]
    return cell(statistics.median(ratios), RATIO, "; ".join(details))


def _issue_error(runs: Rows, name: str) -> Cell:
    errors, wakeups = _values(runs, f"issue_error_{name}_us"), _values(runs, f"wakeup_{name}_us")
    if not errors:
        return _unknown(runs)
    host = [f"this host's wake-up {number(statistics.median(wakeups))}"] if wakeups else []
    return cell(statistics.median(errors), small="; ".join([f"worst {number(max(errors))}", *host]))


def _all_issued(runs: Rows) -> Cell:
    issued, planned = (int(min(_values(runs, name))) for name in ("requests", "planned_requests"))
    small, tone = ("all of", "") if issued == planned else ("of", "bad")
    return cell(issued, small=f"{small} {number(planned)} planned", tone=tone)


_FIDELITY = (
    words("Replayed", _manner),
    words("Duration ratio", _duration),
    *(words(f"Issue error, {n} %, µs", partial(_issue_error, name=f"p{n}")) for n in (50, 95, 99)),
    words("Issued within 50 µs", partial(_middle, name="within_50us_pct", show=percent, due=True)),
    words("Order inversions", partial(_middle, name="order_inversions", worst=True)),
    words("In flight, maximum", partial(_middle, name="most_in_flight", worst=True, in_trace=True)),
    words("In flight, average", partial(_middle, name="mean_in_flight", worst=True, in_trace=True)),
    words("Overlapping in flight", partial(_middle, name="overlapping_requests", in_trace=True)),
    words("Delayed by the queue depth limit", partial(_middle, name="late_by_depth_pct", show=percent, due=True)),
    words("Delayed by a dependency", partial(_middle, name="late_by_dependency_pct", show=percent, due=True)),
    words("Requests issued", _all_issued),
    words("Failed requests", partial(_middle, name="errors", worst=True)),
)


def fidelity_table(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Yield the comparison of the counted runs of each trace with their plan; nothing without a replay."""
    runs = counted(inputs.of_key("replays", key))
    if not runs:
        return
    by_trace = grouped(runs, lambda run: str(run["trace"]))
    wakeup = (
        "Wake-up: how late this host wakes a sleeping program, measured just before each run. No replay can be more "
        "punctual than its host. "
    ) * any(not is_missing(run["wakeup_p50_us"]) for run in runs)
    note = (
        "Medians of the counted runs; the worst run is below. Issue error: time from the deadline of a request to its "
        f"issue. {wakeup}Duration ratio: replayed time divided by planned time, for the stated basis. In flight: all "
        "operations; the average covers the time with at least one in flight. Overlapping: requests that share bytes "
        "with another in flight, one of which changes them."
    )
    trace = words("Trace", lambda of_trace: str(of_trace[0]["trace"]))
    fidelity = table(f"{inputs.anchors[key]}-fidelity", "Fidelity of the replay", (trace, *_FIDELITY),
                     by_trace.values(), note, sources=inputs.sources_of(runs))  # fmt: skip
    yield fidelity if len(by_trace) > _MOST_COLUMNS else sideways(fidelity)
