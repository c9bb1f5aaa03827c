"""Write figures and tables of a study for a paper, with captions that name the labels and the source of the data."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

import drivelab
from drivelab.analysis.deltas.inference import Value, main_values
from drivelab.analysis.limits import limited
from drivelab.core.errors import UserError
from drivelab.core.grouping import grouped
from drivelab.core.units import format_percentage, scaled
from drivelab.explore.redrawing import COMPARISON, places, redraw, subject_of
from drivelab.figures.registry import FIGURES
from drivelab.recording.folders import owner
from drivelab.report.numbers import DASH, TIMES, is_missing, number, unit_of, value_words
from drivelab.tables import io

CAPTIONS = "captions.md"
_KEY = re.compile(r"/[0-9a-f]{12}-run(\d+)/")
"""The part of a figure's place that names the recording."""


@dataclass(frozen=True)
class _Study:
    """What captions say of a study."""

    results: Path
    name: str
    summary: pd.DataFrame
    conditions: pd.DataFrame
    digest: str

    def credits(self, drive: str | None = None, measurement: str | None = None) -> str:
        """Return the end of a caption: the labels of a drive and measurement, or of all, and the provenance."""
        rows = self.summary
        rows = rows if measurement is None else rows[rows["measurement"] == measurement]
        rows = rows if drive in (None, COMPARISON) else rows[rows["drive"] == drive]
        labels = ", ".join(limited(rows, self.conditions))
        recordings = len(set(self.summary["recordings"].explode()))
        return (
            f"{labels and f'Labels: {labels}. '}Data: study {self.name}, {recordings} recordings, values "
            f"SHA-256 {self.digest[:12]}, drivelab {drivelab.__version__}."
        )


def write_for_paper(
    results: Path,
    output: Path,
    figures: str | None,
    tables: str | None,
    watch: Callable[[int, int], None] = lambda done, of: None,
) -> list[Path]:
    """Write figures (pdf, svg, png) and tables (csv, latex) below `output`, and their CAPTIONS; return the files.

    Of each drive and measurement the figures of the first run are written. Raises UserError for results without
    figures or values.
    """
    study = _study(results)
    captions: dict[Path, str] = {}
    if figures is not None:
        from drivelab.figures.base.paper import fitting, save  # imports matplotlib, which is slow

        chosen = _of_first_runs(places(results))
        (output / "figures").mkdir(parents=True, exist_ok=True)
        for number, place in enumerate(chosen):
            watch(number, len(chosen))
            figure, width_in = fitting(lambda place=place: redraw(results, place))  # type: ignore[misc]
            path = output / f"figures/{place.replace('/', '-')}.{figures}"
            save(figure, path)
            captions[path] = f"{_caption(study, place)} Width: {width_in:g} inches."
    if tables is not None:
        ending, write = TABLE_FORMATS[tables]
        (output / "tables").mkdir(parents=True, exist_ok=True)
        for table in _tables(study):
            path = output / f"tables/{table.name}{ending}"
            path.write_text(write(table), encoding="utf-8")
            captions[path] = table.caption
    lines = [f"## {path.relative_to(output)}\n\n{caption}\n" for path, caption in captions.items()]
    (output / CAPTIONS).write_text("\n".join([f"# Figures and tables of {study.name}\n", *lines]), encoding="utf-8")
    return [*captions, output / CAPTIONS]


def _study(results: Path) -> _Study:
    path, conditions = results / "tables/summary.parquet", results / "tables/conditions.parquet"
    if not path.exists():
        raise UserError(f"{path}: does not exist, so there are no values for a paper; run the study first")
    return _Study(
        results, owner(results) or results.name, io.read([path], "summary"),
        io.read([conditions] if conditions.exists() else [], "conditions"),
        hashlib.sha256(path.read_bytes()).hexdigest(),
    )  # fmt: skip


def _of_first_runs(found: Sequence[str]) -> list[str]:
    """Return the places of figures of the first run of each drive and measurement."""
    runs = grouped(found, lambda place: _KEY.sub("/", place))
    first = {min(places, key=lambda place: int("".join(_KEY.findall(place)) or 0)) for places in runs.values()}
    return [place for place in found if place in first]


def _caption(study: _Study, place: str) -> str:
    *parts, name = place.split("/")
    kind = FIGURES[name]
    return f"{kind.title}: {subject_of(parts)}. {kind.caption} {study.credits(*parts[:2])}"


def _tables(study: _Study) -> list[PaperTable]:
    caption = f"Measured values, with 95 % confidence intervals of the mean of the recordings. {study.credits()}"
    tables = [values_table(study.summary, caption)]
    path = study.results / "tables/deltas.parquet"
    deltas = io.read([path] if path.exists() else [], "deltas")
    if len(deltas):
        margin = float(deltas["margin_pct"].iloc[0])
        caption = (
            f"Differences to {deltas['basis'].iloc[0]}; positive is better. p-values and intervals are adjusted for "
            f"all comparisons; the margin is {margin:g} %. {study.credits()}"
        )
        tables.append(comparison_table(deltas, caption))
    return tables


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
            "test": row.measurement, "workload": value_words(row.cell_label, row.metric, joint=", "),
            "drive": row.drive, "value": number(shown[0]),
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
        p_value = DASH if is_missing(p := row.p_adjusted) else "< 0.001" if p < 0.001 else f"{p:.2g}"
        rows.append([row.measurement, value_words(row.cell_label, row.metric, joint=", "),
                     *([row.comparison] * (len(others) > 1)), *map(number, values), unit, _percent(row.delta_pct),
                     DASH if low == DASH else f"{low} to {high}", p_value, row.verdict])  # fmt: skip
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


def _percent(value: float) -> str:
    return DASH if is_missing(value) else format_percentage(float(value), signed=True)
