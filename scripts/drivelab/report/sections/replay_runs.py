"""The runs of replays, and the median run of each trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drivelab.replay.evaluation.metrics import SCORE_FORMULA
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.measurement_outcome import taint_mark, taint_note
from drivelab.report.numbers import (
    DASH,
    amount,
    capital,
    is_missing,
    number,
)
from drivelab.report.table_fields import number_cell, percent_cell, size_cell, value_cell
from drivelab.report.view import Cell, Column, Table

_LATENCIES = {
    "p50": "Median",
    "p99": "99\u00a0%",
    "p999": "99.9\u00a0%",
    "p9999": "99.99\u00a0%",
    "p99999": "99.999\u00a0%",
}
_MANY_RUNS = 24


def counted(runs: list[Row]) -> list[Row]:
    """Return the counted runs; all runs if none counts."""
    return [row for row in runs if row["counted"]] or runs


def median_runs(runs: list[Row]) -> list[Row]:
    """Return the counted run with the median access time of each trace, the lower of two middle ones."""
    medians = []
    for trace in dict.fromkeys(row["trace"] for row in runs):
        counted_runs = counted([row for row in runs if row["trace"] == trace])
        timed = sorted(
            (row for row in counted_runs if not is_missing(row["access_time_us"])),
            key=lambda row: row["access_time_us"],
        )
        medians.append(timed[(len(timed) - 1) // 2] if timed else counted_runs[0])
    return medians


def name_of(run: Row) -> str:
    """Name one run of a trace."""
    if is_missing(run["phase"]):
        return f"{run['repeat']}, {'warm' if run['warm'] else 'cold'}"
    return f"{run['phase']} {int(run['phase_pass'])}"


def runs_table(inputs: Inputs, key: Key) -> Table | None:
    """Return a row for every replay; None without a replay."""
    runs = inputs.of_key("replays", key)
    if not runs:
        return None
    names = ("Run", "Counted", "Reads issued", "Writes issued", "Duration ratio", "Access time, µs",
             "Throughput, MiB/s", "Score", "Remarks")  # fmt: skip
    texts = {"Run", "Counted", "Remarks"}
    return Table(
        id=f"{inputs.anchors[key]}-replays",
        caption="Every replay",
        columns=tuple(Column(name, numeric=name not in texts) for name in names),
        rows=tuple(
            (
                _run(row, runs),
                Cell("yes" if row["counted"] else "no", small=taint_mark(row)),
                _issued(row, "read"),
                _issued(row, "write"),
                _ratio(row),
                *(value_cell(row[name]) for name in ("access_time_us", "bandwidth_mib_s", "score")),
                Cell("; ".join(_remarks(row)) or "none", tone="bad" if _is_bad(row) else ""),
            )
            for row in runs
        ),
        note=" ".join(
            [
                f"{capital(SCORE_FORMULA)}.",
                taint_note(runs),
            ]
        ).strip(),
        sources=inputs.sources(row["recording"] for row in runs),
        collapsed=len(runs) > _MANY_RUNS,
    )  # fmt: skip


def run_latencies_table(inputs: Inputs, key: Key) -> Table | None:
    """Return access time and percentiles of every replay; None without a replay."""
    runs = inputs.of_key("replays", key)
    if not runs:
        return None
    latencies = {name: title for name, title in _LATENCIES.items()
                 if any(not is_missing(row[f"{name}_latency_us"]) for row in runs)}  # fmt: skip
    names = ("access_time", "read_access_time", "write_access_time", "trace_access_time",
             *(f"{name}_latency" for name in latencies), "max_latency", "response_time",
             *(f"{name}_response" for name in latencies), "max_response")  # fmt: skip
    headings = ("Access time, µs", "of reads, µs", "of writes, µs", "in the trace, µs",
                *(f"{title}, µs" for title in latencies.values()), "Maximum, µs", "Response time, µs",
                *(f"{title} of it, µs" for title in latencies.values()), "Maximum of it, µs")  # fmt: skip
    return Table(
        id=f"{inputs.anchors[key]}-replay-latencies",
        caption="Latencies of every replay",
        columns=(Column("Run", numeric=False), *map(Column, headings)),
        rows=tuple((_run(row, runs), *(_number_or_dash(row[f"{name}_us"]) for name in names)) for row in runs),
        note="Access time: mean of all reads and writes, from issue to completion. Response time: from when a request "
        "was due, so it includes what it waited for the depth limit or a stall; only where deadlines do not depend on "
        f"completions. {DASH}: no requests, or too few for this percentile.",
        sources=inputs.sources(row["recording"] for row in runs),
        collapsed=len(runs) > _MANY_RUNS,
    )


def _run(row: Row, runs: list[Row]) -> Cell:
    """Name the run of a row, with its trace if there are several."""
    return Cell(name_of(row), small=str(row["trace"]) if len({run["trace"] for run in runs}) > 1 else "")


def _ratio(row: Row) -> Cell:
    value = row["duration_ratio"]
    return value_cell(value) if is_missing(value) else Cell(f"{value:.4f}")


def _is_bad(row: Row) -> bool:
    return bool(row["partial"] or row["errors"])


def _remarks(row: Row) -> list[str]:
    """Return short remarks; the fidelity table has the full sentences."""
    return [str(mark).partition(":")[0] for mark in row["marks"]]


def _issued(row: Row, direction: str) -> Cell:
    issued, planned = row[f"{direction}_ios"], row[f"planned_{direction}_ios"]
    if is_missing(issued) or is_missing(planned):
        return value_cell(issued)
    return number_cell(issued, small="as planned" if issued == planned else f"{number(planned)} planned",
                tone="" if issued == planned else "bad")  # fmt: skip


def operations_table(inputs: Inputs, key: Key) -> Table | None:
    """Return the requests by operation in the median run of each trace; None without a replay."""
    runs = median_runs(inputs.of_key("replays", key))
    rows = _of_runs(inputs.of_key("replay_operations", key), runs)
    if not rows:
        return None
    several = len(runs) > 1
    names = ("Operation", "Issued", "Completed", "Failed", "Bytes issued", "Mean latency, µs",
             "in the trace, µs", "Median, µs", "99\u00a0%, µs", "99.9\u00a0%, µs", "Maximum, µs")  # fmt: skip
    return Table(
        id=f"{inputs.anchors[key]}-operations",
        caption="Operations, planned and replayed",
        columns=tuple(Column(name, numeric=place > 0) for place, name in enumerate(names)),
        rows=tuple(
            (
                Cell(str(row["operation"]), small=str(row["trace"]) if several else ""),
                *(_stage(row, stage) for stage in ("issued", "completed")),
                number_cell(row["failed_requests"], tone="bad" if row["failed_requests"] else ""),
                _bytes(row),
                *(_number_or_dash(row[name]) for name in ("mean_latency_us", "trace_mean_latency_us", "p50_latency_us",
                                                 "p99_latency_us", "p999_latency_us", "max_latency_us")),
            )
            for row in rows
        ),
        note=f"Shown: {_which(runs)}. The latency in the trace is that of the same requests on the system where the "
        "trace was captured.",
        collapsed=len(rows) > 12,
    )  # fmt: skip


def _stage(row: Row, stage: str) -> Cell:
    done, planned = row[f"{stage}_requests"], row["planned_requests"]
    return number_cell(done, small="as planned" if done == planned else f"{number(planned)} planned",
                tone="" if done == planned else "bad")  # fmt: skip


def _bytes(row: Row) -> Cell:
    same = row["issued_bytes"] == row["planned_bytes"]
    return size_cell(row["issued_bytes"], small="" if same else f"{amount(row['planned_bytes'])} planned",
                tone="" if same else "bad")  # fmt: skip


def _number_or_dash(value: Any) -> Cell:
    """Return a number, or a dash if there are too few requests."""
    return Cell(DASH) if is_missing(value) else number_cell(value)


def _which(runs: Iterable[Row]) -> str:
    every = list(runs)
    return (
        f"the median run of each of {len(every)} traces" if len(every) > 1 else f"the median run ({name_of(every[0])})"
    )


def _of_runs(rows: list[Row], runs: Iterable[Row]) -> list[Row]:
    wanted = {(run["recording"], run["step"], run["trace"], run["repeat"]) for run in runs}
    return [row for row in rows if (row["recording"], row["step"], row["trace"], row["repeat"]) in wanted]


def streams_table(inputs: Inputs, key: Key, kind: str = "stream", most: int = 9) -> Table | None:
    """Return the most frequent streams or processes in the median run of each trace.

    `kind` is `stream` or `process`; `most` limits the rows per trace. None without a replay.
    """
    runs = median_runs(inputs.of_key("replays", key))
    rows = [row for row in _of_runs(inputs.of_key("replay_streams", key), runs) if row["stream_kind"] == kind]
    if not rows:
        return None
    several = len(runs) > 1
    shown = [row for run in runs for row in [r for r in rows if r["trace"] == run["trace"]][:most]]
    names = (
        capital(kind),
        "Requests",
        "Share of requests",
        "Bytes",
        "Access time, µs",
        "in the trace, µs",
        "99\u00a0%, µs",
    )
    title = "The nine most frequent I/O streams" if kind == "stream" else "Processes"
    return Table(
        id=f"{inputs.anchors[key]}-{kind}-streams",
        caption=title,
        columns=tuple(Column(name, numeric=place > 0) for place, name in enumerate(names)),
        rows=tuple(
            (
                Cell(str(row["stream"]), small=str(row["trace"]) if several else ""),
                number_cell(row["requests"]),
                percent_cell(row["share_pct"]),
                size_cell(row["bytes"]),
                *(_number_or_dash(row[name]) for name in ("access_time_us", "trace_access_time_us", "p99_latency_us")),
            )
            for row in shown
        ),
        note=f"Completed reads and writes of {_which(runs)}.",
        collapsed=several or kind != "stream",
    )
