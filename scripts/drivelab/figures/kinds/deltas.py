"""Performance deltas between drives: a forest plot with verdicts, and bars relative to the basis."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from drivelab.analysis.deltas.inference import one_of_each
from drivelab.analysis.deltas.main_values import Value, main_values
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, DECIDED, DELTA_VERDICTS, NOT_COMPARED, SAME, WORSE
from drivelab.core.units import format_percentage
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import TIMES, short_name, with_minus
from drivelab.figures.families.rows import Across, Places, Rows, dot
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
    FigureKind(
        "normalised", "Relative to the basis",
        "Performance of each drive as a multiple of the basis, cell by cell. More is better for every metric, as "
        "times are inverted. Whiskers are confidence intervals.",
        tables=("deltas",), when=("comparison",), place=370, status="summary",
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
_LOG_FROM_PCT = 400.0
_MARGINS = 1.4
"""The axis reaches at least this many margins, so that the ends of the band are visible."""
_LONGEST_NAME = 16
"""Maximum length of a drive's name beside its verdict; longer names are only in the legend."""
MARGIN = "#e9e4d4"
"""The band of the margin. A page with a dark ground shows it dark: see `shown` in report/templates/charts.js."""


@style.styled
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
    return Rows(f"Delta against {basis}", {"": _Delta(f"Delta against {basis} (%)", margin_pct=margin_pct)}).draw(
        marks.sort_values("order", kind="stable"), handles,
        notes=[f"{left_out} more metric{'s are' if left_out > 1 else ' is'} in the tables" if left_out else "",
               f"each cell: {cells.shared}" if cells.shared else ""],
    )  # fmt: skip


@dataclass(frozen=True)
class _Delta(Across):
    """An axis with the margin around 0, which shows all dots and whiskers."""

    margin_pct: float = 0.0

    def set(self, axes: Axes, marks: pd.DataFrame) -> None:
        ends = marks[["value", "low", "high"]].to_numpy(dtype=float)
        finite = ends[np.isfinite(ends)]
        least = _MARGINS * self.margin_pct
        low, high = float(finite.min(initial=-least)), float(finite.max(initial=least))
        log = max(high, -low) >= _LOG_FROM_PCT
        if log:
            axes.set_xscale("symlog", linthresh=10)
            axes.set_xlim(low * 2 if low < -least else low, high * 2 if high > least else high)
        else:
            room = 0.05 * (high - low) or 1.0
            axes.set_xlim(low - room, high + room)
        axes.axvline(0, color=style.INK, linewidth=1)
        axes.axvspan(-self.margin_pct, self.margin_pct, color=MARGIN, zorder=0, linewidth=0, gid="margin")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: with_minus(f"{value:+,.4g}" if value else "0")))
        axes.set_xlabel(f"{self.label}{', log scale beyond ±10' if log else ''}, better →")


def _interval(low: float, high: float) -> str:
    return with_minus(f"Interval: {low:+,.4g} to {high:+,.4g} %") if low == low and high == high else "No interval"


_OF_A_VALUE = ("comparison", "cell_label", "metric")
_LOG_FROM = 6.0
"""From this multiple of the basis on, the axis is logarithmic, as a linear axis would hide the other bars."""
_CUT = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
"""Marks the number of a bar that is cut off."""
_TIMES = "\N{MULTIPLICATION SIGN}"
_PALE = 0.35
"""Strength of the colour of a bar without a verdict."""
_HATCHES = ("", "////", "\\\\\\\\", "xxxx", "----", "||||")
"""Hatches that tell drives apart without colour; of lines, as dots take a hundred times the bytes."""


