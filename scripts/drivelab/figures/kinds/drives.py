"""Values of drives: by capacity, what makes them vary, and the measured values side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from drivelab.analysis.deltas.variation import SOURCES
from drivelab.core.units import format_factor
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import AXES, Quantity, Texts, quantity, short_name
from drivelab.figures.families.lines import Lines, Panel, X, in_order
from drivelab.figures.families.rows import Across, Rows
from drivelab.figures.kinds.deltas import by_weight
from drivelab.figures.registry import FigureKind
from drivelab.plan.plan import drive_in_sheet
from drivelab.tables.labels import known_by_throughput

FIGURES = (
    FigureKind(
        "capacity", "By capacity",
        "Value of each cell by drive capacity, as in the tables of Solidigm's guides. Whiskers are confidence "
        "intervals. Larger drives work on more flash in parallel, so compare drives of the same capacity, or say why "
        "not.",
        tables=("summary", "drives"), when=("drives_capacity",), place=380,
    ),
    FigureKind(
        "variation", "What makes the values vary",
        "Standard deviation of one value, by source: the rounds of a recording, the recordings of a drive, the "
        "specimens of a model, and hosts; each beyond what the sources before explain. Whiskers are 95 % confidence "
        "intervals, cut at the edge. More recordings reduce only what recordings cause.",
        tables=("variation",), when=("drives_variation",), place=380, status="summary",
    ),
)  # fmt: skip

_MOST_LINES = 8
_ENDS = ("interval_low", "interval_high")


@style.styled
def capacity(summary: pd.DataFrame, drives: pd.DataFrame) -> Figure:
    """Draw each cell's value against drive capacity, a line per cell, a panel for each of two metrics.

    Where some cells are known by IOPS and others by throughput, each is in the panel of its own metric. Whiskers are
    the confidence intervals of the values. With many cells, the first are shown. Raises ValueError for unsuitable
    tables.
    """
    selection.require(drives, "drives")
    selection.require_one(summary, "measurement", "summary")
    shown = summary.assign(sheet_drive=[drive_in_sheet(str(drive)) for drive in summary["drive"]])
    shown = shown.merge(_capacities(drives), on="sheet_drive", how="inner")
    if shown.empty:
        raise ValueError("table 'drives' has none of the drives in table 'summary'")
    leading = {label: _leading(str(label), part) for label, part in shown.groupby("cell_label", sort=False)}
    metrics = by_weight(pd.DataFrame({"metric": leading.values()}))[:2]
    if len(metrics) > 1:
        shown = shown[shown["metric"] == shown["cell_label"].map(leading)]
    else:
        metrics = [*metrics, *(metric for metric in by_weight(shown) if metric not in metrics)][:2]
    shown = shown[shown["metric"].isin(metrics)].reindex(columns=[*shown.columns, *set(_ENDS) - set(shown.columns)])
    cells = list(shown["cell_label"].drop_duplicates())
    notes = [f"{_MOST_LINES} of {len(cells)} cells, all are in the tables"] if len(cells) > _MOST_LINES else []
    notes += ["all drives have the same capacity"] if shown["capacity_bytes"].nunique() == 1 else []
    point = ["cell_label", "drive", "capacity_bytes"]
    wide = shown.set_index([*point, "metric"])[["value", *_ENDS]].unstack("metric", sort=False)
    wide.columns = [metric if column == "value" else f"{metric} {column}" for column, metric in wide.columns]
    points = wide.reset_index().sort_values("capacity_bytes", kind="stable")
    points = pd.concat([points[points["cell_label"] == cell] for cell in cells[:_MOST_LINES]])
    what = " and ".join(short_name(metric) for metric in metrics)
    return Lines(
        f"{what[0].upper()}{what[1:]} by capacity", tuple(metrics), _CAPACITY, looks=in_order, marks=_intervals,
        quantities={metric: _quantity(metric, shown[shown["metric"] == metric]) for metric in metrics},
        note="; ".join(notes),
    ).draw(points.assign(line=points["cell_label"]).drop(columns="drive"))  # fmt: skip


def _leading(cell_label: str, values: pd.DataFrame) -> str:
    throughput, metrics = "bandwidth_mib_s", by_weight(values)
    return throughput if known_by_throughput(cell_label) and throughput in metrics else metrics[0]


def _capacities(drives: pd.DataFrame) -> pd.DataFrame:
    """Return columns sheet_drive and capacity_bytes; a drive listed for several platforms has one row."""
    named = drives[["capacity_bytes"]].assign(sheet_drive=[drive_in_sheet(str(drive)) for drive in drives["drive"]])
    return named.drop_duplicates("sheet_drive")


def _quantity(metric: str, part: pd.DataFrame) -> Quantity:
    """Return the quantity of a metric; one that `quantity` does not know keeps the unit of the table."""
    if metric in AXES:
        return quantity(metric, float(part["value"].max()))
    name, unit = short_name(metric), str(part["unit"].iloc[0])
    return Quantity(name[0].upper() + name[1:], unit)


def _intervals(panel: Panel) -> Sequence[Artist]:
    for name, line in panel.points.groupby("line", sort=False):
        low, high = (line[f"{panel.metric} {end}"].astype(float) / panel.scale.divisor for end in _ENDS)
        ax.whiskers(panel.axes, low, high, line["capacity_bytes"], upright=True, color=panel.looks[str(name)].colour,
                    linewidth=1.2, label=name, gid="ends")  # fmt: skip
    return ()


def size(capacity_bytes: float, digits: str = ".3g") -> str:
    """Return a capacity in powers of ten, as drives are sold (960197124096: `960 GB`); small ones in MiB."""
    if capacity_bytes < 1e9:
        return f"{capacity_bytes / 2**20:{digits}} MiB"
    return (
        f"{capacity_bytes / 1e12:{digits}} TB" if capacity_bytes >= 9.995e11 else f"{capacity_bytes / 1e9:{digits}} GB"
    )


_CAPACITY = X("capacity_bytes", "Capacity of the drive (MiB, GB or TB), log scale",
              text=Texts(size, lambda capacity_bytes: size(capacity_bytes, ",.5g")))  # fmt: skip


_LOOKS = dict(zip(SOURCES, (("#7a7a7a", "o"), ("#0072b2", "s"), ("#d55e00", "D"), ("#009e73", "^")), strict=True))
"""Colour and marker of each source."""
_MOST_WIDE = 4.0
"""Whiskers reach at most this multiple of the largest standard deviation."""


@style.styled
def variation(variation: pd.DataFrame) -> Figure:
    """Draw the rows of table `variation` of a measurement, of its first metric, each with its interval.

    Raises ValueError for missing columns and unknown sources.
    """
    if variation.empty:
        figure = style.new_figure("Standard deviation of the values")
        style.note(figure, "no two undisturbed values to compare")
        return figure
    if unknown := set(variation["source"]) - set(_LOOKS):
        raise ValueError(f"table 'variation' has the unknown source(s) {', '.join(sorted(unknown))}")
    metric = str(variation["metric"].iloc[0])
    shown = variation[variation["metric"] == metric].reset_index(drop=True)
    end = 1.25 * (float(min(shown["high_pct"].max(), _MOST_WIDE * shown["sd_pct"].max())) or 1.0)
    marks = shown.assign(
        row=shown.index,
        text=shown["subject"],
        value=shown["sd_pct"],
        low=shown["low_pct"],
        high=shown["high_pct"],
        number=[f"{sd_pct:.2g} %" for sd_pct in shown["sd_pct"]],
        also=[f"Interval: {row.low_pct:.3g} to {row.high_pct:.3g} %" for row in shown.itertuples()],
        name=shown["source"].map(SOURCES),
        colour=[_LOOKS[source][0] for source in shown["source"]],
        marker=[_LOOKS[source][1] for source in shown["source"]],
        gid=shown["source"],
    )
    across = Across("Standard deviation (%)", limits=(-0.02 * end, end))
    return Rows(f"Standard deviation of {short_name(metric)}", {"": across}).draw(marks)


COLUMNS = ("workload", "metric", "unit", "lower_is_better", "drive", "value", "interval_low", "interval_high")
"""Columns of the values, beside the labels `reduced`, `virtual`, `clock`."""
_WIDTH_IN = 4.8
"""Narrower than other figures, to fit beside a table and to stay readable on a phone."""
_LETTERS = 24
"""Longest line of a workload's name."""


