"""Summary tables of a test (percentiles, figure of merit, best runs), and scores over several measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivelab.analysis.values.latency_values import nines
from drivelab.report.inputs import Inputs, Key
from drivelab.report.numbers import DASH, is_missing, names, number
from drivelab.report.sections.proof import value_proof
from drivelab.report.sentences import Reasons
from drivelab.report.table_fields import number_cell, summary_cell, value_cell, verdict_cell
from drivelab.report.view import Cell, Column, Table
from drivelab.tables.labels import SCORE, score_label

if TYPE_CHECKING:
    import pandas as pd

_BYTES_PER_MIB, _BYTES_PER_MB = 1 << 20, 10**6
_FEW_IOS = 10
_BEST = ("best_bandwidth_mb_s", "best_mean_latency_us")


def nines_table(inputs: Inputs, key: Key) -> Table | None:
    """Return the latency at each percentile, from table `latency_bins`; None without bins."""
    bins = inputs.frame_of("latency_bins", key)
    bins = bins if bins.empty else bins[bins["kind"] == "soak"]
    if bins.empty or not bins["count"].sum():
        return None
    runs = {str(run): nines(part) for run, part in bins.groupby("run")}
    quantiles = max(runs.values(), key=len)["quantile_pct"]
    return Table(
        id=f"{inputs.anchors[key]}-nines",
        caption=f"Latency percentiles, {' and '.join(bins['workload'].drop_duplicates())}",
        columns=(
            Column("Percentile", numeric=False),
            *(Column(f"Latency, µs{f', run {run}' if len(runs) > 1 else ''}") for run in runs),
            *(Column(f"I/Os above{f', run {run}' if len(runs) > 1 else ''}") for run in runs),
        ),
        rows=tuple(
            (
                Cell(f"{percent:g} %"),
                *(
                    value_cell(table["latency_us"].iloc[place], small=_interval(table, place))
                    if place < len(table)
                    else Cell(DASH)
                    for table in runs.values()
                ),
                *(
                    _above(float(table["ios_above"].iloc[place])) if place < len(table) else Cell(DASH)
                    for table in runs.values()
                ),
            )
            for place, percent in enumerate(quantiles)
        ),
        note="From merged histograms of all slices. Below a latency: its 95 % interval by order statistics, which "
        "takes I/Os as independent; slow I/Os that come in bursts make it too narrow. A percentile with fewer than ten "
        "I/Os above it is uncertain. A percentile without any I/O above it equals the maximum and is omitted.",
        sources=inputs.sources(bins["recording"].drop_duplicates()),
    )


def _interval(table: pd.DataFrame, place: int) -> str:
    low_us, high_us = float(table["low_us"].iloc[place]), float(table["high_us"].iloc[place])
    if is_missing(high_us):
        return f"from {number(low_us)}, no upper bound"
    return f"{number(low_us)} to {number(high_us)}"


def _above(ios: float) -> Cell:
    return number_cell(round(ios, 1), small="too few" if ios < _FEW_IOS else "")


def merit_table(inputs: Inputs, key: Key) -> Table | None:
    """Return the figure of merit with its spread; None for a test without one."""
    rows = [row for row in inputs.of_key("summary", key) if row["metric"] == "figure_of_merit"]
    if not rows:
        return None
    return Table(
        id=f"{inputs.anchors[key]}-merit",
        caption="Figure of merit",
        columns=(Column("", numeric=False), Column("Value"), Column("Spread"), Column("Verdict", numeric=False)),
        rows=tuple(
            (
                Cell(str(row["cell_label"]), small=str(row["statistic"])),
                summary_cell(row),
                Cell(f"{number(row['spread_low'])}{DASH}{number(row['spread_high'])}"),
                Cell(str(row["verdict"])),
            )
            for row in rows
        ),
        note="Every cell has the same weight, however rare its workload is. A drive may lead by this figure and still "
        "be slower in the cell that matters. Compare only figures of the same cells.",
        sources=inputs.sources(name for row in rows for name in row["recordings"]),
    )


def best_runs_table(inputs: Inputs, key: Key) -> Table | None:
    """Return best and median of the counted rounds, for a test scored by its best run; else None."""
    summary = inputs.of_key("summary", key)
    best = [row for row in summary if row["metric"] in _BEST]
    if not best:
        return None
    by_label = {(row["cell_label"], row["metric"]): row for row in summary}

    def value(label: str, metric: str, factor: float = 1.0) -> Cell:
        row = by_label.get((label, metric))
        return Cell(DASH) if row is None else value_cell(row["value"] * factor, value_proof(row))

    titles = dict.fromkeys(str(row["statistic"]) for row in best)
    return Table(
        id=f"{inputs.anchors[key]}-best",
        caption=f"Best run and median ({'; '.join(titles)})",
        columns=(Column("Cell", numeric=False), Column("Best, MB/s"), Column("Median, MB/s"),
                 Column("Lowest mean latency, µs"), Column("Median of the mean latencies, µs")),
        rows=tuple(
            (
                Cell(str(label)),
                value(label, "best_bandwidth_mb_s"),
                value(label, "bandwidth_mib_s", _BYTES_PER_MIB / _BYTES_PER_MB),
                value(label, "best_mean_latency_us"),
                value(label, "mean_latency_us"),
            )
            for label in dict.fromkeys(row["cell_label"] for row in best)
        ),
        note="MB/s: 10\u2076 bytes per second. The tool of that name reports the best run, which is optimistic. "
        "Comparisons use the medians.",
        sources=inputs.sources(name for row in best for name in row["recordings"]),
    )  # fmt: skip


def set_scores_table(inputs: Inputs) -> Table | None:
    """Return the scores of all drives, with the missing results of a drive without one; None for a study without."""
    sets = inputs.study.get("scores") or {}
    if not sets:
        return None
    deltas = {
        (row["measurement"], row["comparison"]): row for row in inputs.tables["deltas"] if row["protocol"] == SCORE
    }
    reasons = Reasons(inputs, list(deltas.values()))
    basis = inputs.study.get("basis")

    def cell(name: str, drive: str) -> Cell:
        row = inputs.summary_of(drive, name, score_label(len(sets[name])), "score")
        if row is None:
            return Cell(DASH, small=_missing(inputs, name, drive), tone="missing")
        low, high = row["interval_low"], row["interval_high"]
        interval = "" if is_missing(low) else f"{number(low)} to {number(high)}"
        return summary_cell(row, interval)

    def verdict(name: str, drive: str) -> Cell:
        delta = deltas.get((name, drive))
        return Cell(DASH) if delta is None else verdict_cell(delta, reasons)

    others = [drive for drive in inputs.drives if drive != basis]
    return Table(
        id="scores",
        caption=f"Scores, {basis} = 100",
        columns=(
            Column("Score", numeric=False),
            Column("Of", numeric=False),
            *(Column(drive) for drive in inputs.drives),
            *(Column(f"{drive} against {basis}", numeric=False) for drive in others),
        ),
        rows=tuple(
            (
                Cell(name),
                Cell(names(list(members))),
                *(cell(name, drive) for drive in inputs.drives),
                *(verdict(name, drive) for drive in others),
            )
            for name, members in sets.items()
        ),
        note="A score is the geometric mean of its members relative to the basis; more is better. A drive that lacks "
        "a member has no score. Below a score: its interval over the recordings, from three on.",
        reasons=reasons.notes,
    )


def _missing(inputs: Inputs, name: str, drive: str) -> str:
    """Return which members of a score a drive lacks."""
    has = {row["measurement"] for row in inputs.tables["summary"] if row["drive"] == drive}
    has |= {measurement.partition(".")[0] for measurement in has}
    lacking = [member for member in inputs.study["scores"][name] if member not in has]
    return f"no {names(lacking)}" if lacking else "no run has all members"
