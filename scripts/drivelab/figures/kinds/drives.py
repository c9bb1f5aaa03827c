"""The measured values of drives side by side, best first, for the first screen of a report."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from drivelab.core.units import format_factor
from drivelab.figures.base import overlay, style
from drivelab.figures.base.quantities import AXES, Quantity, quantity, short_name
from drivelab.figures.families.rows import Across, Rows

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
        scale = _quantity(str(metric), part, float(part["value"].min()))
        praise = ", lower is better" if part["lower_is_better"].any() else ""
        across[str(metric)] = Across(scale.label[:1].upper() + scale.label[1:], praise=praise)
        ends = part[["value", "interval_low", "interval_high"]].astype(float) / scale.divisor
        parts.append(
            part.assign(panel=metric, value=ends["value"], low=ends["interval_low"], high=ends["interval_high"])
        )
    marks = pd.concat(parts)
    marks = marks.assign(
        row=marks["workload"],
        text=["\n".join(textwrap.wrap(name, _LETTERS, break_long_words=False)) for name in marks["workload"]],
        told=marks["workload"],
        line=marks["drive"],
        number=list(map(format_factor, marks["value"])),
        also=[f"95 % interval: {format_factor(low)} to {format_factor(high)}" if low == low and high == high
              else "No interval" for low, high in zip(marks["low"], marks["high"], strict=True)],
        name=marks["drive"],
        bar=True,
    )  # fmt: skip
    handles = [Patch(color=looks[drive].colour, label=drive) for drive in drives] if len(drives) > 1 else []
    with style.on_page(_WIDTH_IN):
        figure = Rows("Measured values", across, stacked=True).draw(marks, handles)
        style.label_by(figure, values, "best drive first" if len(drives) > 1 else drives[0])
    return figure


def best_first(values: pd.DataFrame) -> list[str]:
    """Return the drives by the geometric mean of their shares of the best value of each workload, best first."""
    speed = values["value"].where(~values["lower_is_better"].astype(bool), 1 / values["value"])
    best = speed.groupby([values["workload"], values["metric"]]).transform("max")
    shares = np.log(speed / best).groupby(values["drive"], sort=False).mean()
    return list(map(str, shares.sort_values(ascending=False, kind="stable").index))


def _quantity(metric: str, part: pd.DataFrame, value: float) -> Quantity:
    """Return the quantity of a metric; one that `quantity` does not know, or without unit, has the table's unit."""
    name, unit = short_name(metric), str(part["unit"].iloc[0])
    return quantity(metric, value) if metric in AXES and unit else Quantity(name[0].upper() + name[1:], unit)
