"""Values by drive capacity, as in Solidigm's tables by capacity."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import AXES, Quantity, quantity, short_name
from drivelab.figures.kinds.drives.delta_rows import by_weight
from drivelab.figures.registry import FigureKind
from drivelab.plan.plan import drive_in_sheet
from drivelab.tables.labels import known_by_throughput

FIGURES = (
    FigureKind(
        name="capacity",
        title="By capacity",
        caption=(
            "Value of each cell by drive capacity, as in the tables of Solidigm's guides. Whiskers are "
            "confidence intervals. Larger drives work on more flash in parallel, so compare drives of the "
            "same capacity, or say why not."
        ),
        tables=("summary", "drives"),
        when=("drives_capacity",),
        place=380,
    ),
)

_MOST_LINES = 8


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
    cells = list(shown[shown["metric"].isin(metrics)]["cell_label"].drop_duplicates())
    lines = cells[:_MOST_LINES]
    what = " and ".join(short_name(metric) for metric in metrics)
    figure = style.new_figure(f"{what[0].upper()}{what[1:]} by capacity")
    notes = []
    if len(lines) < len(cells):
        notes.append(f"{len(lines)} of {len(cells)} cells, all are in the tables")
    if shown["capacity_bytes"].nunique() == 1:
        notes.append("all drives have the same capacity")
    if notes:
        style.note(figure, "; ".join(notes))
    panels = figure.subplots(1, len(metrics), squeeze=False)[0]
    looks = overlay.told_apart(lines, style.ordered_colours(len(lines)))  # not the colours of drives
    for axes, metric in zip(panels, metrics, strict=True):
        _panel(axes, shown[(shown["metric"] == metric) & shown["cell_label"].isin(lines)], metric, looks)
    handles = [Line2D([], [], color=look.colour, marker=look.marker, ls=look.dash, label=cell)
               for cell, look in looks.items()]  # fmt: skip
    ax.legend(figure, panels[0], handles=handles)
    return figure


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


def _panel(axes: Axes, part: pd.DataFrame, metric: str, looks: Mapping[str, overlay.Look]) -> None:
    scale = _quantity(metric, part)
    for cell, look in looks.items():
        values = part[part["cell_label"] == cell].sort_values("capacity_bytes", kind="stable")
        if values.empty:
            continue
        low, high = ((values[end] if end in values else values["value"]).fillna(values["value"])
                     for end in ("interval_low", "interval_high"))  # fmt: skip
        y = values["value"] / scale.divisor
        axes.errorbar(values["capacity_bytes"], y, yerr=[(y - low / scale.divisor).clip(lower=0),
                                                         (high / scale.divisor - y).clip(lower=0)],
                      color=look.colour, marker=look.marker, linestyle=look.dash, capsize=3, label=cell)  # fmt: skip
    places = sorted(int(size_bytes) for size_bytes in part["capacity_bytes"].unique())
    ax.binary_axis(axes, places, size, room=1.5, apart=1.4)  # closer tick labels would overlap
    axes.set_xlabel("Capacity of the drive\n(MiB, GB or TB), log scale")
    shown = [float(value) / scale.divisor for value in part["value"]]
    ax.scale_y(axes, shown, scale, log=ax.is_wide(shown))


def size(capacity_bytes: float) -> str:
    """Return a capacity in powers of ten, as drives are sold (960197124096: `960 GB`); small ones in MiB."""
    if capacity_bytes < 1e9:
        return f"{capacity_bytes / 2**20:.3g} MiB"
    return f"{capacity_bytes / 1e12:.3g} TB" if capacity_bytes >= 9.995e11 else f"{capacity_bytes / 1e9:.3g} GB"
