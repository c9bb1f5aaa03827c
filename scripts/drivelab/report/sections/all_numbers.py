"""Every value of a test with its spread, interval and verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from drivelab.analysis.deltas.doubts import host_limit_doubt, numbered
from drivelab.analysis.verdict import FAULTS
from drivelab.core.units import time_scale
from drivelab.report.inputs import Inputs, Key, Row
from drivelab.report.measurement_outcome import host_mark, taint_mark
from drivelab.report.numbers import (
    DASH,
    capital,
    heading,
    is_missing,
    metric_order,
    number,
    percent,
    text,
    unit_of,
)
from drivelab.report.sections.proof import deviation, scatter
from drivelab.report.sections.replay_result import is_replay, score_formula
from drivelab.report.sentences import mark
from drivelab.report.table_fields import summary_cell
from drivelab.report.view import Cell, Column, Table

_MANY_ROWS = 12
"""A longer table starts folded."""
_FEWEST = 3
"""Samples that a spread needs."""


def all_numbers(inputs: Inputs, key: Key) -> Table | None:
    """Return the whole summary of a test: a row per cell, a column per metric; None for replays."""
    summary = inputs.of_key("summary", key)
    if all(is_replay(row) for row in summary):  # the result table of the page has all of it
        return None
    metrics = sorted({row["metric"]: row["unit"] for row in summary}.items(), key=lambda item: metric_order(item[0]))
    by_cell: dict[tuple[str, str], dict[str, Row]] = {}
    for row in summary:
        by_cell.setdefault((row["cell_label"], row["statistic"]), {})[row["metric"]] = row
    scales = {metric: _scale(metric, unit, summary) for metric, unit in metrics}
    marks, reasons = numbered(_reasons(by_metric.values()) for by_metric in by_cell.values())
    rows = []
    for ((label, statistic), by_metric), reason_numbers in zip(by_cell.items(), marks, strict=True):
        verdicts = dict.fromkeys(text(row["verdict"]) for row in by_metric.values())
        counts = dict.fromkeys(number(row["n"]) for row in by_metric.values())
        scatters = dict.fromkeys(filter(None, map(scatter, by_metric.values())))
        verdict = f"{'; '.join(verdicts)}{mark(reason_numbers)}"
        rows.append(
            (
                Cell(str(label), small=str(statistic)),
                *(_value(by_metric.get(metric), scales[metric][0]) for metric, _ in metrics),
                Cell("; ".join(counts), small="; ".join(scatters)),
                Cell(verdict, tone="bad" if verdicts.keys() & set(FAULTS) else ""),
            )
        )
    return Table(
        id=f"{inputs.anchors[key]}-all",
        caption="All values of this test",
        columns=(
            Column("Cell", numeric=False),
            *(
                Column(
                    capital(heading(metric, unit)).replace(unit_of(metric, unit), scales[metric][1]),
                    download=capital(heading(metric, unit)),
                )
                for metric, unit in metrics
            ),
            Column("n"),
            Column("Verdict", numeric=False),
        ),
        rows=tuple(rows),
        note="n: the repeats behind a value: recordings, warm runs or rounds. An average over a window or a soak has "
        "n = 1; below it, the rounds or parts that show its scatter. "
        "Below a value: lowest to highest sample, 95 % confidence interval (from three recordings on), median absolute "
        "deviation (MAD) and "
        "relative standard error (RSE), if known." + _few(summary) + f" {score_formula(summary)}".rstrip(),
        reasons=tuple(reasons),
        sources=inputs.sources(name for row in summary for name in row["recordings"]),
        collapsed=len(rows) > _MANY_ROWS,
    )


def _reasons(rows: Iterable[Row]) -> list[str]:
    """Return the taints and host limits of a cell's values, worded as doubts."""
    values = list(rows)
    taints = dict.fromkeys(str(row["taint_reason"]) for row in values if taint_mark(row))
    limits = dict.fromkeys(str(row["host_limit"]) for row in values if host_mark(row))
    return [*(f"tainted ({reason.replace('; ', ', ')})" for reason in taints), *map(host_limit_doubt, limits)]


def _scale(metric: str, unit: str, summary: list[Row]) -> tuple[float, str]:
    """Return the divisor and the unit of the values of a metric."""
    known = [row["value"] for row in summary if row["metric"] == metric and not is_missing(row["value"])]
    return time_scale(known, unit_of(metric, unit))


def _value(row: Row | None, divisor: float) -> Cell:
    """Return a value with its spread, divided for reading; its download and provenance have the stored value."""
    if row is None or is_missing(row["value"]):
        return summary_cell(row)
    shown = {name: row[name] / divisor for name in _IN_UNIT if not is_missing(row.get(name))}
    mad = "" if is_missing(row.get("mad")) else f"MAD\u00a0{number(deviation(row) / divisor)}"
    small = ", ".join(filter(None, (host_mark(row), _spread({**row, **shown}, mad))))
    return replace(summary_cell(row, small), text=number(row["value"] / divisor))


_IN_UNIT = ("spread_low", "spread_high", "interval_low", "interval_high")
"""Columns in the unit of the value."""


def _spread(row: Row, mad: str) -> str:
    """Return the line below a value: sample range, interval, deviation and standard error."""
    parts = []
    if not is_missing(row["spread_low"]) and not is_missing(row["spread_high"]):
        parts.append(f"{number(row['spread_low'])}{DASH}{number(row['spread_high'])}")
    if not is_missing(row.get("interval_low")) and not is_missing(row.get("interval_high")):
        parts.append(f"95\u00a0%:\u00a0{number(row['interval_low'])}{DASH}{number(row['interval_high'])}")
    if mad:
        parts.append(mad)
    if not is_missing(row["rse_pct"]):
        parts.append(f"RSE\u00a0{percent(row['rse_pct'])}")
    return ", ".join(parts)


def _samples(row: Row) -> int:
    return len(row["samples"]) if "samples" in row else int(row["n"])


def _few(summary: list[Row]) -> str:
    """Return a note on values with too few samples for a spread; empty if there are none."""
    few = sum(_samples(row) < _FEWEST for row in summary)
    if not few:
        return ""
    which = "All values" if few == len(summary) else f"{few} values"
    return f" {which} have fewer than {_FEWEST} samples, and so no deviation."
