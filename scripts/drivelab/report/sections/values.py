"""Tables of the values of a test: block size by R/W mix, percentiles, scores, and all of the summary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from drivelab.analysis.deltas.doubts import host_limit_doubt, mark, numbered
from drivelab.analysis.values.latency_values import nines
from drivelab.core.grouping import grouped
from drivelab.core.units import parse_size, time_scale
from drivelab.report.document import Cell, Table
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.marks import host_limit_of, host_mark, marks, notes, taint_mark, taint_reasons, verdicts_of
from drivelab.report.numbers import DASH, capital, heading, is_missing, metric_order, number, percent, unit_of
from drivelab.report.sections.determination import in_windows
from drivelab.report.sections.proof import between, deviation, scatter, value_proof
from drivelab.report.sections.replays import score_formula
from drivelab.report.table import Field, PageTable, Rows, cell, every, of_each, scaled, table, words
from drivelab.tables.labels import loads_of

_LABEL = re.compile(r"(RND|SEQ) (\d+(?:B|KiB|MiB|GiB)) (\d+)/(\d+)(?: T\d+Q\d+)?")
_MANY_ROWS = 12
_FEWEST = 3
"""Samples that a spread needs."""
_FEW_IOS = 10


def summary_cell(row: Row | None, small: str = "") -> Cell:
    """Return a summary value with its provenance; a dash if there is no row."""
    if row is None or is_missing(row["value"]):
        return Cell(DASH) if row is None else cell(None, small=small, proof=value_proof(row))
    return cell(row["value"], small=small, proof=value_proof(row))


def matrices(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Yield tables of block size by R/W mix for the tracked metrics, or for all if none is tracked.

    A tracked latency also gets IOPS and the maximum of the cells in the window (PTS latency test). Cells at several
    loads, as in an import, have a table for each load, which its caption names.
    """
    loads = {label: f", {load}" for (_, label), load in loads_of(inputs.frame_of("cells", key)).items()}
    if len(set(loads.values())) == 1:
        loads = {}
    tracked = {metric for _, metric in inputs.tracked(key[1])}
    summary = inputs.of_key("summary", key)
    if "mean_latency_us" in tracked:
        tracked |= {"iops", "max_latency_us"}
        summary = [*summary, *_maxima(inputs, key)]
    groups: dict[tuple[str, str, str, str], dict[tuple[int, str], Row]] = {}
    for row in summary:
        match = _LABEL.fullmatch(row["cell_label"])
        if match and (row["metric"] in tracked or not tracked):
            place = (row["metric"], match[1], row["statistic"], loads.get(row["cell_label"], ""))
            groups.setdefault(place, {})[parse_size(match[2]), f"{match[3]}/{match[4]}"] = row
    for (metric, pattern, statistic, load), cells in sorted(groups.items(), key=lambda item: metric_order(item[0][0])):
        if len(cells) < 2:
            continue
        labels = {block: row["cell_label"].split()[1] for (block, _), row in cells.items()}
        unit = next(iter(cells.values()))["unit"]
        divisor, title, _ = _in_scale(metric, unit, cells.values())
        download = f"{{}}, {unit_of(metric, unit)}" if divisor > 1 else ""
        access = "random" if pattern == "RND" else "sequential"
        mixes = sorted({mix for _, mix in cells}, key=lambda mix: int(mix.partition("/")[0]))
        yield table(
            f"{inputs.anchors[key]}-{metric.replace('_', '-')}-{pattern.lower()}{load.replace(', ', '-').lower()}",
            f"{title}: block size by R/W mix %, {access} access{load} ({statistic})",
            (
                words("Block size", labels.__getitem__),
                *of_each(mixes, partial(_in_matrix, cells, divisor), download=download),
            ),
            sorted(labels),
            notes(cells.values()),
            sources=inputs.sources_of(cells.values()),
        )


def _in_matrix(cells: Mapping[tuple[int, str], Row], divisor: float, mix: str, block: int) -> Cell:
    row = cells.get((block, mix))
    return scaled(summary_cell(row, marks(row)), divisor)


def _in_scale(metric: str, unit: str, rows: Iterable[Row]) -> tuple[float, str, str]:
    """Return the divisor of the values of a metric, and their heading with its unit, scaled and as stored."""
    stored, whole = unit_of(metric, unit), capital(heading(metric, unit))
    divisor, shown = time_scale([row["value"] for row in rows if not is_missing(row["value"])], stored)
    return divisor, whole.replace(stored, shown), whole


def _maxima(inputs: Inputs, key: Key) -> Iterator[Row]:
    """Yield the maximum latency of each cell in the window, as rows like those of the summary."""
    cells = in_windows(inputs, key).dropna(subset="max_latency_us")
    for label, of_cell in cells.groupby("cell_label", sort=False):
        rows = rows_of(of_cell)
        yield {
            "cell_label": label,
            "metric": "max_latency_us",
            "unit": "us",
            "statistic": "maximum in the window",
            "value": of_cell["max_latency_us"].max(),
            "taint_reason": taint_reasons(row for row in rows if row["tainted"] is True) or None,
            "host_limit": host_limit_of(rows),
            "recordings": list(of_cell["recording"].unique()),
            "evidence": [f"{row['recording']}/{row['directory']}" for row in rows if "directory" in row],
        }


