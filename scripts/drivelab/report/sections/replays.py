"""Tables of replays and applications: results, passes, mapping, operations, streams and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from drivelab.core.grouping import grouped
from drivelab.replay.evaluation.metrics import SCORE_FORMULA
from drivelab.report.document import Cell, Table
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.marks import taint_mark, taint_note, verdict_cell
from drivelab.report.numbers import DASH, TIMES, amount, capital, heading, is_missing, number, percent
from drivelab.report.sections.proof import spread
from drivelab.report.table import (
    Field,
    PageTable,
    Rows,
    Show,
    bad_if,
    cell,
    durations,
    every,
    fields,
    or_dash,
    percentages,
    sizes,
    table,
    told_apart,
    words,
    yes_or_no,
)

_METRICS = ("access_time_us", "bandwidth_mib_s", "score", "p99_latency_us", "p99999_latency_us", "response_time_us",
            "p999_response_us", "duration_s")  # fmt: skip
_MOST_NAMES = 4
"""With more traces than this, a caption has their number instead of their names."""
_MANY_RUNS = 24
_MOST_STREAMS = 9
_SCORE = f"{capital(SCORE_FORMULA)}."
RATIO: Show = "{:.4f}".format


def counted(runs: Rows) -> Rows:
    """Return the counted runs; all runs if none counts."""
    return [row for row in runs if row["counted"]] or runs


def median_runs(runs: Rows) -> list[Row]:
    """Return the counted run with the median access time of each trace, the lower of two middle ones."""
    medians = []
    for of_trace in map(counted, grouped(runs, lambda run: run["trace"]).values()):
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


def basis_scores(inputs: Inputs, measurement: str) -> dict[str, float]:
    """Return the scores of the basis drive by label; empty if it was not measured."""
    rows = inputs.of_key("summary", (str(inputs.study.get("basis")), measurement))
    return {row["cell_label"]: float(row["value"]) for row in rows if row["metric"] == "score"}


def relative_score(row: Row | None, basis: dict[str, float]) -> Cell:
    """Return a score as a multiple of the basis score; a dash without one of them."""
    of_basis = None if row is None else basis.get(row["cell_label"])
    return cell(float(row["value"]) / of_basis if row and of_basis else None, "{:.3f}".format, missing=DASH)


def result_table(inputs: Inputs, key: Key) -> Table | None:
    """Return the medians by set, trace and phase, with the score relative to the basis. None without a replay."""
    rows = [row for row in inputs.of_key("summary", key) if is_replay(row)]
    if not rows:
        return None
    units = {row["metric"]: row["unit"] for row in rows}
    basis, scores = inputs.study.get("basis"), basis_scores(inputs, key[1])
    columns = [words("", _label), words("Verdict", _verdict)]
    for metric in (metric for metric in _METRICS if metric in units):
        columns.append(Field(capital(heading(metric, units[metric])), partial(_median, metric=metric)))
        if metric == "score" and basis is not None:
            columns.append(Field(f"{TIMES}\u00a0{basis}", lambda row: relative_score(row.get("score"), scores)))
    by_label = grouped(rows, lambda row: row["cell_label"])
    phased = any(not is_missing(row.get("phase")) for row in inputs.of_key("replays", key))
    return table(
        f"{inputs.anchors[key]}-replay-result",
        "Result of the replay",
        columns,
        [{row["metric"]: row for row in of_label} for of_label in by_label.values()],
        f"{_SCORE} Below a value: lowest to highest counted run, and the relative standard error (RSE)."
        + (f" {TIMES} {basis}: the score as a multiple of the score of {basis}, the basis." if scores else "")
        + (" A phase changes the drive from pass to pass; best and worst pass show by how much." if phased else ""),
        sources=inputs.sources_of(rows),
    )


def _label(by_metric: dict[str, Row]) -> Cell:
    row = next(iter(by_metric.values()))
    return Cell(capital(str(row["cell_label"])), small=f"{row['statistic']}, n = {number(row['n'])}")


def _verdict(by_metric: dict[str, Row]) -> Cell:
    taints = dict.fromkeys(filter(None, map(taint_mark, by_metric.values())))
    return verdict_cell(by_metric.values(), small="; ".join(taints))


def _median(by_metric: dict[str, Row], metric: str) -> Cell:
    row = by_metric.get(metric)
    if row is None:
        return Cell(DASH)
    return cell(row["value"], small=spread({name: row[name] for name in ("spread_low", "spread_high", "rse_pct")}))


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
        *percentages(share_pct="Share of requests"), *sizes(bytes="Bytes"),
        *or_dash(access_time_us="Access time, µs", trace_access_time_us="in the trace, µs",
                 p99_latency_us="99\u00a0%, µs"),
    )  # fmt: skip
    note = "Completed reads and writes of {}."
    return PageTable(f"{kind}-streams", caption, first, columns, lambda rows: note.format(rows[0]["shown"]), most_open,
                     sourced=False)  # fmt: skip


_COUNTED = Field("Counted", "counted", yes_or_no, taint_mark)
_SPEEDS = tuple(fields(access_time_us="Access time, µs", bandwidth_mib_s="Throughput, MiB/s", score="Score"))
_PERCENTILES = {
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


def _mappings(inputs: Inputs, key: Key) -> Rows:
    return list({(row["trace"], row["method"]): row for row in inputs.of_key("replay_mappings", key)}.values())


def _remarks(run: Row) -> str:
    """Return short remarks; the fidelity table has the full sentences."""
    return "; ".join(str(mark).partition(":")[0] for mark in run["marks"]) or "none"


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
            words("Pass", name_of, "of"), replace(_COUNTED, tone=bad_if("partial")), *_SPEEDS,
            *sizes(read_bytes="Read", write_bytes="Written"), *durations(busy_s="Busy", duration_s="Duration"),
        ),
        "Throughput: all bytes of the pass divided by the time with at least one read or write in flight. Access time: "
        f"mean over all reads and writes of the pass. {_SCORE}",
        _MANY_RUNS,
    ),
    PageTable(
        "mapping", "Changes by the mapping to this drive", _mappings,
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
            Field("Failed", "failed_requests", tone=bad_if("failed_requests")),
            Field("Bytes issued", _as_planned("issued_bytes", "planned_bytes", amount, always=False)),
            *or_dash(mean_latency_us="Mean latency, µs", trace_mean_latency_us="in the trace, µs",
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
            Field("Duration ratio", "duration_ratio", RATIO), *_SPEEDS,
            words("Remarks", _remarks, tone=bad_if("partial", "errors")),
        ),
        lambda runs: f"{_SCORE} {taint_note(runs)}", _MANY_RUNS,
    ),
    PageTable(
        "replay-latencies", "Latencies of every replay", _runs,
        (
            words("Run", name_of, "of"),
            *or_dash(access_time_us="Access time, µs", read_access_time_us="of reads, µs",
                     write_access_time_us="of writes, µs", trace_access_time_us="in the trace, µs"),
            *or_dash(**{f"{name}_latency_us": f"{title}, µs" for name, title in _PERCENTILES.items()}),
            *or_dash(max_latency_us="Maximum, µs", response_time_us="Response time, µs"),
            *or_dash(**{f"{name}_response_us": f"{title} of it, µs" for name, title in _PERCENTILES.items()}),
            *or_dash(max_response_us="Maximum of it, µs"),
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
            *or_dash(command_s="Command, s", sync_s="Final sync, s"),
            *sizes(read_bytes="Read", write_bytes="Written"),
            *or_dash(user_s="CPU, user, s", system_s="CPU, system, s", exit_status="Exit status"),
            words("Program", _program),
        ),
        lambda runs: f"{_timed(runs)} {taint_note(runs)}",
    ),
)  # fmt: skip
"""Tables of replays and applications on a page, in its order."""
