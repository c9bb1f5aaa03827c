"""What disturbed the cells behind the numbers of a report, or limited them: tests and reasons for banners."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drivelab.core.units import some
from drivelab.criteria.taint import is_busy
from drivelab.report.inputs import Inputs, Key, Row, rows_of
from drivelab.report.measurement_outcome import host_limit_of, host_mark, taint_reasons

Concern = tuple[Sequence[Key], Iterable[str]]
"""Affected tests and reasons; both empty if a limitation does not apply."""
_NAMED = 3
"""Cells that a reason names."""
_MAY_BE_TAINTED = ("cells", "replays", "application_runs")


def keys_of(inputs: Inputs, rows: Iterable[Row]) -> list[Key]:
    """Return the tests of these rows, in the order of the study."""
    affected = {(row["drive"], row["measurement"]) for row in rows}
    return [key for key in inputs.keys if key in affected]


def busy(inputs: Inputs) -> Concern:
    """Return the tests whose host other programs used."""
    return _disturbed(inputs, [row for row in _all_tainted(inputs) if is_busy(row.get("taint_reason"))])


def tainted(inputs: Inputs) -> Concern:
    """Return the tests that something else disturbed."""
    return _disturbed(inputs, [row for row in _all_tainted(inputs) if not is_busy(row.get("taint_reason"))])


def _all_tainted(inputs: Inputs) -> list[Row]:
    frames = [inputs.frame(name) for name in _MAY_BE_TAINTED]
    return [row for frame in frames if "tainted" in frame for row in rows_of(frame[frame["tainted"].eq(True)])]


def _disturbed(inputs: Inputs, rows: list[Row]) -> Concern:
    keys, reasons = keys_of(inputs, rows), []
    for key in keys:
        tainted = [row for row in rows if (row["drive"], row["measurement"]) == key]
        total = sum(len(inputs.frame_of(name, key)) for name in _MAY_BE_TAINTED)
        reasons.append(f"{key[0]} · {key[1]}: {len(tainted)} of {total} cells and replays: {taint_reasons(tainted)}")
    return keys, reasons


def host_limited(inputs: Inputs) -> Concern:
    """Return the tests whose values the host may limit."""
    rows = [row for row in inputs.tables["summary"] if host_mark(row)]
    keys, reasons = keys_of(inputs, rows), []
    for key in keys:
        limited = [row for row in rows if (row["drive"], row["measurement"]) == key]
        labels = list(dict.fromkeys(str(row["cell_label"]) for row in limited))
        reasons.append(f"{key[0]} · {key[1]}: {some(labels, _NAMED)}: {host_limit_of(limited)}")
    return keys, reasons