@style.styled
def normalised(deltas: pd.DataFrame) -> Figure:
    """Draw each drive's multiple of the basis in each cell; more is better, also for times.

    The one or two most informative metrics are side by side, but not two that say the same; whiskers are confidence
    intervals. If values are far from the basis, bars begin at the basis on a logarithmic axis. Bars without a verdict
    are pale, do not set the scale and may be cut off. Raises ValueError for unsuitable tables.
    """
    basis = checked(deltas)
    deltas = deltas[deltas["delta_pct"].notna()]
    if deltas.empty:
        raise ValueError("table 'deltas' has no delta to show")
    deltas = deltas.iloc[one_of_each(zip(*(deltas[name] for name in _OF_A_VALUE), strict=True))]
    looks = compared_looks(deltas)
    metrics = by_weight(deltas)[:2]
    shown = deltas[deltas["metric"].isin(metrics)]
    names = cell_names(shown["cell_label"])
    value, low, high = (1 + shown[column].to_numpy(dtype=float) / 100
                        for column in ("delta_pct", "interval_low_pct", "interval_high_pct"))  # fmt: skip
    decided = shown["verdict"].isin(DECIDED)
    colours = [looks[drive].colour for drive in shown["comparison"]]
    hatches = {drive: _HATCHES[place % len(_HATCHES)] for place, drive in enumerate(looks)}
    marks = shown.assign(
        row=shown["cell_label"],
        text=shown["cell_label"].map(names.of_cell),
        told=shown["cell_label"],
        panel=shown["metric"],
        line=shown["comparison"],
        value=value,
        low=low,
        high=high,
        also=[f"Interval: {one:.4g}{_TIMES} to {other:.4g}{_TIMES}" if one == one and other == other else "No interval"
              for one, other in zip(low, high, strict=True)],
        name=shown["comparison"].where(decided, shown["comparison"] + f", {CANNOT_TELL}"),
        colour=[colour if sure else _tint(colour) for colour, sure in zip(colours, decided, strict=True)],
        edge=["" if sure else colour for colour, sure in zip(colours, decided, strict=True)],
        hatch=shown["comparison"].map(hatches),
        bar=True,
        verdict="",
        gid="bar",
        decided=decided,
    )  # fmt: skip
    spans = {metric: _span(marks[marks["panel"] == metric]) for metric in metrics}
    marks["number"] = [f"{_CUT if ratio > spans[metric][2] else ''}{ratio:.3g}{_TIMES}"
                       for ratio, metric in zip(value, marks["panel"], strict=True)]  # fmt: skip
    across = {metric: Across(_label(metric, basis, log), log, TIMES, (low, end))
              for metric, (log, low, end) in spans.items()}  # fmt: skip
    handles = [Patch(facecolor=look.colour, hatch=hatches[drive], edgecolor="white", label=drive)
               for drive, look in looks.items()]  # fmt: skip
    if not decided.all():
        handles.append(Patch(facecolor=_tint(to_rgb(style.MUTED)), edgecolor=style.MUTED, label=f"pale: {CANNOT_TELL}"))
    return Rows(f"Relative to {basis} ({basis} = 1.0{_TIMES})", across, draws=_basis).draw(
        marks, handles, notes=[f"each cell: {names.shared}" if names.shared else ""]
    )


def _basis(axes: Axes, places: Places) -> Sequence[Artist]:
    axes.axvline(1.0, color=style.INK, linewidth=1.2, gid="basis")
    return ()


def _label(metric: str, basis: str, log: bool) -> str:
    name = short_name(metric)
    return f"{name[0].upper()}{name[1:]}, better →\n(times {basis}{', log scale' if log else ''})"


def _tint(colour: style.Colour) -> style.Colour:
    """Return a paler shade of a colour that still differs from white paper."""
    red, green, blue = (1 - _PALE * (1 - part) for part in colour)
    return red, green, blue


def _span(part: pd.DataFrame) -> tuple[bool, float, float]:
    """Return whether the axis is logarithmic and its ends, for the bars with a verdict, or all if none has one."""
    part = part[part["decided"]] if part["decided"].any() else part
    ratios = part["value"].to_numpy(dtype=float)
    ends = part[["value", "low", "high"]].to_numpy(dtype=float)
    ends = ends[np.isfinite(ends) & (ends > 0)]
    highest = min(float(ends.max()), 3 * float(ratios.max()))
    if ratios.max() >= _LOG_FROM or ratios.min() <= 1 / _LOG_FROM:
        low = min(0.8, max(float(ends.min()), float(ratios.min()) / 3) / 2)
        return True, low, max(1.25, highest) * 1.2
    return False, 0.0, max(1.0, highest) * 1.05
