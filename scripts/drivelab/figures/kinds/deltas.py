"""Performance deltas between drives: a forest plot with verdicts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from drivelab.analysis.deltas.inference import Value, main_values
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, DELTA_VERDICTS, NOT_COMPARED, SAME, WORSE
from drivelab.core.units import format_percentage
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import short_name, with_minus
from drivelab.figures.families.rows import MARGIN, Across, Rows, dot
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "comparison", "Comparison of the drives",
        "Delta of each drive against the basis for each cell, for as many metrics as fit; metrics that say the same "
        "share a row. Positive is better for speeds and for times. Whiskers are confidence intervals. The band is "
        "the margin within which drives are the same. Hollow dots have no verdict. The verdict of each cell is on "
        "the right.",
        tables=("deltas",), when=("comparison",), place=360, status="summary",
    ),
)  # fmt: skip

KEY = ["measurement", "metric", "cell_label"]
_MOST_LINES = 40
_LETTERS = 20
"""Maximum length of a line of a cell's name, so that the values have enough width."""
_FIRST = ("score", "duration_s", "figure_of_merit", "iops", "mean_latency_us")
"""Metrics shown first if not all fit; the bandwidth of a cell only repeats its I/O rate."""


def checked(deltas: pd.DataFrame) -> str:
    """Return the name of the basis; raises ValueError for unsuitable tables and for several bases."""
    basis = str(selection.require_one(deltas, "basis", "deltas"))
    if deltas.duplicated([*KEY, "comparison"]).any():
        raise ValueError("table 'deltas' holds a cell twice for one drive; choose one protocol")
    return basis


def most_telling(deltas: pd.DataFrame) -> pd.DataFrame:
    """Return the deltas without metrics that repeat another one.

    All cells are shown, each in the metric that it is known by; further metrics as far as they fit on a page.
    """
    columns = (deltas[name] for name in ("measurement", "comparison", "cell_label", "metric", "verdict"))
    values = [Value((test, drive), *others) for test, drive, *others in zip(*columns, strict=True)]
    deltas = deltas.iloc[sorted(main_values(values))]
    kept: list[str] = []
    shown: set[tuple[str, str]] = set()
    lines = 0
    for metric in by_weight(deltas):
        of_metric = deltas[deltas["metric"] == metric]
        cells = set(zip(of_metric["measurement"], of_metric["cell_label"], strict=True))
        if cells <= shown and lines + len(of_metric) + 1 > _MOST_LINES:
            continue
        lines += len(of_metric) + 1
        shown |= cells
        kept.append(metric)
    return deltas[deltas["metric"].isin(kept)]


def compared_looks(deltas: pd.DataFrame) -> dict[str, overlay.Look]:
    """Return the looks of the compared drives; the basis counts as a drive, the first by default."""
    all_drives = overlay.looks([*deltas["basis"], *deltas["comparison"]])
    return {drive: look for drive, look in all_drives.items() if (deltas["comparison"] == drive).any()}


def by_weight(deltas: pd.DataFrame) -> list[str]:
    """Return the metrics, the most informative first."""
    metrics = list(deltas["metric"].drop_duplicates())
    return sorted(metrics, key=lambda metric: _FIRST.index(metric) if metric in _FIRST else len(_FIRST))


@dataclass(frozen=True)
class Names:
    """Names of cells beside their rows."""

    of_cell: Mapping[str, str]
    """Wrapped name by cell label."""
    shared: str
    """Words that every label contains and the names therefore omit."""


def cell_names(labels: Iterable[str]) -> Names:
    """Return short labels unchanged, and the words in which long labels differ, wrapped."""
    whole = list(dict.fromkeys(labels))
    if max(map(len, whole)) <= _LETTERS:
        return Names({label: label for label in whole}, "")
    in_all = set.intersection(*({word.rstrip(",") for word in label.split()} for label in whole))
    short = [" ".join(word for word in label.split() if word.rstrip(",") not in in_all) for label in whole]
    shared = " ".join(word for word in whole[0].split() if word.rstrip(",") in in_all).rstrip(",")
    if len(whole) == 1 or not all(short) or len(set(short)) < len(whole):
        short, shared = whole, ""
    wrapped = ["\n".join(textwrap.wrap(name.rstrip(","), _LETTERS)) for name in short]
    return Names(dict(zip(whole, wrapped, strict=True)), shared)


