"""Findings of the detectors, and the checks that found nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pandas as pd

from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.numbers import DASH, capital, duration, is_missing, quantity, unit_of
from drivelab.report.table_fields import quantity_cell
from drivelab.report.view import Cell, Column, Table

_MANY_ROWS = 12
_FIRST = ("Thermal throttling", "Neighbours", "Outlier runs", "Drift", "Periodic dips")
"""Detectors whose findings explain others: of limits and disturbances."""


def findings_table(inputs: Inputs) -> Table | None:
    """Return all findings with links to their pages; None if no detector ran."""
    frame = inputs.frame("findings")
    if frame.empty:
        return None
    findings = rows_of(frame[frame["found"]])
    checks = frame["detector"].map(_title).value_counts()
    counts = Counter(_title(row["detector"]) for row in findings)
    rows = tuple(
        (
            Cell(_title(row["detector"]), anchor=inputs.anchors.get((row["drive"], row["measurement"]), ""),
                 small=", ".join((row["drive"], row["measurement"], *_run(frame, row)))),
            *_fields(row),
        )
        for row in sorted(findings, key=lambda row: _place(row, counts))
    )  # fmt: skip
    return Table(
        id="findings-table",
        caption=f"{_counted(findings)} in {len(frame)} checks by {len(checks)} detectors",
        columns=_COLUMNS,
        rows=rows or ((Cell("Nothing", small="all detectors"), *(Cell(DASH) for _ in _COLUMNS[1:])),),
        note=f"Checks: {', '.join(f'{checks[name]} for {name[:1].lower()}{name[1:]}' for name in checks.index)}. "
        "Each page also lists the checks that found nothing.",
        sources=inputs.sources(dict.fromkeys(row["recording"] for row in findings)),
    ).without_empty_columns()


def findings_of(inputs: Inputs, key: Key) -> Table | None:
    """Return the findings of one test of one drive, then the other checks; None if no detector ran."""
    rows = inputs.of_key("findings", key)
    findings = sorted((row for row in rows if row["found"]), key=_rank)
    frame = inputs.frame_of("findings", key)
    clear = dict.fromkeys(_title(row["detector"]) for row in rows if not row["found"])
    if not rows:
        return None
    return Table(
        id=f"{inputs.anchors[key]}-findings",
        caption=f"{_counted(findings)} in {len(rows)} checks",
        columns=_COLUMNS,
        rows=tuple(
            (Cell(_title(row["detector"]), small=", ".join((*_cell(row), *_run(frame, row)))), *_fields(row))
            for row in findings
        )
        or ((Cell("Nothing"), *(Cell(DASH) for _ in _COLUMNS[1:])),),
        note=f"Checked without{' further' if findings else ''} findings: {', '.join(clear)}." if clear else "",
        sources=inputs.sources(row["recording"] for row in findings),
        collapsed=len(findings) > _MANY_ROWS,
    ).without_empty_columns()


def _rank(row: Row) -> int:
    title = _title(row["detector"])
    return _FIRST.index(title) if title in _FIRST else len(_FIRST)


def _place(row: Row, counts: Mapping[str, int]) -> tuple[int, int, str]:
    """Sort key: what explains other findings first, then rare findings before frequent ones."""
    title = _title(row["detector"])
    return _rank(row), counts[title], title


def _counted(findings: list[Row]) -> str:
    return f"{len(findings)} finding{'' if len(findings) == 1 else 's'}"


_COLUMNS = (
    Column("Detector", numeric=False),
    Column("Finding", numeric=False),
    Column("Statistic"),
    Column("Threshold"),
    Column("When", numeric=False),
)


def _fields(row: Row) -> tuple[Cell, ...]:
    unit = "" if is_missing(row["unit"]) else unit_of("", row["unit"])
    return (
        Cell(str(row["words"]), tone="wrap"),
        Cell(DASH) if is_missing(row["value"]) else quantity_cell(row["value"], unit),
        Cell(DASH) if is_missing(row["threshold"]) else Cell(quantity(row["threshold"], unit)),
        Cell(_when(row)),
    )


def _when(row: Row) -> str:
    if is_missing(row["begin_s"]):
        return DASH
    begin = duration(row["begin_s"])
    return begin if is_missing(row["end_s"]) else f"{begin} to {duration(row['end_s'])}"


def _cell(row: Row) -> tuple[str, ...]:
    return () if is_missing(row["cell_label"]) else (str(row["cell_label"]),)


def _run(frame: pd.DataFrame, row: Row) -> tuple[str, ...]:
    """Return the run of a finding, if its measurement has several."""
    return (f"run {row['run']}",) if frame.loc[frame["measurement"] == row["measurement"], "run"].nunique() > 1 else ()


def _title(detector: object) -> str:
    return capital(str(detector).replace("_", " "))
