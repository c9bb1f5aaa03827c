"""Tables of a study for papers: values and comparisons as LaTeX or CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.main_values import Value, main_values
from drivelab.core.units import format_percentage, scaled
from drivelab.report.numbers import DASH, TIMES, is_missing, number, unit_of
from drivelab.report.sentences import value_words

_VALUES = ["measurement", "cell_label", "metric", "drive", "value", "interval_low", "interval_high", "unit", "n",
           "statistic", "verdict", "taint_reason", "reduced", "virtual", "clock"]  # fmt: skip
_COMPARISON = ["measurement", "cell_label", "metric", "basis", "comparison", "basis_value", "comparison_value", "unit",
               "delta_pct", "interval_low_pct", "interval_high_pct", "p_adjusted", "margin_pct", "basis_n",
               "comparison_n", "verdict", "doubts", "reduced", "virtual", "clock"]  # fmt: skip
"""Columns of the tables with all digits."""


@dataclass(frozen=True)
class PaperTable:
    """One table: texts as in print, and the same numbers with all digits."""

    name: str
    caption: str
    texts: pd.DataFrame
    exact: pd.DataFrame
    numeric: frozenset[str]
    """Columns of numbers in `texts`, which are aligned at the right."""


def values_table(summary: pd.DataFrame, caption: str) -> PaperTable:
    """Return the values of all drives, without those that say the same; `summary` is that table."""
    chosen, rows = _main(summary, "drive"), []
    for row in chosen.itertuples():
        known = [row.value, *(end for end in (row.interval_low, row.interval_high) if not is_missing(end))]
        shown, unit = scaled([float(value) for value in known], unit_of(row.metric, row.unit))
        rows.append({
            "test": row.measurement, "workload": _words(row), "drive": row.drive, "value": number(shown[0]),
            "95 % interval": f"{number(shown[1])} to {number(shown[2])}" if len(shown) == 3 else DASH,
            "unit": unit, "n": str(len(row.recordings)), "verdict": row.verdict,
        })  # fmt: skip
    numeric = frozenset({"value", "95 % interval", "n"})
    return PaperTable("values", caption, pd.DataFrame(rows), chosen[_VALUES], numeric)


def comparison_table(deltas: pd.DataFrame, caption: str) -> PaperTable:
    """Return the comparisons with the basis, without those that say the same; `deltas` is that table.

    Raises ValueError for a table without rows.
    """
    if deltas.empty:
        raise ValueError("there is no comparison to show")
    chosen, rows = _main(deltas, "comparison"), []
    basis, others = str(deltas["basis"].iloc[0]), list(dict.fromkeys(map(str, deltas["comparison"])))
    other = others[0] if len(others) == 1 else "value"
    for row in chosen.itertuples():
        values, unit = scaled([float(row.basis_value), float(row.comparison_value)], unit_of(row.metric, row.unit))
        low, high = _percent(row.interval_low_pct), _percent(row.interval_high_pct)
        p_value = (
            DASH if is_missing(row.p_adjusted) else "< 0.001" if row.p_adjusted < 0.001 else f"{row.p_adjusted:.2g}"
        )
        rows.append([row.measurement, _words(row), *([row.comparison] * (len(others) > 1)), *map(number, values), unit,
                     _percent(row.delta_pct), DASH if low == DASH else f"{low} to {high}", p_value,
                     row.verdict])  # fmt: skip
    numeric = (basis, other, "delta, %", "interval, %", "p")
    columns = ("test", "workload", *(["drive"] * (len(others) > 1)), *numeric[:2], "unit", *numeric[2:], "verdict")
    texts = pd.DataFrame(rows, columns=list(columns))  # a drive may be called `unit`, so columns are lists
    return PaperTable("comparison", caption, texts, chosen[_COMPARISON], frozenset(numeric))


def latex(table: PaperTable) -> str:
    """Return a table for booktabs, with its caption and label; it spans both columns and takes no other package."""
    alignment = "".join("r" if column in table.numeric else "l" for column in table.texts)
    rows = [" & ".join(map(tex, row)) + r" \\" for row in (table.texts.columns, *table.texts.to_numpy())]
    lines = [
        r"\begin{table*}", r"\centering\scriptsize\setlength{\tabcolsep}{3pt}", rf"\caption{{{tex(table.caption)}}}",
        rf"\label{{tab:drivelab-{table.name}}}", rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", rows[0],
        r"\midrule", *rows[1:], r"\bottomrule", r"\end{tabular}", r"\end{table*}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def comma_separated(table: PaperTable) -> str:
    """Return a table as CSV with all digits, under the names of drivelab's own columns; captions are beside it."""
    joined = table.exact.assign(**{name: table.exact[name].map("; ".join) for name in {"doubts"} & {*table.exact}})
    return str(joined.to_csv(index=False, lineterminator="\n"))


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


def _words(row: Any) -> str:
    return value_words(row.cell_label, row.metric, joint=", ")


def _percent(value: float) -> str:
    return DASH if is_missing(value) else format_percentage(float(value), signed=True)
