"""Tables of a study for papers: values and comparisons as LaTeX or CSV."""

from __future__ import annotations

import csv
import io as streams
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.main_values import Value, main_values
from drivelab.core.units import format_percentage, scaled
from drivelab.report.numbers import DASH, TIMES, is_missing, number, unit_of
from drivelab.report.sentences import value_words

Cells = Sequence[Sequence[str]]


@dataclass(frozen=True)
class PaperTable:
    """One table: texts as in print, and the same numbers with all digits."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Cells
    exact_columns: Sequence[str]
    exact_rows: Sequence[Sequence[object]]
    numeric: frozenset[str]
    """Columns of numbers, which are aligned at the right."""


def values_table(summary: pd.DataFrame, caption: str) -> PaperTable:
    """Return the values of all drives, without those that say the same; `summary` is that table."""
    chosen = _main(summary, "drive")
    rows = []
    for row in chosen.itertuples():
        known = [row.value, *(end for end in (row.interval_low, row.interval_high) if not is_missing(end))]
        shown, unit = scaled([float(value) for value in known], unit_of(row.metric, row.unit))
        interval = f"{number(shown[1])} to {number(shown[2])}" if len(shown) == 3 else DASH
        rows.append([row.measurement, _words(row), row.drive, number(shown[0]), interval, unit,
                     str(len(row.recordings)), row.verdict])  # fmt: skip
    columns = ("test", "workload", "drive", "value", "95 % interval", "unit", "n", "verdict")
    exact = ["measurement", "cell_label", "metric", "drive", "value", "interval_low", "interval_high", "unit", "n",
             "statistic", "verdict", "taint_reason", "reduced", "virtual", "clock"]  # fmt: skip
    numeric = frozenset({"value", "95 % interval", "n"})
    return PaperTable("values", caption, columns, rows, exact, _exact(chosen, exact), numeric)


def comparison_table(deltas: pd.DataFrame, caption: str) -> PaperTable:
    """Return the comparisons with the basis, without those that say the same; `deltas` is that table.

    Raises ValueError for a table without rows.
    """
    if deltas.empty:
        raise ValueError("there is no comparison to show")
    chosen = _main(deltas, "comparison")
    others = list(dict.fromkeys(map(str, deltas["comparison"])))
    several = len(others) > 1
    rows = []
    for row in chosen.itertuples():
        (basis, other), unit = scaled([float(row.basis_value), float(row.comparison_value)],
                                      unit_of(row.metric, row.unit))  # fmt: skip
        interval = DASH if is_missing(row.interval_low_pct) else (
            f"{_percent(row.interval_low_pct)} to {_percent(row.interval_high_pct)}")  # fmt: skip
        rows.append([row.measurement, _words(row), *([row.comparison] * several), number(basis),
                     number(other), unit, _percent(row.delta_pct), interval,
                     DASH if is_missing(row.p_adjusted) else _p(row.p_adjusted), row.verdict])  # fmt: skip
    names = str(deltas["basis"].iloc[0]), others[0] if len(others) == 1 else "value"
    of_place = ("test", "workload", *(["drive"] * several))
    columns = (*of_place, *names, "unit", "delta, %", "interval, %", "p", "verdict")
    exact = ["measurement", "cell_label", "metric", "basis", "comparison", "basis_value", "comparison_value", "unit",
             "delta_pct", "interval_low_pct", "interval_high_pct", "p_adjusted", "margin_pct", "basis_n",
             "comparison_n", "verdict", "doubts", "reduced", "virtual", "clock"]  # fmt: skip
    numeric = frozenset({*names, "delta, %", "interval, %", "p"})
    return PaperTable("comparison", caption, columns, rows, exact, _exact(chosen, exact), numeric)


def latex(table: PaperTable) -> str:
    """Return a table for booktabs, with its caption and label; it spans both columns and takes no other package."""
    alignment = "".join("r" if column in table.numeric else "l" for column in table.columns)
    lines = [
        r"\begin{table*}", r"\centering\scriptsize\setlength{\tabcolsep}{3pt}", rf"\caption{{{tex(table.caption)}}}",
        rf"\label{{tab:drivelab-{table.name}}}", rf"\begin{{tabular}}{{{alignment}}}", r"\toprule",
        f"{' & '.join(tex(column) for column in table.columns)} \\\\", r"\midrule",
        *(f"{' & '.join(tex(cell) for cell in row)} \\\\" for row in table.rows),
        r"\bottomrule", r"\end{tabular}", r"\end{table*}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def comma_separated(table: PaperTable) -> str:
    """Return a table as CSV with all digits, under the names of drivelab's own columns; captions are beside it."""
    text = streams.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.exact_columns)
    writer.writerows(table.exact_rows)
    return text.getvalue()


TABLE_FORMATS: Mapping[str, tuple[str, Callable[[PaperTable], str]]] = {
    "latex": (".tex", latex), "csv": (".csv", comma_separated),
}  # fmt: skip
"""Ending of the file, and the function that writes it."""

_TEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$",
        "\u2212": r"$-$", "\u00a0": "~", "\u2013": "--", "µ": r"$\mu$", "±": r"$\pm$", TIMES: r"$\times$",
        "≤": r"$\leq$", "≥": r"$\geq$", "√": r"$\surd$", "·": r"$\cdot$", "→": r"$\rightarrow$",
        "←": r"$\leftarrow$", "∞": r"$\infty$", "…": r"\ldots{}"}  # fmt: skip


def tex(text: str) -> str:
    """Return text with the characters that LaTeX would interpret, or lacks, replaced."""
    return "".join(_TEX.get(letter, letter) for letter in text)


def _main(table: pd.DataFrame, place: str) -> pd.DataFrame:
    rows = zip(table[place], table["measurement"], table["cell_label"], table["metric"], strict=True)
    return table.iloc[list(main_values([Value((drive, test), label, metric) for drive, test, label, metric in rows]))]


def _exact(table: pd.DataFrame, columns: Sequence[str]) -> list[list[object]]:
    return [["" if isinstance(value, float) and value != value else "; ".join(map(str, value))
             if not isinstance(value, str) and hasattr(value, "__len__") else "" if is_missing(value) else value
             for value in row]
            for row in table[list(columns)].astype(object).to_numpy().tolist()]  # fmt: skip


def _words(row: Any) -> str:
    return value_words(row.cell_label, row.metric, joint=", ")


def _percent(value: float) -> str:
    return DASH if is_missing(value) else format_percentage(float(value), signed=True)


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.2g}"
