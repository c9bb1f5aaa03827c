"""The runs of replays, and the median run of each trace."""

from __future__ import annotations

from drivelab.analysis.replay_metrics import SCORE_FORMULA
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.number_cells import number_cell, value_cell
from drivelab.report.numbers import DASH, capital, is_missing, number, text
from drivelab.report.taint import taint_mark, taint_note
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
                Cell("; ".join(_remarks(row)) or "none", tone="bad" if row["partial"] or row["errors"] else ""),
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
             *(f"{name}_latency" for name in latencies), "max_latency")  # fmt: skip
    headings = ("Access time, µs", "of reads, µs", "of writes, µs", "in the trace, µs",
                *(f"{title}, µs" for title in latencies.values()), "Maximum, µs")  # fmt: skip
    return Table(
        id=f"{inputs.anchors[key]}-replay-latencies",
        caption="Latencies of every replay",
        columns=(Column("Run", numeric=False), *map(Column, headings)),
        rows=tuple((_run(row, runs), *(_known(row[f"{name}_us"]) for name in names)) for row in runs),
        note=f"Access time: mean of all reads and writes. {DASH}: no requests, or too few for this percentile.",
        sources=inputs.sources(row["recording"] for row in runs),
        collapsed=len(runs) > _MANY_RUNS,
    )


def _run(row: Row, runs: list[Row]) -> Cell:
    """Name the run of a row, with its trace if there are several."""
    return Cell(name_of(row), small=str(row["trace"]) if len({run["trace"] for run in runs}) > 1 else "")


def _ratio(row: Row) -> Cell:
    value = row["duration_ratio"]
    return value_cell(value) if is_missing(value) else Cell(f"{value:.4f}")


def _known(value: object) -> Cell:
    return Cell(DASH) if is_missing(value) else number_cell(value)


def _remarks(row: Row) -> list[str]:
    """Return short remarks; the fidelity table has the full sentences."""
    dropped = [f"not replayed: {text(row['dropped'])}"] if not is_missing(row["dropped"]) else []
    return [*(str(mark).partition(":")[0] for mark in row["marks"]), *dropped]


def _issued(row: Row, direction: str) -> Cell:
    issued, planned = row[f"{direction}_ios"], row[f"planned_{direction}_ios"]
    if is_missing(issued) or is_missing(planned):
        return value_cell(issued)
    return number_cell(issued, small="as planned" if issued == planned else f"{number(planned)} planned",
                tone="" if issued == planned else "bad")  # fmt: skip
