"""Compare measured values with a data sheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.markup import escape
from rich.text import Text

from drivelab.analysis.verdict import FINE
from drivelab.core.errors import UserError
from drivelab.core.terminal import print_table, wide_console
from drivelab.criteria.repeats import FEWEST
from drivelab.explore.row_selection import Selector, catalogue, select
from drivelab.explore.side import Side, side_of
from drivelab.plan.ratings import DataSheet, Rating
from drivelab.report.numbers import heading, is_missing, metric_name, number

PASS, FAIL, CANNOT_TELL = "pass", "fail", "cannot tell"
VERDICTS = (PASS, FAIL, CANNOT_TELL)
COLUMNS = (
    "drive", "model", "rating", "metric", "heading", "rated", "limit", "measurement", "cell_label", "value",
    "interval_low", "interval_high", "n", "verdict", "reason", "reduced", "virtual", "recordings",
)  # fmt: skip
"""Columns of the result: a row for each rated value and measurement with its workload. `limit` is `rated` with the
tolerance, both in the unit of `heading`; `n` counts recordings; `reason` says why a verdict is CANNOT_TELL."""
_OF_SUMMARY = ("measurement", "cell_label", "value", "interval_low", "interval_high", "reduced", "virtual",
               "recordings")  # fmt: skip


def data_sheet_check(results: Path, sheet: DataSheet, selectors: Sequence[Selector]) -> pd.DataFrame:
    """Return a table with COLUMNS; `drive` is the text of a selector, `results` its folder unless it names one.

    Raises UserError if a selector selects nothing, or recordings of another model.
    """
    rows = []
    for selector in selectors:
        folder = selector.folder or results
        side = side_of(selector, folder, select(catalogue(folder), selector))
        models = side.conditions.loc[side.conditions["facet"] == "model", "value"]
        model = str(models.iloc[-1]) if len(models) else ""
        if not sheet.is_of(model):
            raise UserError(
                f"{sheet.path} rates the model '{sheet.model}', but '{selector.text}' is of the model '{model}'; name "
                "a drive of that model, or write the data sheet of this one (see docs/how-to/datasheet.md)"
            )
        rows += [{"drive": selector.text, "model": model, **row} for row in check(side, sheet)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def check(side: Side, sheet: DataSheet) -> Iterator[dict[str, Any]]:
    """Yield rows with COLUMNS, except drive and model, for each rated value of a data sheet."""
    for rating in sheet.ratings:
        rated = {"rating": rating.cell.label, "metric": rating.metric, "heading": heading(rating.metric),
                 "rated": rating.rated, "limit": rating.limit}  # fmt: skip
        places = _places(side, rating)
        values = side.summary[side.summary["metric"] == rating.metric].merge(places, on=["measurement", "cell_label"])
        for value in values.to_dict("records"):
            unmet = _unmet(side, value, rating)
            verdict, reason = (CANNOT_TELL, unmet) if unmet else _verdict(value, rating)
            known = {name: value[name] for name in _OF_SUMMARY}
            yield {**rated, **known, "n": len(value["recordings"]), "verdict": verdict, "reason": reason}
        if values.empty:
            by = f" by the protocol {rating.protocol}" if rating.protocol else ""
            lacking = "has this workload" if places.empty else f"gives this {metric_name(rating.metric)}"
            yield {**rated, "verdict": CANNOT_TELL, "reason": f"not measured: no cell{by} {lacking}",
                   "reduced": False, "virtual": False, "n": 0, "recordings": []}  # fmt: skip


def _places(side: Side, rating: Rating) -> pd.DataFrame:
    """Return measurement and label of the cells that have the rated workload and nothing else."""
    cells, wanted = side.cells, rating.cell
    plain = cells[["alignment_offset_bytes", "block_size_max_bytes", "rate_iops", "entropy", "beside", "segments"]]
    alike = (
        (cells["pattern"] == wanted.pattern)
        & (cells["read_share_pct"] == wanted.read_share)
        & (cells["block_size_bytes"] == wanted.block_size_bytes)
        & (cells["threads"] == wanted.threads)
        & (cells["queue_depth"] == wanted.queue_depth)
        & plain.replace({"alignment_offset_bytes": {0: None}}).isna().all(axis=1)
    )
    if rating.protocol is not None:
        alike &= cells["protocol"] == rating.protocol
    return cells.loc[alike, ["measurement", "cell_label"]].drop_duplicates()


def _unmet(side: Side, value: dict[str, Any], rating: Rating) -> str | None:
    """Say which condition of a rating the recordings do not meet."""
    known = side.conditions[side.conditions["recording"].isin(list(value["recordings"]))]
    for facet, wanted in rating.conditions.items():
        found = sorted(set(known.loc[known["facet"] == facet, "value"]))
        if found != [wanted]:
            return f"{facet} is {' or '.join(found) or 'not recorded'}, not {wanted}"
    return None


def _verdict(value: dict[str, Any], rating: Rating) -> tuple[str, str]:
    """Return verdict and reason: the whole interval must be on one side of the limit."""
    if value["verdict"] not in FINE:
        return CANNOT_TELL, f"the value is unreliable: {value['verdict']}"
    recordings = len(value["recordings"])
    if recordings < FEWEST:
        return CANNOT_TELL, f"{recordings} of at least {FEWEST} recordings, so the interval is unknown; raise 'runs'"
    low, high = value["interval_low"], value["interval_high"]
    if pd.isna(low):
        return CANNOT_TELL, "the value has no interval"
    if not rating.is_minimum:
        low, high = -high, -low
    limit = rating.limit if rating.is_minimum else -rating.limit
    if low >= limit:
        return PASS, ""
    return (FAIL, "") if high < limit else (CANNOT_TELL, "the limit lies in the interval; raise 'runs'")


def print_check(checked: pd.DataFrame) -> None:
    """Print a result of `data_sheet_check`: a table for each selector."""
    console = wide_console()
    colours = {PASS: "green", FAIL: "bold red", CANNOT_TELL: "yellow"}
    numbers = ("rated", "limit", "measured", "95 % interval")
    for (drive, model), rows in checked.groupby(["drive", "model"], sort=False):
        counts = [f"{sum(rows['verdict'] == verdict)} {verdict}" for verdict in VERDICTS]
        labels = [label for label in ("reduced", "virtual") if rows[label].any()]
        how = f"; [yellow]{', '.join(labels)}[/]" if labels else ""
        console.print(f"[bold]{escape(f'{drive} ({model}): ' + ', '.join(counts))}[/]{how}")
        reasons = list(dict.fromkeys(reason for reason in rows["reason"] if reason))
        fields = []
        for row in rows.itertuples():
            measured = not is_missing(row.measurement)
            low, high = row.interval_low, row.interval_high
            interval = "" if is_missing(low) else f"{number(low)} to {number(high)}"
            mark = f" [{reasons.index(row.reason) + 1}]" if row.reason else ""
            fields.append([
                row.rating, row.heading, _place(row.measurement, row.cell_label, row.rating) if measured else "",
                number(row.rated), number(row.limit), "" if is_missing(row.value) else number(row.value), interval,
                Text(f"{row.verdict}{mark}", style=colours[row.verdict]),
            ])  # fmt: skip
        print_table(["workload", "value", "in", *numbers, "verdict"], fields, numbers)
        for place, reason in enumerate(reasons, start=1):
            console.print(escape(f"[{place}] {reason}"))


def _place(measurement: str, label: str, workload: str) -> str:
    """Name the measurement, and the cell by what its label says beyond the workload, such as `soak`."""
    more = label.removeprefix(workload.rpartition(" ")[0]).strip()
    return f"{measurement}, {more}" if more else measurement
