"""Figures of a fleet: one value of all drives, best on top, and a map of the deviations from the medians."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import style
from drivelab.figures.base.quantities import AXES, quantity, short_name
from drivelab.figures.base.words import tell

MOST_NAMED = 50
"""Maximum number of drives whose names fit beside their rows."""
_NAMED = 6
"""Number of outliers that are named if the rows have no names, the farthest first."""
_NEAR = 0.045
"""Share of the rows; names of outliers closer than this would overlap, so they share one line."""
_WIDTH_IN, _ROW_IN, _HIGHEST_IN = 4.8, 0.19, 5.4
"""As wide as `side_by_side`, beside a table; the rows without names share the greatest height."""
_OUTLIER = "#c23b22"
_FAULTY = "#8a8a8a"
_BLUE = "#0a5c9e"
_INTERVAL = "#5f93c4"
_BAND = "#dce8f3"


@style.styled
def fleet_order(deviations: pd.DataFrame, workload: str = "") -> Figure:
    """Draw the rows of one value of table `fleet_deviations`, with `interval_low` and `interval_high`, best on top.

    The band reaches from the 5 % to the 95 % quantile of the values that count. Faulty values are hollow. Outliers are
    red diamonds. The title is `workload`, or the cell's label. Raises ValueError for rows of no value or of several.
    """
    if deviations[["measurement", "cell_label", "metric"]].drop_duplicates().shape[0] != 1:
        raise ValueError("a figure of one value of a fleet needs the rows of one value")
    lower_is_better = deviations["kind"].iloc[0] == "time"
    rows = deviations.sort_values("value", ascending=lower_is_better, kind="stable").reset_index(drop=True)
    metric, first = str(rows["metric"].iloc[0]), rows.iloc[0]
    scale = quantity(metric, float(rows["value"].max())) if metric in AXES else None
    values, low, high = (rows[name].to_numpy(dtype=float) / (scale.divisor if scale else 1.0)
                         for name in ("value", "interval_low", "interval_high"))  # fmt: skip
    counts, outlier = rows["place"].notna().to_numpy(), rows["outlier"].to_numpy(dtype=bool)
    row = np.arange(len(rows), dtype=float)
    few = len(rows) <= MOST_NAMED
    height_in = 1.4 + max(1.2, _ROW_IN * len(rows)) if few else _HIGHEST_IN
    figure = style.new_figure(workload or str(first["cell_label"]), height_in=height_in)
    figure.set_size_inches(_WIDTH_IN, height_in)
    axes = figure.subplots()
    if counts.any():
        ends = np.percentile(values[counts], (5, 50, 95))
        axes.axvspan(ends[0], ends[2], color=_BAND, zorder=0, label="5 % to 95 % of the drives")
        axes.axvline(ends[1], color=style.INK, linewidth=1.0, zorder=1, label="median")
    if np.isfinite(low).any():
        ax.whiskers(axes, low, high, row, color=_INTERVAL, linewidth=1.6, label="95 % interval")
    size = max(3.0, min(6.0, 300 / len(rows)))
    marks = (
        (counts & ~outlier, "o", _BLUE, _BLUE, "drive"),
        (~counts, "o", "none", _FAULTY, "unreliable"),
        (outlier, "D", _OUTLIER, _OUTLIER, "outlier"),
    )
    for chosen, marker, face, edge, name in marks:
        if chosen.any():
            axes.plot(values[chosen], row[chosen], linestyle="none", marker=marker, markersize=size,
                      markerfacecolor=face, markeredgecolor=edge, label=name)  # fmt: skip
    names = list(map(str, rows["drive"]))
    tell(axes.yaxis, lambda place: names[min(round(place), len(names) - 1)])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    if few:
        axes.set_yticks(row, names)
    else:
        farthest = rows.loc[outlier, "modified_z"].abs().sort_values(ascending=False, kind="stable").index[:_NAMED]
        _name_outliers(axes, values, np.flatnonzero(outlier).tolist(), {place: names[place] for place in farthest})
        axes.set_yticks([])
        axes.set_ylabel(f"{len(rows)} drives, the best on top")
    axes.grid(visible=False, axis="y")
    label = scale.label if scale else f"{short_name(metric)} ({first['unit']})"
    axes.set_xlabel(f"{label[:1].upper()}{label[1:]}{', lower is better' if lower_is_better else ''}")
    ax.plain_numbers(axes, "x")
    ax.legend(figure, axes)
    style.label_by(figure, rows, f"{len(rows)} drives, best first")
    return figure


def _name_outliers(axes: Axes, values: Sequence[float], outliers: Sequence[int], named: dict[int, str]) -> None:
    """Write names beside the outliers, on the side of their dots with more room."""
    middle = float(np.mean(axes.get_xlim()))
    for group in _groups(outliers, _NEAR * len(values)):
        texts = [named[place] for place in group if place in named]
        if not texts:
            continue
        of_group = [values[place] for place in group]
        to_the_right = sum(of_group) / len(group) < middle
        edge = max(of_group) if to_the_right else min(of_group)
        axes.annotate(
            ", ".join(texts + ["\N{HORIZONTAL ELLIPSIS}"] * (len(texts) < len(group))),
            (edge, sum(group) / len(group)), fontsize=style.SMALL_PT, textcoords="offset points",
            xytext=(7 if to_the_right else -7, 0), ha="left" if to_the_right else "right", va="center",
        )  # fmt: skip


def _groups(places: Sequence[int], near: float) -> list[list[int]]:
    """Group rows that are closer than `near` rows."""
    groups: list[list[int]] = []
    for place in places:
        if groups and place - groups[-1][-1] < near:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


_LEAST_RANGE_PCT = 2.0
"""Smallest range of the colours, so that differences as small as the scatter of repeats stay pale."""


def _name_at(names: list[str], place: float) -> str:
    return names[min(int(place), len(names) - 1)]


@style.styled
def fleet_heat(deviations: pd.DataFrame) -> Figure:
    """Draw the deviation of the key value, a row per drive (best on top), a column per measurement.

    Colours end at the 99 % quantile, so that one outlier does not make all others white. Faulty and missing values are
    grey. `deviations` are the rows of table `fleet_deviations` for key values, one per drive and measurement. Raises
    ValueError without any.
    """
    if deviations.empty:
        raise ValueError("a map of a fleet needs key values")
    counted = deviations.assign(shown=deviations["deviation_pct"].where(deviations["place"].notna()))
    wide = counted.pivot(index="drive", columns="measurement", values="shown")
    wide = wide[list(dict.fromkeys(deviations["measurement"]))]
    wide = wide.loc[wide.median(axis=1).sort_values(ascending=False, kind="stable", na_position="last").index]
    known = np.abs(wide.to_numpy(dtype=float))
    end = max(_LEAST_RANGE_PCT, float(np.nanpercentile(known, 99)) if np.isfinite(known).any() else 0.0)
    few = len(wide) <= MOST_NAMED
    height_in = max(3.6, 1.9 + 0.17 * len(wide)) if few else 6.4
    figure = style.new_figure(f"{len(wide)} drives by measurement", height_in=height_in)
    axes, beside = figure.subplots(1, 2, width_ratios=style.WITH_COLOUR_BAR)
    axes.set_facecolor("#9a9a9a")
    sns.heatmap(
        wide, ax=axes, cbar_ax=beside, cmap="RdBu", vmin=-end, center=0.0, vmax=end, rasterized=not few,
        yticklabels=few, cbar_kws={"extend": "both", "label": "From the median (%):\nbetter +, worse \N{MINUS SIGN}"},
    )  # fmt: skip
    axes.set(xlabel="", ylabel="" if few else "Drives, the best on top")
    axes.tick_params(labelsize=style.SMALL_PT)
    axes.tick_params(axis="y", labelrotation=0)
    axes.set_xticks(axes.get_xticks(), list(wide.columns), rotation=30, ha="right")
    axes.grid(visible=False)
    for axis, names in ((axes.xaxis, wide.columns), (axes.yaxis, wide.index)):
        tell(axis, partial(_name_at, list(names)))
    style.label_by(figure, deviations, "all drives, key value of each measurement")
    return figure
