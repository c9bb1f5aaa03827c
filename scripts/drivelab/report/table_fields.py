"""Numbers as table fields, with full precision and provenance."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from drivelab.report.inputs import Inputs, Row
from drivelab.report.measurement_outcome import TONES, delta_words, interval, outcome
from drivelab.report.numbers import (
    DASH,
    amount,
    duration,
    heading,
    is_missing,
    metric_name,
    number,
    percent,
    quantities,
    quantity,
    unit_of,
)
from drivelab.report.sections.proof import delta_proof, value_proof
from drivelab.report.sentences import Reasons
from drivelab.report.view import Cell, Proof


def value_cell(value: Any, proof: Proof | None = None, small: str = "") -> Cell:
    """Return a number as a field."""
    return Cell(number(value), small, "missing" if is_missing(value) else "", value=_exact(value), proof=proof)


def scaled_cell(cell: Cell, divisor: float) -> Cell:
    """Return a number in a larger unit; its exact value stays."""
    return cell if divisor == 1 or cell.value is None else replace(cell, text=number(cell.value / divisor))


def number_cell(value: Any, small: str = "", tone: str = "") -> Cell:
    """Return a number that does not come from the summary, such as a count."""
    return Cell(number(value), small, tone, value=_exact(value))


def quantity_cell(value: Any, unit: str) -> Cell:
    """Return a number with its unit, and its exact value."""
    return Cell(quantity(value, unit), value=_exact(value))


def size_cell(value: Any, small: str = "", tone: str = "") -> Cell:
    """Return bytes with a binary prefix, like throughput, and their exact value."""
    return Cell(amount(value), small, tone, value=_exact(value))


def duration_cell(value: Any, small: str = "", tone: str = "") -> Cell:
    """Return a readable duration, and its exact value in seconds."""
    return Cell(duration(value), small, tone, value=_exact(value))


def percent_cell(value: Any, signed: bool = False, small: str = "", tone: str = "") -> Cell:
    """Return a percentage, and its exact value."""
    return Cell(percent(value, signed), small, tone, value=_exact(value))


def _exact(value: Any) -> float | None:
    return None if is_missing(value) else float(value)


def summary_cell(row: Row | None, small: str = "") -> Cell:
    """Return a summary value with its provenance; a dash if there is no row."""
    return Cell(DASH) if row is None else value_cell(row["value"], value_proof(row), small)


def side_cells(inputs: Inputs, delta: Row) -> tuple[Cell, Cell]:
    """Return basis and comparison of a delta in one unit, with their provenance and full values."""
    sides = ("basis", "comparison")
    values = [delta[f"{side}_value"] for side in sides]
    metric = str(delta["metric"])
    unit = unit_of(metric, delta["unit"])
    texts = quantities(values, "" if unit == metric_name(metric) else unit)
    cells = []
    for side, value, text in zip(sides, values, texts, strict=True):
        row = inputs.summary_of(str(delta[side]), delta["measurement"], delta["cell_label"], metric)
        cells.append(replace(value_cell(value, None if row is None else value_proof(row)), text=text))
    return cells[0], cells[1]


def metric_cell(delta: Row) -> Cell:
    """Return the name of a delta's metric; a download also has the unit of its values."""
    metric, unit = str(delta["metric"]), delta["unit"]
    return Cell(metric_name(metric), small="lower is better" if delta["kind"] == "time" else "",
                download=heading(metric, unit))  # fmt: skip


def longest_of(deltas: Iterable[Row]) -> float:
    """Return the largest absolute delta in percent; its bar has full length."""
    return max((abs(float(row["delta_pct"])) for row in deltas if not is_missing(row["delta_pct"])), default=0.0)


def delta_cell(inputs: Inputs, delta: Row, longest: float) -> Cell:
    """Return a delta with its sign, interval and bar; `longest` is the delta with a full bar."""
    value = delta["delta_pct"]
    proof = delta_proof(inputs, delta)
    if is_missing(value):
        return Cell(delta_words(delta), tone="missing", proof=proof)
    return Cell(
        delta_words(delta),
        small=interval(delta),
        tone=TONES.get(outcome(delta), ""),
        bar=_bar(float(value), longest),
        value=float(value),
        proof=proof,
    )


def _bar(value_pct: float, longest_pct: float) -> float:
    """Return the length of a delta's bar, on a log scale: a delta of hundreds would hide all others."""
    return math.copysign(math.log1p(abs(value_pct)) / math.log1p(longest_pct), value_pct) if longest_pct else 0.0


def judged_cell(inputs: Inputs, delta: Row, longest: float, reasons: Reasons) -> Cell:
    """Return a delta and its verdict in one field, for tables without room for two."""
    return replace(delta_cell(inputs, delta, longest), bar=None, verdict=verdict_cell(delta, reasons).text)


def verdict_cell(delta: Row, reasons: Reasons) -> Cell:
    """Return the verdict with the numbers of its reasons; a star marks remarks.

    Reasons are doubts and unintended differences.
    """
    verdict = outcome(delta)
    star = " *" if len(delta["remarks"]) else ""
    return Cell(f"{verdict}{star}{reasons.of(delta)}", tone=TONES.get(verdict, ""))