@style.styled
def side_by_side(values: pd.DataFrame) -> Figure:
    """Draw a bar with its interval for each drive and workload, a panel for each metric, the best drive first.

    `values` has the COLUMNS and labels; rows are in the order of the workloads. The order of the drives is the same in
    all groups: by the geometric mean of their shares of the best value. Raises ValueError for values without rows.
    """
    if values.empty:
        raise ValueError("there are no values to show side by side")
    looks, drives = overlay.looks(values["drive"]), best_first(values)
    order = values.groupby("workload", sort=False).ngroup() * len(drives) + values["drive"].map(drives.index)
    values = values.assign(order=order).sort_values("order", kind="stable")
    across, parts = {}, []
    for metric, part in values.groupby("metric", sort=False):
        scale = _scale(str(metric), part)
        label = scale.label[:1].upper() + scale.label[1:]
        across[str(metric)] = Across(label + (", lower is better" if part["lower_is_better"].any() else ""))
        low, high = (part[f"interval_{end}"].astype(float) / scale.divisor for end in ("low", "high"))
        value = part["value"].astype(float) / scale.divisor
        parts.append(part.assign(
            row=part["workload"],
            text=["\n".join(textwrap.wrap(name, _LETTERS, break_long_words=False)) for name in part["workload"]],
            told=part["workload"],
            panel=metric,
            line=part["drive"],
            value=value,
            low=low,
            high=high,
            number=[format_factor(one) for one in value],
            also=[f"95 % interval: {format_factor(a)} to {format_factor(b)}" if a == a and b == b else "No interval"
                  for a, b in zip(low, high, strict=True)],
            name=part["drive"],
            colour=[looks[drive].colour for drive in part["drive"]],
            bar=True,
        ))  # fmt: skip
    token = style.page.set(style.Page(_WIDTH_IN))
    try:
        handles = [Patch(color=looks[drive].colour, label=drive) for drive in drives] if len(drives) > 1 else []
        figure = Rows("Measured values", across, stacked=True).draw(pd.concat(parts), handles)
        style.label_by(figure, values, "best drive first" if len(drives) > 1 else drives[0])
    finally:
        style.page.reset(token)
    return figure


def _scale(metric: str, part: pd.DataFrame) -> Quantity:
    unit = str(part["unit"].iloc[0])
    known = metric in AXES and bool(unit)  # a score relative to the basis has no unit
    return quantity(metric, float(part["value"].min())) if known else Quantity(short_name(metric), unit)


def best_first(values: pd.DataFrame) -> list[str]:
    """Return the drives by the geometric mean of their shares of the best value of each workload, best first."""
    speed = values["value"].where(~values["lower_is_better"].astype(bool), 1 / values["value"])
    best = speed.groupby([values["workload"], values["metric"]]).transform("max")
    shares = np.log(speed / best).groupby(values["drive"], sort=False).mean()
    return list(map(str, shares.sort_values(ascending=False, kind="stable").index))
