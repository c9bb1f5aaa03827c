"""What stands out: what the detectors found in the recordings, and what they looked for in vain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.number_cells import quantity_cell
from drivelab.report.numbers import DASH, capital, duration, is_missing, quantity, unit_of
from drivelab.report.view import Cell, Column, Table

_MANY_ROWS = 12
_DISTURBANCES = ("Thermal throttling", "Neighbours", "Outlier runs", "Drift", "Periodic dips")
"""Detectors of what disturbs a measurement; the others tell what a drive is like."""


def findings_table(inputs: Inputs) -> Table | None:
    """All that was found, with the page that it is on; None where no detector looked."""
    frame = inputs.frame("findings")
    if frame.empty:
        return None
    found = rows_of(frame[frame["found"]])
    checks = frame["detector"].map(_title).value_counts()
    counts = Counter(_title(row["detector"]) for row in found)
    rows = tuple(
        (
            Cell(_title(row["detector"]), anchor=inputs.anchors.get((row["drive"], row["measurement"]), ""),
                 small=f"{row['drive']}, {row['measurement']}"),
            *_fields(row),
        )
        for row in sorted(found, key=lambda row: _place(row, counts))
    )  # fmt: skip
    return Table(
        id="findings-table",
        caption=f"{_counted(found)} in {len(frame)} checks, by {len(checks)} detectors",
        columns=_COLUMNS,
        rows=rows or ((Cell("Nothing", small="all detectors"), *(Cell(DASH) for _ in _COLUMNS[1:])),),
        note=f"Checks: {', '.join(f'{checks[one]} for {one[:1].lower()}{one[1:]}' for one in checks.index)}. "
        "Each page has what was looked for there in vain as well.",
        sources=inputs.sources(dict.fromkeys(row["recording"] for row in found)),
    ).without_empty_columns()


def findings_of(inputs: Inputs, key: Key) -> Table | None:
    """What was found in one test of one drive, then what was not; None where no detector looked."""
    rows = inputs.of_key("findings", key)
    found = sorted((row for row in rows if row["found"]), key=_disturbances_first)
    missed = dict.fromkeys(_title(row["detector"]) for row in rows if not row["found"])
    if not rows:
        return None
    in_vain = f"Looked for and not found{' elsewhere' if found else ''}: {', '.join(missed)}." if missed else ""
    return Table(
        id=f"{inputs.anchors[key]}-findings",
        caption=f"{_counted(found)} in {len(rows)} checks",
        columns=_COLUMNS,
        rows=tuple((Cell(_title(row["detector"]), small=_cell(row)), *_fields(row)) for row in found)
        or ((Cell("Nothing"), *(Cell(DASH) for _ in _COLUMNS[1:])),),
        note=in_vain,
        sources=inputs.sources(row["recording"] for row in found),
        collapsed=len(found) > _MANY_ROWS,
    ).without_empty_columns()


def _disturbances_first(row: Row) -> int:
    title = _title(row["detector"])
    return _DISTURBANCES.index(title) if title in _DISTURBANCES else len(_DISTURBANCES)


def _place(row: Row, counts: Mapping[str, int]) -> tuple[int, int, str]:
    """What disturbs a measurement comes before what a drive is like, and of that the rare before the usual."""
    title = _title(row["detector"])
    return _disturbances_first(row), counts[title], title


def _counted(found: list[Row]) -> str:
    return f"{len(found)} finding{'' if len(found) == 1 else 's'}"


_COLUMNS = (
    Column("What", numeric=False),
    Column("In words", numeric=False),
    Column("Statistic"),
    Column("Finding from"),
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


def _cell(row: Row) -> str:
    return "" if is_missing(row["cell_label"]) else str(row["cell_label"])


def _title(detector: object) -> str:
    return capital(str(detector).replace("_", " "))
