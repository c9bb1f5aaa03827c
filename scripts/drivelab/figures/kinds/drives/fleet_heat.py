"""Map of the deviations from the median of each drive and measurement of a fleet."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from drivelab.figures.base import style
from drivelab.figures.base.words import tell
from drivelab.figures.kinds.drives.fleet_order import MOST_NAMED

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
