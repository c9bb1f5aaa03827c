"""Marks and notes on values that something disturbed, or that the host limits."""

from __future__ import annotations

from collections.abc import Iterable

from drivelab.analysis import limits
from drivelab.analysis.verdict import FAULTS, HOST_LIMITED
from drivelab.criteria.host_limit import most_severe
from drivelab.criteria.taint import causes, digest
from drivelab.report.document import Cell
from drivelab.report.inputs import Row
from drivelab.report.numbers import is_missing, text
from drivelab.tables.labels import KINDS

BUSY = f"measured on a {limits.BUSY}"


def taint_reasons(rows: Iterable[Row]) -> str:
    """Summarise the taint reasons of rows."""
    reasons = (row.get("taint_reason") for row in rows)
    return "; ".join(digest("reason not recorded" if is_missing(reason) else str(reason) for reason in reasons))


def taint_mark(row: Row) -> str:
    """Return a short mark for a summary value; empty if it is not tainted."""
    return "" if is_missing(row.get("taint_reason")) else f"tainted: {', '.join(causes([str(row['taint_reason'])]))}"


def host_mark(row: Row) -> str:
    """Return a short mark for a value that the host may limit; empty for others.

    The drive's own speed is at least the value, and its time at most.
    """
    if is_missing(row.get("host_limit")):
        return ""
    return f"at {'most' if row.get('kind', KINDS.get(row.get('metric', ''))) == 'time' else 'least'}: {HOST_LIMITED}"


def marks(row: Row | None) -> str:
    """Return all short marks of a summary value; empty for a missing one."""
    return "" if row is None else ", ".join(filter(None, (host_mark(row), taint_mark(row))))


def host_limit_of(rows: Iterable[Row]) -> str | None:
    """Return why the host may be the limit of any of these cells or values."""
    return most_severe(str(row["host_limit"]) for row in rows if host_mark(row))


def taint_note(cells: Iterable[Row]) -> str:
    """Return a note on disturbances and host for a table of these cells or replays; empty if there are none."""
    rows = list(cells)
    disturbed = [row for row in rows if row.get("tainted") is True]
    taints = f"{len(disturbed)} tainted: {taint_reasons(disturbed)}. " if disturbed else ""
    return f"{taints}{_host_note(rows)}".strip()


def notes(values: Iterable[Row]) -> str:
    """Return the notes on host and disturbances for a table of summary values; empty if there are none."""
    rows = list(values)
    disturbed = list(filter(taint_mark, rows))
    taints = f" Tainted: {taint_reasons(disturbed)}." if disturbed else ""
    return f"{_host_note(rows)}{taints}".strip()


def _host_note(rows: Iterable[Row]) -> str:
    reason = host_limit_of(rows)
    return "" if reason is None else f"Host-limited: {reason}."


def verdicts_of(values: Iterable[Row], mark: str) -> Cell:
    """Return the verdicts on summary values in one cell, with a mark."""
    verdicts = dict.fromkeys(text(row["verdict"]) for row in values)
    return Cell(f"{'; '.join(verdicts)}{mark}", tone="bad" if verdicts.keys() & set(FAULTS) else "")