def all_values(inputs: Inputs, key: Key) -> Table | None:
    """Return the whole summary of a test, a row per cell and a column per metric; None without values."""
    summary = inputs.of_key("summary", key)
    if not summary:
        return None
    cells = list(grouped(summary, lambda row: (row["cell_label"], row["statistic"])).values())
    marks, reasons = numbered(map(_reasons, cells))
    by_metric = grouped(summary, lambda row: row["metric"])
    columns = []
    for metric in sorted(by_metric, key=metric_order):
        divisor, title, stored = _in_scale(metric, by_metric[metric][-1]["unit"], by_metric[metric])
        columns.append(Field(title, partial(_with_spread, metric=metric, divisor=divisor), download=stored))
    few = sum((len(row["samples"]) if "samples" in row else int(row["n"])) < _FEWEST for row in summary)
    which = "All values" if few == len(summary) else f"{few} values"
    return table(
        f"{inputs.anchors[key]}-all",
        "All values of this test",
        (
            words("Cell", "cell_label", "statistic"),
            *columns,
            Field("n", _counts),
            words("Verdict", lambda row: verdicts_of(row["values"], row["reasons"])),
        ),
        [{**rows[0], "values": rows, "reasons": mark(numbers)} for rows, numbers in zip(cells, marks, strict=True)],
        "n: the repeats behind a value: recordings, warm runs or rounds. An average over a window or a soak has n = 1; "
        "below it, the rounds or parts that show its scatter. Below a value: lowest to highest sample, 95 % confidence "
        "interval (from three recordings on), median absolute deviation (MAD) and relative standard error (RSE), if "
        f"known.{f' {which} have fewer than {_FEWEST} samples, and so no deviation.' if few else ''} "
        f"{score_formula(summary)}",
        reasons=tuple(reasons),
        sources=inputs.sources_of(summary),
        collapsed=len(cells) > _MANY_ROWS,
    )


def _counts(row: Row) -> Cell:
    counts, samples = dict.fromkeys(number(value["n"]) for value in row["values"]), map(scatter, row["values"])
    return Cell("; ".join(counts), "; ".join(dict.fromkeys(filter(None, samples))))


def _reasons(values: Rows) -> list[str]:
    """Return the taints and host limits of a cell's values, worded as doubts."""
    taints = dict.fromkeys(str(row["taint_reason"]) for row in values if taint_mark(row))
    limits = dict.fromkeys(str(row["host_limit"]) for row in values if host_mark(row))
    return [*(f"tainted ({reason.replace('; ', ', ')})" for reason in taints), *map(host_limit_doubt, limits)]


def _with_spread(row: Row, metric: str, divisor: float) -> Cell:
    """Return a value with its spread, divided for reading; its download and provenance have the stored value."""
    value = next((value for value in row["values"] if value["metric"] == metric), None)
    if value is None or is_missing(value["value"]):
        return summary_cell(value)
    ends = ("spread_low", "spread_high", "interval_low", "interval_high")
    divided = {name: value[name] / divisor for name in ends if not is_missing(value.get(name))}
    spread, interval = (between(divided, name, to=DASH) for name in ("spread", "interval"))
    mad = "" if is_missing(value.get("mad")) else f"MAD\u00a0{number(deviation(value) / divisor)}"
    rse = "" if is_missing(value["rse_pct"]) else f"RSE\u00a0{percent(value['rse_pct'])}"
    parts = (host_mark(value), spread, interval and f"95\u00a0%:\u00a0{interval}", mad, rse)
    small = ", ".join(filter(None, parts))
    return replace(summary_cell(value, small), text=number(value["value"] / divisor))


def nines_table(inputs: Inputs, key: Key) -> Iterator[Table]:
    """Yield the latency at each percentile, from table `latency_bins`; nothing without bins."""
    bins = inputs.frame_of("latency_bins", key)
    bins = bins if bins.empty else bins[bins["kind"] == "soak"]
    if bins.empty or not bins["count"].sum():
        return
    several = bins["run"].nunique() > 1
    runs = {f", run {run}" if several else "": rows_of(nines(part)) for run, part in bins.groupby("run")}
    percentiles = [row["quantile_pct"] for row in max(runs.values(), key=len)]
    yield table(
        f"{inputs.anchors[key]}-nines",
        f"Latency percentiles, {' and '.join(bins['workload'].drop_duplicates())}",
        (
            words("Percentile", lambda place: f"{percentiles[place]:g} %"),
            *of_each(runs, lambda run, place: _at(runs[run], place, "latency_us"), "Latency, µs{}"),
            *of_each(runs, lambda run, place: _at(runs[run], place, "ios_above", _FEW_IOS), "I/Os above{}"),
        ),
        range(len(percentiles)),
        "From merged histograms of all slices. A percentile with fewer than ten I/Os above it is uncertain. A "
        "percentile without any I/O above it equals the maximum and is omitted.",
        sources=inputs.sources(bins["recording"].drop_duplicates()),
    )


def _at(found: Rows, place: int, column: str, few: float = 0) -> Cell:
    if place >= len(found):
        return Cell(DASH)
    value = float(found[place][column])
    return cell(round(value, 1) if few else value, small="too few" if value < few else "")


merit_table = PageTable(
    "merit",
    "Figure of merit",
    every("summary", metric="figure_of_merit"),
    (
        words("", "cell_label", "statistic"),
        Field("Value", summary_cell),
        Field("Spread", lambda row: Cell(f"{number(row['spread_low'])}{DASH}{number(row['spread_high'])}")),
        words("Verdict", "verdict"),
    ),
    "Every cell has the same weight, however rare its workload is. A drive may lead by this figure and still be slower "
    "in the cell that matters. Compare only figures of the same cells.",
)
VALUE_TABLES = (merit_table, nines_table)