_COLOURS = {
    **dict.fromkeys(BETTER, "#0072b2"),
    **dict.fromkeys(WORSE, "#d55e00"),
    SAME: "#4d4d4d",
    CANNOT_TELL: "#7a7a7a",
}
"""Okabe and Ito's blue and vermilion, which colour-blind readers tell apart, and two greys."""
_MARGINS = 1.4
"""The axis reaches at least this many margins, so that the ends of the band are visible."""
_LONGEST_NAME = 16
"""Maximum length of a drive's name beside its verdict; longer names are only in the legend."""


def comparison(deltas: pd.DataFrame) -> Figure:
    """Draw the delta of each drive against the basis, by cell and metric; positive is better.

    A dot is the delta, its whisker the confidence interval, its colour the verdict, which is also on the right. Hollow
    dots have no verdict. The band is the margin within which drives are the same. Raises ValueError for unsuitable
    tables, more than one basis and unknown verdicts.
    """
    basis = checked(deltas)
    if unknown := set(deltas["verdict"]) - set(DELTA_VERDICTS):
        raise ValueError(f"table 'deltas' has the unknown verdict(s) {', '.join(sorted(map(str, unknown)))}")
    shown = most_telling(deltas)
    left_out = deltas["metric"].nunique() - shown["metric"].nunique()
    looks, cells = compared_looks(shown), cell_names(shown["cell_label"])
    named = len(looks) > 1 and max(map(len, looks)) <= _LONGEST_NAME
    tests = shown["measurement"].nunique() > 1
    metrics = shown["metric"].map(short_name)
    heads = shown["measurement"] + ": " + metrics if tests else metrics.str[:1].str.upper() + metrics.str[1:]
    marks = shown.assign(
        row=shown["measurement"] + "\n" + shown["metric"] + "\n" + shown["cell_label"],
        text=shown["cell_label"].map(cells.of_cell),
        told=shown["measurement"] + ": " + metrics + ", " + shown["cell_label"],
        heading=heads,
        order=shown.groupby(["measurement", "metric"], sort=False).ngroup(),
        line=shown["comparison"],
        value=shown["delta_pct"].where(shown["verdict"] != NOT_COMPARED),
        low=shown["interval_low_pct"],
        high=shown["interval_high_pct"],
        number=[
            f"{format_percentage(delta, signed=True)} %" if isfinite(delta) else "" for delta in shown["delta_pct"]
        ],
        verdict=shown["verdict"] + ", " + shown["comparison"] if named else shown["verdict"],
        also=[_interval(*ends) for ends in shown[["interval_low_pct", "interval_high_pct"]].to_numpy(dtype=float)],
        name=shown["comparison"] + ", " + shown["verdict"],
        colour=[_COLOURS.get(verdict, style.INK) for verdict in shown["verdict"]],
        marker=[looks[drive].marker for drive in shown["comparison"]],
        hollow=shown["verdict"] == CANNOT_TELL,
        gid=shown["verdict"],
    )
    handles: list[Artist] = [dot(drive, style.INK, marker=look.marker) for drive, look in looks.items()]
    handles = handles if len(looks) > 1 else []
    handles += [dot(verdict, colour, hollow=verdict == CANNOT_TELL)
                for verdict, colour in _COLOURS.items() if (shown["verdict"] == verdict).any()]  # fmt: skip
    margin_pct = float(str(selection.require_one(deltas, "margin_pct", "deltas")))
    handles.append(Patch(facecolor=MARGIN, label=f"margin ±{margin_pct:g} %"))
    across = Across(f"Delta against {basis} (%)", praise=", better →", least=_MARGINS * margin_pct, margin=margin_pct)
    return Rows(f"Delta against {basis}", {"": across}).draw(
        marks.sort_values("order", kind="stable"), handles,
        notes=[f"{left_out} more metric{'s are' if left_out > 1 else ' is'} in the tables" if left_out else "",
               f"each cell: {cells.shared}" if cells.shared else ""],
    )  # fmt: skip


def _interval(low: float, high: float) -> str:
    return with_minus(f"Interval: {low:+,.4g} to {high:+,.4g} %") if low == low and high == high else "No interval"
