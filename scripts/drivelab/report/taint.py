"""Wording for tainted cells, replays and values."""

from __future__ import annotations

from collections.abc import Iterable

from drivelab.analysis.taint import causes, digest
from drivelab.report.inputs import Row
from drivelab.report.numbers import is_missing

_UNKNOWN = "reason not recorded"


def tainted(rows: Iterable[Row]) -> list[Row]:
    """Return the tainted rows of cells or replays."""
    return [row for row in rows if row.get("tainted") is True]


def taint_reasons(rows: Iterable[Row]) -> str:
    """Summarise the taint reasons of rows."""
    return "; ".join(digest(_text(row) for row in rows))


def taint_note(rows: Iterable[Row]) -> str:
    """Return a note for a table based on these cells or replays; empty if no row is tainted."""
    tainted_rows = tainted(rows)
    return f"{len(tainted_rows)} tainted: {taint_reasons(tainted_rows)}." if tainted_rows else ""


def taint_mark(row: Row) -> str:
    """Return a short mark for a summary value; empty if it is not tainted."""
    return "" if is_missing(row.get("taint_reason")) else f"tainted: {', '.join(causes([str(row['taint_reason'])]))}"


def _text(row: Row) -> str:
    return _UNKNOWN if is_missing(row.get("taint_reason")) else str(row["taint_reason"])
