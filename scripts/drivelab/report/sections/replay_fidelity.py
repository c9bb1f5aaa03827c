"""The fidelity of replays to their plan, and the changes that the mapping made to the trace."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.numbers import (
    MISSING,
    amount,
    capital,
    is_missing,
    number,
    percent,
    text,
)
from drivelab.report.sections.replay_runs import counted
from drivelab.report.table_fields import number_cell
from drivelab.report.view import Cell, Column, Table

_MOST_COLUMNS = 4
"""With more traces than this, each has a row instead of a column."""
_WAKEUP = (
    "Wake-up: how late this host wakes a sleeping program, measured just before each run. No replay can be more "
    "punctual than its host. "
)
_MAPPED = (("Footprint", "footprint"), ("Re-touched", "retouched"))


def fidelity_table(inputs: Inputs, key: Key) -> Table | None:
    """Compare the counted runs of each trace with their plan; None without a replay."""
    runs = counted(inputs.of_key("replays", key))
    if not runs:
        return None
    by_trace = {
        trace: [row for row in runs if row["trace"] == trace] for trace in dict.fromkeys(r["trace"] for r in runs)
    }

    quantities: list[tuple[str, Callable[[list[Row]], Cell]]] = [
        ("Replayed", _manner),
        ("Duration ratio", _ratio),
        *(
            (f"Issue error, {percent_} %, µs", lambda rows, name=name: _error(rows, name))
            for name, percent_ in (("p50", "50"), ("p95", "95"), ("p99", "99"))
        ),
        ("Issued within 50 µs", lambda rows: _of_deadline(rows, "within_50us_pct", percent)),
        ("Order inversions", lambda rows: _worst(rows, "order_inversions")),
        ("In flight, maximum", lambda rows: _in_flight(rows, "most")),
        ("In flight, average", lambda rows: _in_flight(rows, "mean")),
        ("Overlapping in flight", _overlapping),
        ("Delayed by the queue depth limit", lambda rows: _of_deadline(rows, "late_by_depth_pct", percent)),
        ("Delayed by a dependency", lambda rows: _of_deadline(rows, "late_by_dependency_pct", percent)),
        ("Requests issued", _issued),
        ("Failed requests", lambda rows: _worst(rows, "errors")),
    ]
    names = list(by_trace)
    if len(names) <= _MOST_COLUMNS:
        columns = [Column("", numeric=False), *(Column(str(name), numeric=False) for name in names)]
        rows = [(Cell(title), *(show(by_trace[name]) for name in names)) for title, show in quantities]
    else:
        columns = [Column("Trace", numeric=False), *(Column(title, numeric=False) for title, _ in quantities)]
        rows = [(Cell(str(name)), *(show(by_trace[name]) for _, show in quantities)) for name in names]
    return Table(
        id=f"{inputs.anchors[key]}-fidelity",
        caption="Fidelity of the replay",
        columns=tuple(columns),
        rows=tuple(rows),
        note="Medians of the counted runs; the worst run is below. Issue error: time from the deadline of a request to "
        "its issue. "
        + (_WAKEUP if any(not is_missing(row["wakeup_p50_us"]) for row in runs) else "")
        + "Duration ratio: replayed time divided by planned time, for the stated basis. In flight: all operations; the "
        "average covers the time with at least one in flight. Overlapping: requests that share bytes with another in "
        "flight, one of which changes them.",
        sources=inputs.sources(row["recording"] for row in runs),
    )


def _manner(rows: list[Row]) -> Cell:
    details = [f"engine {text(rows[0]['engine'])}"]
    if rows[0]["dependencies"] != "none":
        details.append("in order of the trace")
    faults = dict.fromkeys(str(mark) for row in rows for mark in row["marks"])
    partial = any(row["partial"] for row in rows)
    return Cell(text(rows[0]["timing"]), small="; ".join([*details, *faults]), tone="bad" if partial else "")


def _values(rows: list[Row], name: str) -> list[float]:
    return [float(row[name]) for row in rows if not is_missing(row[name])]


def _ratio(rows: list[Row]) -> Cell:
    ratios = _values(rows, "duration_ratio")
    if not ratios:
        return Cell(MISSING, tone="missing")
    basis = "" if is_missing(rows[0]["duration_basis"]) else f"{rows[0]['duration_basis']}; "
    worst = max(ratios, key=lambda value: abs(value - 1))
    return Cell(f"{statistics.median(ratios):.4f}", small=f"{basis}worst {worst:.4f}")


def _error(rows: list[Row], name: str) -> Cell:
    errors, wakeups = _values(rows, f"issue_error_{name}_us"), _values(rows, f"wakeup_{name}_us")
    if not errors:
        return _without_errors(rows)
    host = f"; this host's wake-up {number(statistics.median(wakeups))}" if wakeups else ""
    return number_cell(statistics.median(errors), small=f"worst {number(max(errors))}{host}")


def _in_flight(rows: list[Row], statistic: str) -> Cell:
    depths, trace = _values(rows, f"{statistic}_in_flight"), _values(rows, f"trace_{statistic}_in_flight")
    if not depths:
        return Cell(MISSING, tone="missing")
    details = [f"worst {number(max(depths))}"] if max(depths) != statistics.median(depths) else []
    details += [f"in the trace {number(trace[0])}"] if trace else []
    over = any(str(mark).startswith("overloaded:") for row in rows for mark in row["marks"])
    return number_cell(statistics.median(depths), small="; ".join(details), tone="bad" if over else "")


def _overlapping(rows: list[Row]) -> Cell:
    """Return the requests that began while one that they conflict with was in flight; older recordings lack them."""
    values, trace = _values(rows, "overlapping_requests"), _values(rows, "trace_overlapping_requests")
    if not values:
        return Cell(MISSING, tone="missing")
    return number_cell(statistics.median(values), small=f"in the trace {number(trace[0])}" if trace else "")


def _of_deadline(rows: list[Row], name: str, show: Callable[[Any], str]) -> Cell:
    values = _values(rows, name)
    return Cell(show(statistics.median(values))) if values else _without_errors(rows)


def _without_errors(rows: list[Row]) -> Cell:
    if all(row["timing_mode"] == "asap" for row in rows):
        return Cell("no deadlines")
    return Cell(MISSING, tone="missing")


def _worst(rows: list[Row], name: str) -> Cell:
    values = _values(rows, name)
    if not values:
        return Cell(MISSING, tone="missing")
    worst = f"worst {number(max(values))}" if max(values) != statistics.median(values) else ""
    return number_cell(statistics.median(values), small=worst)


def _issued(rows: list[Row]) -> Cell:
    issued, planned = (int(min(_values(rows, name))) for name in ("requests", "planned_requests"))
    same = issued == planned
    details = f"all of {number(planned)} planned" if same else f"of {number(planned)} planned"
    return number_cell(issued, small=details, tone="" if same else "bad")


def mapping_table(inputs: Inputs, key: Key) -> Table | None:
    """Return the changes that mapped each trace onto the drive; None without a replay."""
    rows = {(row["trace"], row["method"]): row for row in inputs.of_key("replay_mappings", key)}
    if not rows:
        return None
    counts = ("moved", "resized", "split", "clipped", "dropped")
    columns = ["Trace", "Mapping", *(name for name, _ in _MAPPED), "Sequential", "Merged before dispatch",
               *(capital(name) for name in counts)]  # fmt: skip
    return Table(
        id=f"{inputs.anchors[key]}-mapping",
        caption="Changes by the mapping to this drive",
        columns=tuple(Column(name, numeric=place > 1) for place, name in enumerate(columns)),
        rows=tuple(
            (
                Cell(str(row["trace"]), small=f"{number(row['requests_in_trace'])} requests"),
                Cell(str(row["method"]), small=str(row["reason"])),
                *(_before_after(amount(row[f"{n}_before_bytes"]), amount(row[f"{n}_after_bytes"])) for _, n in _MAPPED),
                _before_after(percent(row["sequential_before_pct"]), percent(row["sequential_after_pct"])),
                number_cell(row["requests_merged"]),
                *(number_cell(row[f"requests_{name}"]) for name in counts),
            )
            for row in rows.values()
        ),
        note="Footprint: distinct bytes read or written. Re-touched: bytes read or written again. Moved, resized, "
        "split, clipped, dropped: numbers of requests. The trace's value is below if it differs.",
    )


def _before_after(before: str, after: str) -> Cell:
    return Cell(after, small="" if before == after else f"in the trace {before}")
