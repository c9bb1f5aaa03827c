"""Tables of traces, replays and applications: fidelity, passes, mapping, operations, streams and runs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from drivelab.core.grouping import grouped
from drivelab.replay.evaluation.metrics import SCORE_FORMULA
from drivelab.report.document import Cell, Table
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.marks import taint_mark, taint_note
from drivelab.report.numbers import DASH, amount, capital, duration, is_missing, number, percent, text
from drivelab.report.table import Field, PageTable, Rows, Show, cell, every, fields, of_each, table, told_apart, words

_MOST_NAMES = 4
"""With more traces than this, a caption has their number instead of their names."""
_MANY_RUNS = 24
_MOST_STREAMS = 9
_SCORE = f"{capital(SCORE_FORMULA)}."
_MOST_COLUMNS = 4
"""With more traces than this, each has a row instead of a column."""
_RATIO: Show = "{:.4f}".format


def _counted(runs: Rows) -> Rows:
    """Return the counted runs; all runs if none counts."""
    return [row for row in runs if row["counted"]] or runs


def median_runs(runs: Rows) -> list[Row]:
    """Return the counted run with the median access time of each trace, the lower of two middle ones."""
    medians = []
    for of_trace in map(_counted, grouped(runs, lambda run: run["trace"]).values()):
        timed = [run for run in of_trace if not is_missing(run["access_time_us"])]
        timed.sort(key=lambda run: float(run["access_time_us"]))
        medians.append(timed[(len(timed) - 1) // 2] if timed else of_trace[0])
    return medians


def name_of(run: Row) -> str:
    """Name one run of a trace."""
    if is_missing(run["phase"]):
        return f"{run['repeat']}, {'warm' if run['warm'] else 'cold'}"
    return f"{run['phase']} {int(run['phase_pass'])}"


def is_replay(row: Row) -> bool:
    """Return whether a summary row belongs to a replay, not to a cell."""
    return str(row["cell_label"]).startswith(("replay ", "set of "))


def score_formula(rows: Iterable[Row]) -> str:
    """Return the score formula if `rows` contain a replay score; the formula of imported scores is unknown."""
    return _SCORE if any(row["metric"] == "score" and is_replay(row) for row in rows) else ""


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
    details = ([] if is_missing(basis) else [str(basis)]) + [f"worst {_RATIO(worst)}"]
    return cell(statistics.median(ratios), _RATIO, "; ".join(details))


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
    runs = _counted(inputs.of_key("replays", key))
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
    id_, caption = f"{inputs.anchors[key]}-fidelity", "Fidelity of the replay"
    if len(by_trace) > _MOST_COLUMNS:
        trace = words("Trace", lambda of_trace: str(of_trace[0]["trace"]))
        yield table(id_, caption, (trace, *_FIDELITY), by_trace.values(), note, sources=inputs.sources_of(runs))
        return
    of_traces = of_each(by_trace, lambda trace, field: field.cell(by_trace[trace]), show=text)
    columns = (words("", lambda field: field.heading), *of_traces)
    yield table(id_, caption, columns, _FIDELITY, note, sources=inputs.sources_of(runs))


def traces(inputs: Inputs) -> Iterator[Table]:
    """Yield the traces of the study, if it has any."""
    why, rows = inputs.study.get("cannot_capture"), inputs.tables["traces"]
    if rows:
        yield table(
            "traces-table",
            "Traces",
            (
                words("Trace", "trace"), words("Application", "application"), words("Source", "source"),
                *fields(requests="Requests", reads="Reads", writes="Writes", flushes="Flushes", discards="Discards"),
                *fields(amount, read_bytes="Read", write_bytes="Written", footprint_bytes="Footprint"),
                *fields(duration, duration_s="Duration"),
                Field("Lost", lambda row: cell(row["lost"], tone="bad" if row["lossy"] else "")),
            ),
            rows,
            "" if is_missing(why) else f"This host cannot capture traces, so shipped traces replace them: {why}.",
        )  # fmt: skip


def _before_after(name: str, show: Show, unit: str) -> Callable[[Row], Cell]:
    def change(row: Row) -> Cell:
        before, after = (show(row[f"{name}_{when}_{unit}"]) for when in ("before", "after"))
        return Cell(after, small="" if before == after else f"in the trace {before}")

    return change


def _as_planned(issued: str, planned: str, show: Show = number, always: bool = True) -> Callable[[Row], Cell]:
    """Return the cell of what was issued, with what was planned; `always` says so if both are the same."""

    def planned_or_not(row: Row) -> Cell:
        if is_missing(row[issued]) or is_missing(row[planned]):
            return cell(row[issued], show)
        same = row[issued] == row[planned]
        small = "as planned" * always if same else f"{show(row[planned])} planned"
        return cell(row[issued], show, small, "" if same else "bad")

    return planned_or_not


def _of_median_runs(name: str, **wanted: str) -> Callable[[Inputs, Key], Rows]:
    """Return a selection of rows of the median run of each trace; `of` names the trace, `shown` the runs."""

    def rows(inputs: Inputs, key: Key) -> Rows:
        runs, place = median_runs(inputs.of_key("replays", key)), ("recording", "step", "trace", "repeat")
        several = len(runs) > 1
        chosen = {tuple(run[part] for part in place) for run in runs}
        return [
            {**row, "of": row["trace"] if several else "",
             "shown": f"the median run of each of {len(runs)} traces" if several
             else f"the median run ({name_of(runs[0])})"}
            for row in every(name, **wanted)(inputs, key) if tuple(row[part] for part in place) in chosen
        ]  # fmt: skip

    return rows


def _streams(kind: str, caption: str, most_open: int) -> PageTable:
    def first(inputs: Inputs, key: Key) -> Rows:
        by_trace = grouped(_of_median_runs("replay_streams", stream_kind=kind)(inputs, key), lambda row: row["trace"])
        return [row for of_trace in by_trace.values() for row in of_trace[:_MOST_STREAMS]]

    columns = (
        words(capital(kind), "stream", "of"), *fields(requests="Requests"),
        *fields(percent, share_pct="Share of requests"), *fields(amount, bytes="Bytes"),
        *fields(number, DASH, access_time_us="Access time, µs", trace_access_time_us="in the trace, µs",
                 p99_latency_us="99\u00a0%, µs"),
    )  # fmt: skip
    note = "Completed reads and writes of {}."
    return PageTable(f"{kind}-streams", caption, first, columns, lambda rows: note.format(rows[0]["shown"]), most_open,
                     sourced=False)  # fmt: skip


_COUNTED = words("Counted", lambda run: "yes" if run["counted"] else "no", taint_mark)
_SPEEDS = tuple(fields(access_time_us="Access time, µs", bandwidth_mib_s="Throughput, MiB/s", score="Score"))
_NINES = {
    "p50": "Median",
    "p99": "99\u00a0%",
    "p999": "99.9\u00a0%",
    "p9999": "99.99\u00a0%",
    "p99999": "99.999\u00a0%",
}


def _passes(inputs: Inputs, key: Key) -> Rows:
    """Select passes over several traces or through a phase."""
    rows = [row for row in inputs.of_key("replay_passes", key) if row["traces"] > 1 or not is_missing(row["phase"])]
    return told_apart(rows, "run", "run {}")


def _traces(passes: Rows) -> str:
    count = passes[0]["traces"]
    return f"Passes over {passes[0]['trace_names'] if count <= _MOST_NAMES else f'{count} traces'}"


def _runs(inputs: Inputs, key: Key) -> Rows:
    return told_apart(inputs.of_key("replays", key), "trace")


def _of_application(run: Row) -> str:
    phase = "" if is_missing(run["phase"]) else f"{run['phase']} {int(run['phase_pass'])}, "
    return f"{phase}{run['repeat']}, {'cold' if run['cold'] else 'warm'}"


def _program(run: Row) -> Cell:
    if is_missing(run["simulated_from"]):
        return Cell("the application")
    return Cell("SIMULATED", f"replay of its trace '{run['simulated_from']}'; no application ran", "bad")


def _timed(runs: Rows) -> str:
    simulated = any(not is_missing(run["simulated_from"]) for run in runs)
    return (
        "Duration: that of the replay that replaces the application. A request waits for the same requests as in the "
        "application's processes, so the replay is never shorter than the trace."
        if simulated
        else "Duration: from the start of the command until all of its writes are on the drive. Each run gets a new "
        "file system; creating it is not timed."
    )


REPLAY_TABLES = (
    PageTable(
        "passes", _traces, _passes,
        (
            words("Pass", name_of, "of"), replace(_COUNTED, tone=lambda run: "bad" if run["partial"] else ""), *_SPEEDS,
            *fields(amount, read_bytes="Read", write_bytes="Written"),
            *fields(duration, busy_s="Busy", duration_s="Duration"),
        ),
        "Throughput: all bytes of the pass divided by the time with at least one read or write in flight. Access time: "
        f"mean over all reads and writes of the pass. {_SCORE}",
        _MANY_RUNS,
    ),
    PageTable(
        "mapping", "Changes by the mapping to this drive",
        lambda inputs, key: [
            *{(row["trace"], row["method"]): row for row in inputs.of_key("replay_mappings", key)}.values()
        ],
        (
            words("Trace", "trace", lambda row: f"{number(row['requests_in_trace'])} requests"),
            words("Mapping", "method", "reason"),
            Field("Footprint", _before_after("footprint", amount, "bytes")),
            Field("Re-touched", _before_after("retouched", amount, "bytes")),
            Field("Sequential", _before_after("sequential", percent, "pct")),
            *fields(requests_merged="Merged before dispatch", requests_moved="Moved", requests_resized="Resized",
                    requests_split="Split", requests_clipped="Clipped", requests_dropped="Dropped"),
        ),
        "Footprint: distinct bytes read or written. Re-touched: bytes read or written again. Moved, resized, split, "
        "clipped, dropped: numbers of requests. The trace's value is below if it differs.",
        sourced=False,
    ),
    PageTable(
        "operations", "Operations, planned and replayed", _of_median_runs("replay_operations"),
        (
            words("Operation", "operation", "of"),
            Field("Issued", _as_planned("issued_requests", "planned_requests")),
            Field("Completed", _as_planned("completed_requests", "planned_requests")),
            Field("Failed", "failed_requests", tone=lambda row: "bad" if row["failed_requests"] else ""),
            Field("Bytes issued", _as_planned("issued_bytes", "planned_bytes", amount, always=False)),
            *fields(number, DASH, mean_latency_us="Mean latency, µs", trace_mean_latency_us="in the trace, µs",
                     p50_latency_us="Median, µs", p99_latency_us="99\u00a0%, µs", p999_latency_us="99.9\u00a0%, µs",
                     max_latency_us="Maximum, µs"),
        ),
        lambda rows: f"Shown: {rows[0]['shown']}. The latency in the trace is that of the same requests on the system "
        "where the trace was captured.",
        12, sourced=False,
    ),
    _streams("stream", "The nine most frequent I/O streams", _MOST_STREAMS),
    _streams("process", "Processes", 0),
    PageTable(
        "replays", "Every replay", _runs,
        (
            words("Run", name_of, "of"), _COUNTED,
            Field("Reads issued", _as_planned("read_ios", "planned_read_ios")),
            Field("Writes issued", _as_planned("write_ios", "planned_write_ios")),
            Field("Duration ratio", "duration_ratio", _RATIO), *_SPEEDS,
            words("Remarks",  # the fidelity table has the full sentences
                  lambda run: "; ".join(str(mark).partition(":")[0] for mark in run["marks"]) or "none",
                  tone=lambda run: "bad" if run["partial"] or run["errors"] else ""),
        ),
        lambda runs: f"{_SCORE} {taint_note(runs)}", _MANY_RUNS,
    ),
    PageTable(
        "replay-latencies", "Latencies of every replay", _runs,
        (
            words("Run", name_of, "of"),
            *fields(number, DASH, access_time_us="Access time, µs", read_access_time_us="of reads, µs",
                     write_access_time_us="of writes, µs", trace_access_time_us="in the trace, µs"),
            *fields(number, DASH, **{f"{name}_latency_us": f"{title}, µs" for name, title in _NINES.items()}),
            *fields(number, DASH, max_latency_us="Maximum, µs", response_time_us="Response time, µs"),
            *fields(number, DASH, **{f"{name}_response_us": f"{title} of it, µs" for name, title in _NINES.items()}),
            *fields(number, DASH, max_response_us="Maximum of it, µs"),
        ),
        "Access time: mean of all reads and writes, from issue to completion. Response time: from when a request was "
        "due, so it includes what it waited for the depth limit or a stall; only where deadlines do not depend on "
        f"completions. {DASH}: no requests, or too few for this percentile.",
        _MANY_RUNS, dense=True,
    ),
    PageTable(
        "applications", "Every run of the application", every("application_runs"),
        (
            words("Run", _of_application, "application"), _COUNTED, *fields(duration_s="Duration, s"),
            *fields(number, DASH, command_s="Command, s", sync_s="Final sync, s"),
            *fields(amount, read_bytes="Read", write_bytes="Written"),
            *fields(number, DASH, user_s="CPU, user, s", system_s="CPU, system, s", exit_status="Exit status"),
            words("Program", _program),
        ),
        lambda runs: f"{_timed(runs)} {taint_note(runs)}",
    ),
)  # fmt: skip
"""Tables of replays and applications on a page, in its order."""
