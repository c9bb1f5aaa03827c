"""What the report says of tainted cells, replays and values, wherever one is shown."""

from __future__ import annotations

from collections.abc import Iterable

from drivelab.analysis.taint import causes, digest
from drivelab.report.inputs import Row
from drivelab.report.numbers import is_missing

_UNKNOWN = "reason not recorded"


def tainted(rows: Iterable[Row]) -> list[Row]:
    """The rows of cells or replays that are tainted."""
    return [row for row in rows if row.get("tainted") is True]


def taint_reasons(rows: Iterable[Row]) -> str:
    """Reasons of tainted rows in few words."""
    return "; ".join(digest(_text(row) for row in rows))


def taint_note(rows: Iterable[Row]) -> str:
    """A sentence under a table whose numbers stand on these cells or replays; empty if none is tainted."""
    found = tainted(rows)
    return f"{len(found)} tainted: {taint_reasons(found)}." if found else ""


def taint_mark(row: Row) -> str:
    """A few words beside a number of the summary; empty if nothing taints it."""
    return "" if is_missing(row.get("taint_reason")) else f"tainted: {', '.join(causes([str(row['taint_reason'])]))}"


def _text(row: Row) -> str:
    return _UNKNOWN if is_missing(row.get("taint_reason")) else str(row["taint_reason"])
