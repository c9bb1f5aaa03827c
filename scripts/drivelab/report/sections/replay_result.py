"""Results of replays: the medians of traces, sets and phases, and every pass of a set."""

from __future__ import annotations

from collections.abc import Iterable

from drivelab.analysis.verdict import FAULTS
from drivelab.replay.evaluation.metrics import SCORE_FORMULA
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.measurement_outcome import taint_mark
from drivelab.report.numbers import (
    DASH,
    TIMES,
    capital,
    heading,
    is_missing,
    number,
    percent,
    text,
)
from drivelab.report.sections.replay_runs import name_of
from drivelab.report.table_fields import duration_cell, number_cell, size_cell, value_cell
from drivelab.report.view import Cell, Column, Table

_METRICS = ("access_time_us", "bandwidth_mib_s", "score", "p99_latency_us", "p99999_latency_us", "response_time_us",
            "p999_response_us", "duration_s")  # fmt: skip
_MOST_NAMES = 4
"""With more traces than this, the caption has their number instead of their names."""


def result_table(inputs: Inputs, key: Key) -> Table | None:
    """Return the medians by set, trace and phase, with the score relative to the basis. None without a replay."""
    rows = [row for row in inputs.of_key("summary", key) if is_replay(row)]
    if not rows:
        return None
    metrics = [metric for metric in _METRICS if any(row["metric"] == metric for row in rows)]
    units = {row["metric"]: row["unit"] for row in rows}
    basis = inputs.study.get("basis")
    scores = basis_scores(inputs, key[1])
    fields = []
    for label in dict.fromkeys(row["cell_label"] for row in rows):
        by_metric = {row["metric"]: row for row in rows if row["cell_label"] == label}
        any_row = next(iter(by_metric.values()))
        cells = [_median(by_metric.get(metric)) for metric in metrics]
        if "score" in metrics and basis is not None:
            cells.insert(metrics.index("score") + 1, relative_score(by_metric.get("score"), scores.get(label)))
        verdicts = dict.fromkeys(text(row["verdict"]) for row in by_metric.values())
        taints = dict.fromkeys(taint_mark(row) for row in by_metric.values() if taint_mark(row))
        fields.append(
            (
                Cell(capital(str(label)), small=f"{any_row['statistic']}, n = {number(any_row['n'])}"),
                Cell("; ".join(verdicts), small="; ".join(taints), tone="bad" if verdicts.keys() & set(FAULTS) else ""),
                *cells,
            )
        )
    columns = [Column(capital(heading(metric, units[metric]))) for metric in metrics]
    if "score" in metrics and basis is not None:
        columns.insert(metrics.index("score") + 1, Column(f"{TIMES}\u00a0{basis}"))
    phased = any(not is_missing(row.get("phase")) for row in inputs.of_key("replays", key))
    return Table(
        id=f"{inputs.anchors[key]}-replay-result",
        caption="Result of the replay",
        columns=(Column("", numeric=False), Column("Verdict", numeric=False), *columns),
        rows=tuple(fields),
        note=f"{capital(SCORE_FORMULA)}. Below a value: lowest to highest counted run, and the relative standard error "
        "(RSE)."
        + (f" {TIMES} {basis}: the score as a multiple of the score of {basis}, the basis." if scores else "")
        + (" A phase changes the drive from pass to pass; best and worst pass show by how much." if phased else ""),
        sources=inputs.sources(name for row in rows for name in row["recordings"]),
    )


def score_formula(rows: Iterable[Row]) -> str:
    """Return the score formula if `rows` contain a replay score; the formula of imported scores is unknown."""
    return f"{capital(SCORE_FORMULA)}." if any(row["metric"] == "score" and is_replay(row) for row in rows) else ""


def is_replay(row: Row) -> bool:
    """Return whether a summary row belongs to a replay, not to a cell."""
    return str(row["cell_label"]).startswith(("replay ", "set of "))


def basis_scores(inputs: Inputs, measurement: str) -> dict[str, float]:
    """Return the scores of the basis drive by label; empty if it was not measured."""
    rows = inputs.of_key("summary", (str(inputs.study.get("basis")), measurement))
    return {row["cell_label"]: float(row["value"]) for row in rows if row["metric"] == "score"}


def relative_score(row: Row | None, basis: float | None) -> Cell:
    """Return a score as a multiple of the basis score."""
    if row is None or not basis:
        return Cell(DASH)
    return Cell(f"{float(row['value']) / basis:.3f}", value=float(row["value"]) / basis)


def _median(row: Row | None) -> Cell:
    if row is None:
        return Cell(DASH)
    parts = [f"{number(row['spread_low'])}{DASH}{number(row['spread_high'])}"]
    if not is_missing(row["rse_pct"]):
        parts.append(f"RSE {percent(row['rse_pct'])}")
    return number_cell(row["value"], small=", ".join(parts))


def passes_table(inputs: Inputs, key: Key) -> Table | None:
    """Return every pass over a set of traces or through a phase; None if there are neither."""
    rows = [row for row in inputs.of_key("replay_passes", key) if row["traces"] > 1 or not is_missing(row["phase"])]
    if not rows:
        return None
    several = len({row["recording"] for row in rows}) > 1
    names = ("Pass", "Counted", "Access time, µs", "Throughput, MiB/s", "Score", "Read", "Written", "Busy", "Duration")
    return Table(
        id=f"{inputs.anchors[key]}-passes",
        caption=f"Passes over {rows[0]['trace_names']}" if rows[0]["traces"] <= _MOST_NAMES else
        f"Passes over {rows[0]['traces']} traces",
        columns=tuple(Column(name, numeric=place > 1) for place, name in enumerate(names)),
        rows=tuple(
            (
                Cell(name_of(row), small=f"run {row['run']}" if several else ""),
                Cell("yes" if row["counted"] else "no", small=taint_mark(row), tone="bad" if row["partial"] else ""),
                *(value_cell(row[name]) for name in ("access_time_us", "bandwidth_mib_s", "score")),
                *(size_cell(row[name]) for name in ("read_bytes", "write_bytes")),
                *(duration_cell(row[name]) for name in ("busy_s", "duration_s")),
            )
            for row in rows
        ),
        note="Throughput: all bytes of the pass divided by the time with at least one read or write in flight. Access "
        f"time: mean over all reads and writes of the pass. {capital(SCORE_FORMULA)}.",
        sources=inputs.sources(row["recording"] for row in rows),
        collapsed=len(rows) > 24,
    )  # fmt: skip
