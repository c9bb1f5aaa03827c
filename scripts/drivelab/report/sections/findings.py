"""Findings of the detectors, and the checks that found nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from drivelab.core.units import counted
from drivelab.report.document import Cell, Table
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.numbers import DASH, capital, duration, is_missing, quantity, unit_of
from drivelab.report.table import Field, cell, table, words

_MANY_ROWS = 12
_FIRST = ("Thermal throttling", "Neighbours", "Outlier runs", "Drift", "Periodic dips")
"""Detectors whose findings explain others: of limits and disturbances."""


def findings_table(inputs: Inputs) -> Table | None:
    """Return all findings with links to their pages; None if no detector ran."""
    frame = inputs.frame("findings")
    if frame.empty:
        return None
    findings = rows_of(frame[frame["found"]])
    checks, counts = frame["detector"].map(_title).value_counts(), Counter(_title(row["detector"]) for row in findings)

    def detector(row: Row) -> Cell:
        anchor = inputs.anchors.get((row["drive"], row["measurement"]), "")
        place = (row["drive"], row["measurement"], *_run(frame, row))
        return Cell(_title(row["detector"]), ", ".join(place), anchor=anchor)

    return _table(
        "findings-table",
        f"{counted(len(findings), 'finding')} in {len(frame)} checks by {len(checks)} detectors",
        detector if findings else lambda _: Cell("Nothing", "all detectors"),
        # what explains other findings first, then rare findings before frequent ones
        sorted(findings, key=lambda row: (_rank(row), counts[_title(row["detector"])], _title(row["detector"]))),
        f"Checks: {', '.join(f'{checks[name]} for {name[:1].lower()}{name[1:]}' for name in checks.index)}. "
        "Each page also lists the checks that found nothing.",
        sources=inputs.sources_of(findings),
    )


def findings_of(inputs: Inputs, key: Key) -> Table | None:
    """Return the findings of one test of one drive, then the other checks; None if no detector ran."""
    rows, frame = inputs.of_key("findings", key), inputs.frame_of("findings", key)
    if not rows:
        return None
    findings = sorted((row for row in rows if row["found"]), key=_rank)
    clear = dict.fromkeys(_title(row["detector"]) for row in rows if not row["found"])

    def detector(row: Row) -> Cell:
        label = () if is_missing(row["cell_label"]) else (str(row["cell_label"]),)
        return Cell(_title(row["detector"]), ", ".join((*label, *_run(frame, row))))

    return _table(
        f"{inputs.anchors[key]}-findings",
        f"{counted(len(findings), 'finding')} in {len(rows)} checks",
        detector if findings else lambda _: Cell("Nothing"),
        findings,
        f"Checked without{' further' if findings else ''} findings: {', '.join(clear)}." if clear else "",
        sources=inputs.sources_of(findings),
        collapsed=len(findings) > _MANY_ROWS,
    )


def _table(
    id_: str, caption: str, detector: Callable[[Any], Cell], findings: Sequence[Row], note: str, **more: Any
) -> Table:
    fields = (
        words("Finding", lambda row: Cell(str(row["words"]), tone="wrap")),
        Field("Statistic", lambda row: _quantity(row, "value")),
        Field("Threshold", lambda row: Cell(_quantity(row, "threshold").text)),
        words(
            "When",
            lambda row: (
                " to ".join(duration(row[end]) for end in ("begin_s", "end_s") if not is_missing(row[end])) or DASH
            ),
        ),
    )
    columns = (words("Detector", detector), *(fields if findings else ()))
    return table(id_, caption, columns, findings or [{}], note, **more).without_empty_columns()


def _rank(row: Row) -> int:
    title = _title(row["detector"])
    return _FIRST.index(title) if title in _FIRST else len(_FIRST)


def _quantity(row: Row, name: str) -> Cell:
    unit = "" if is_missing(row["unit"]) else unit_of("", row["unit"])
    return cell(row[name], lambda value: quantity(value, unit), missing=DASH)


def _run(frame: pd.DataFrame, row: Row) -> tuple[str, ...]:
    """Return the run of a finding, if its measurement has several."""
    return (f"run {row['run']}",) if frame.loc[frame["measurement"] == row["measurement"], "run"].nunique() > 1 else ()


def _title(detector: object) -> str:
    return capital(str(detector).replace("_", " "))
