"""The load of replays and how the drive served it: by operation, I/O stream and process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.number_cells import number_cell, percent_cell, size_cell
from drivelab.report.numbers import (
    DASH,
    amount,
    capital,
    is_missing,
    number,
)
from drivelab.report.replay_runs import median_runs, name_of
from drivelab.report.view import Cell, Column, Table


def operations_table(inputs: Inputs, key: Key) -> Table | None:
    """Return the requests by operation in the median run of each trace; None without a replay."""
    runs = median_runs(inputs.of_key("replays", key))
    operations = inputs.of_key("replay_operations", key)
    rows = _of_runs(operations, runs)
    if not rows:
        return None
    # The traced run may be an uncounted one; all runs of a trace have the same plan.
    seen = {(row["trace"], row["operation"]): row["seen_requests"] for row in operations
            if not is_missing(row["seen_requests"])}  # fmt: skip
    several = len(runs) > 1
    names = ("Operation", "Issued", "Completed", "Failed", "Seen by the kernel", "Bytes issued", "Mean latency, µs",
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
                _known(seen.get((row["trace"], row["operation"]))),
                _bytes(row),
                *(_known(row[name]) for name in ("mean_latency_us", "trace_mean_latency_us", "p50_latency_us",
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


def _known(value: Any) -> Cell:
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
                *(_known(row[name]) for name in ("access_time_us", "trace_access_time_us", "p99_latency_us")),
            )
            for row in shown
        ),
        note=f"Completed reads and writes of {_which(runs)}.",
        collapsed=several or kind != "stream",
    )
