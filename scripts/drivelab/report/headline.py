"""The few numbers that matter, as plain sentences for the terminal."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from drivelab.tables import io

_USUAL_CELL = "RND 4KiB 0/100"
"""The variable that every version of the PTS tracks; where it was measured, it speaks for the test."""


def headlines(tables: Path, most: int = 3) -> list[str]:
    """One sentence per measurement from the tables `deltas` and `summary`, at most `most`.

    With one drive there are no deltas: its own values then.
    """
    deltas = io.read(tables / "deltas.parquet", "deltas")
    if len(deltas):
        return [_delta_sentence(row) for row in _one_per_measurement(deltas)[:most]]
    summary = io.read(tables / "summary.parquet", "summary")
    return [_value_sentence(row) for row in _one_per_measurement(summary)[:most]]


def _one_per_measurement(table: pd.DataFrame) -> list[pd.Series]:
    chosen = []
    for _, rows in table.groupby("measurement", sort=False):
        usual = rows[rows["cell_label"] == _USUAL_CELL]
        chosen.append((usual if len(usual) else rows).iloc[0])
    return chosen


def _delta_sentence(row: pd.Series) -> str:
    direction = "better" if row["delta_pct"] >= 0 else "worse"
    sure = "certain" if row["certain"] else f"not certain: {row['note']}"
    return (
        f"{row['measurement']}, {row['cell_label']}: {row['comparison']} {_number(row['comparison_value'])} "
        f"{row['unit']}, {row['basis']} {_number(row['basis_value'])} {row['unit']}: "
        f"{abs(row['delta_pct']):.0f} % {direction} ({sure})"
    )


def _value_sentence(row: pd.Series) -> str:
    return f"{row['measurement']}, {row['cell_label']}: {_number(row['value'])} {row['unit']} ({row['verdict']})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
