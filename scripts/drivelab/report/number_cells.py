"""Numbers as fields of a table, each with its full precision and what it stands on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from drivelab.report.inputs import Inputs, Row
from drivelab.report.numbers import DASH, amount, duration, is_missing, number, percent, quantity
from drivelab.report.outcome import TONES, delta_words, interval, outcome
from drivelab.report.proof import of_delta, of_value
from drivelab.report.reasons import Reasons
from drivelab.report.view import Cell, Proof


def value_cell(value: Any, proof: Proof | None = None, small: str = "") -> Cell:
    """A number as a field."""
    return Cell(number(value), small, "missing" if is_missing(value) else "", value=_exact(value), proof=proof)


def number_cell(value: Any, small: str = "", tone: str = "") -> Cell:
    """A number that is not of the summary, such as a count."""
    return Cell(number(value), small, tone, value=_exact(value))


def quantity_cell(value: Any, unit: str) -> Cell:
    """A number with its unit, and exactly."""
    return Cell(quantity(value, unit), value=_exact(value))


def size_cell(value: Any, small: str = "", tone: str = "") -> Cell:
    """Bytes for people, in powers of two like throughput, and exactly."""
    return Cell(amount(value), small, tone, value=_exact(value))


def duration_cell(value: Any, small: str = "", tone: str = "") -> Cell:
    """Seconds for people, and exactly."""
    return Cell(duration(value), small, tone, value=_exact(value))


def percent_cell(value: Any, signed: bool = False, small: str = "", tone: str = "") -> Cell:
    """A percentage, and exactly."""
    return Cell(percent(value, signed), small, tone, value=_exact(value))


def _exact(value: Any) -> float | None:
    return None if is_missing(value) else float(value)


def summary_cell(row: Row | None, small: str = "") -> Cell:
    """A value of the summary with what it stands on; a dash where there is none."""
    return Cell(DASH) if row is None else value_cell(row["value"], of_value(row), small)


def side_cell(inputs: Inputs, delta: Row, side: str) -> Cell:
    """The value of the basis or of the comparison of a delta."""
    row = inputs.summary_of(str(delta[side]), delta["measurement"], delta["cell_label"], delta["metric"])
    return value_cell(delta[f"{side}_value"], None if row is None else of_value(row))


def longest_of(deltas: Iterable[Row]) -> float:
    """The delta whose bar is full."""
    return max((abs(float(row["delta_pct"])) for row in deltas if not is_missing(row["delta_pct"])), default=0.0)


def delta_cell(inputs: Inputs, delta: Row, longest: float) -> Cell:
    """A delta with its sign, its interval and a bar, `longest` being the delta whose bar is full."""
    value = delta["delta_pct"]
    proof = of_delta(inputs, delta)
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
    """Length of the bar of a delta: its logarithm above 1 %, else one of hundreds would leave none to others."""
    return math.copysign(math.log1p(abs(value_pct)) / math.log1p(longest_pct), value_pct) if longest_pct else 0.0


def judged_cell(inputs: Inputs, delta: Row, longest: float, reasons: Reasons) -> Cell:
    """A delta and its verdict in one field, where there is no room for two."""
    return replace(delta_cell(inputs, delta, longest), bar=None, verdict=verdict_cell(delta, reasons).text)


def verdict_cell(delta: Row, reasons: Reasons) -> Cell:
    """The verdict in a word, with the numbers of the reasons why it is no more, and of what else differs than was meant
    to; a star where remarks apply."""
    said = outcome(delta)
    star = " *" if len(delta["remarks"]) else ""
    return Cell(f"{said}{star}{reasons.of(delta)}", tone=TONES.get(said, ""))
