"""Compare measured values with a data sheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.verdict import FINE
from drivelab.core.errors import UserError
from drivelab.explore.row_selection import catalogue, parse, select
from drivelab.explore.side import Side, side_of
from drivelab.plan.ratings import DataSheet, Rating
from drivelab.report.numbers import heading, metric_name

PASS, FAIL, CANNOT_TELL = "pass", "fail", "cannot tell"
VERDICTS = (PASS, FAIL, CANNOT_TELL)
COLUMNS = (
    "drive", "model", "rating", "metric", "heading", "rated", "limit", "measurement", "cell_label", "value",
    "interval_low", "interval_high", "n", "verdict", "reason", "reduced", "virtual", "recordings",
)  # fmt: skip
"""Columns of the result: a row for each rated value and measurement with its workload. `limit` is `rated` with the
tolerance, both in the unit of `heading`; `n` counts recordings; `reason` says why a verdict is CANNOT_TELL."""
_FEWEST = 3


def data_sheet_check(results: Path, sheets: Sequence[DataSheet], drive: str | None = None) -> pd.DataFrame:
    """Return a table with COLUMNS for each drive in `results` (or for `drive`) whose model is in a data sheet.

    The model is that of the drive's recordings. Raises UserError if there is no such drive or no recording.
    """
    recordings = catalogue(results)
    drives = [drive] if drive is not None else sorted(recordings["drive"].unique())
    rows, models = [], {}
    for name in drives:
        selector = parse(f"drive={name}")
        side = side_of(selector, results, select(recordings, selector))
        models[name] = _model(side)
        for sheet in sheets:
            if sheet.is_of(models[name]):
                rows += [{"drive": name, "model": models[name], **row} for row in check(side, sheet)]
    if not rows:
        known = ", ".join(f"{name} ({model})" for name, model in models.items())
        raise UserError(
            f"{results}: no data sheet is of a model of these drives: {known}; write config/ratings/NAME.yaml for "
            "one (see docs/how-to/datasheet.md)"
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _model(side: Side) -> str:
    models = side.conditions.loc[side.conditions["facet"] == "model", "value"]
    return str(models.iloc[-1]) if len(models) else ""


def check(side: Side, sheet: DataSheet) -> Iterator[dict[str, Any]]:
    """Yield rows with COLUMNS, except drive and model, for each rated value of a data sheet."""
    for rating in sheet.ratings:
        values = _values(side, rating)
        for value in values.to_dict("records"):
            yield {**_rated(rating), **_judged(value, rating, _unmet(side, value, rating))}
        if values.empty:
            by = f" by the protocol {rating.protocol}" if rating.protocol else ""
            lacking = "has this workload" if _places(side, rating).empty else f"gives this {metric_name(rating.metric)}"
            reason = f"not measured: no cell{by} {lacking}"
            yield {**_rated(rating), "verdict": CANNOT_TELL, "reason": reason, "reduced": False, "virtual": False,
                   "n": 0, "recordings": []}  # fmt: skip


def _rated(rating: Rating) -> dict[str, Any]:
    return {
        "rating": rating.cell.label,
        "metric": rating.metric,
        "heading": heading(rating.metric),
        "rated": rating.rated,
        "limit": rating.limit,
    }


def _values(side: Side, rating: Rating) -> pd.DataFrame:
    """Return the rows of `summary` whose cells have the rated workload."""
    values = side.summary[side.summary["metric"] == rating.metric]
    return values.merge(_places(side, rating), on=["measurement", "cell_label"])


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


def _judged(value: dict[str, Any], rating: Rating, unmet: str | None) -> dict[str, Any]:
    verdict, reason = _verdict(value, rating)
    return {
        **{name: value[name] for name in ("measurement", "cell_label", "value", "interval_low", "interval_high")},
        **{name: value[name] for name in ("reduced", "virtual", "recordings")},
        "n": len(value["recordings"]),
        "verdict": CANNOT_TELL if unmet else verdict,
        "reason": unmet or reason,
    }


def _verdict(value: dict[str, Any], rating: Rating) -> tuple[str, str]:
    """Return verdict and reason: the whole interval must be on one side of the limit."""
    if value["verdict"] not in FINE:
        return CANNOT_TELL, f"the value is unreliable: {value['verdict']}"
    number = len(value["recordings"])
    if number < _FEWEST:
        return CANNOT_TELL, f"{number} of at least {_FEWEST} recordings, so the interval is unknown; raise 'runs'"
    low, high = value["interval_low"], value["interval_high"]
    if pd.isna(low):
        return CANNOT_TELL, "the value has no interval"
    if not rating.is_minimum:
        low, high = -high, -low
    limit = rating.limit if rating.is_minimum else -rating.limit
    if low >= limit:
        return PASS, ""
    return (FAIL, "") if high < limit else (CANNOT_TELL, "the limit lies in the interval; raise 'runs'")
