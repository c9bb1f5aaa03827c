"""Steady-state convergence, and the measurement window."""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import isclose, isfinite

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from drivelab.core.units import format_percentage, format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import (
    NUMBER,
    SIGNED,
    Quantity,
    format_exact,
    format_mix,
    quantity,
    short_name,
    with_minus,
)
from drivelab.figures.families.lines import ROUND, Lines, Panel, in_order
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import named

FIGURES = (
    FigureKind(
        "convergence_mixes", "Steady-state convergence, writes above reads",
        "Value of each round, a line for each block size and a panel for each R/W mix, writes on top. The shaded "
        "rounds are the measurement window, which the tracked variables determine.",
        when=("by_mix",), place=60, rows="loops", one_loop=True,
    ),
    FigureKind(
        "convergence", "Steady-state convergence",
        "Value of each round of each cell; of many cells, of those with the read share of a tracked one, in a sweep at "
        "the greatest number of threads. The marked rounds are the measurement window, the last five. The test is "
        "steady if the tracked variables, with a star, keep their limits there.",
        when=("one_mix",), place=10, rows="loops", one_loop=True,
    ),
    FigureKind(
        "round_history", "Round by round",
        "Value of each round of a test with a fixed number of rounds. It shows how good the steady state is that a "
        "short window would have found.",
        when=("history",), place=10, rows="loops", draw="convergence", options={"metric": "iops", "history": True},
    ),
    FigureKind(
        "convergence_max", "Steady-state convergence, maximum latency",
        "Maximum latency of each round, for the cells of the convergence. A maximum is a single I/O, so it settles "
        "less than the mean, which determines the marked window.",
        when=("maximum",), place=70, rows="loops", one_loop=True, draw="convergence",
        options={"metric": "max_latency_us"},
    ),
    FigureKind(
        "pre_writes", "Writes before each round",
        "Writes before the sweep of each round, which keep the drive in steady state. If they drift between the "
        "marked rounds, all later values of the round drift too.",
        when=("pre_writes",), place=140, rows="loops", one_loop=True, draw="convergence",
        options={"beside_sweep": True},
    ),
    FigureKind(
        "window", "Steady-state measurement window",
        "Values of a tracked variable in the measurement window, their average, the least-squares fit and two bands: "
        "the allowed range of the values (20 % of the average) and of the fit (10 %). Only the widths count, so a "
        "point may be outside a band although the rule is met. Both limits must hold for every tracked variable.",
        tables=("steady_state",), when=("steady",), place=20, rows="loops", of_window=True,
    ),
)  # fmt: skip


WINDOW = "#2a7f3f"
_MOST_LINES = 12


def shown_cells(loop: pd.DataFrame, tracked: Set[str], *, beside_sweep: bool = False) -> list[str]:
    """Return the labels of the shown cells of a loop, in the order of the legend.

    If there are too many, those with the read share and the workload of a tracked cell, at the most threads, and all
    other tracked ones; with `beside_sweep`, only the cells whose workload has one demand.
    """
    cells = loop.sort_values("cell").drop_duplicates("cell_label", ignore_index=True)
    if beside_sweep:
        alone = ~cells["workload"].duplicated(keep=False)
        if not alone.any() or alone.all():
            raise ValueError("table 'cells' has no sweep with cells of one demand beside it")
        return list(cells[alone]["cell_label"])
    is_tracked = cells["cell_label"].isin(tracked)
    if len(cells) > _MOST_LINES:
        first = cells[is_tracked].head(1) if is_tracked.any() else cells.sort_values("read_share_pct").head(1)
        alike = cells["read_share_pct"] == first["read_share_pct"].iloc[0]
        if alike.sum() > _MOST_LINES:
            alike &= cells["threads"] == cells[alike]["threads"].max()
        cells = cells[alike | is_tracked]
    cells = cells.assign(later=~is_tracked).sort_values("later", kind="stable").head(_MOST_LINES)
    order = ["read_share_pct", "pattern", "block_size_bytes", "threads", "queue_depth", "cell"]
    return list(cells.sort_values(order)["cell_label"])


def convergence_mixes(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the tracked metric against the round, a panel for each share of reads and a line for each block size."""
    metric = str(selection.require_one(steady_state, "metric", "steady_state"))
    selection.require(cells, "cells")
    loop = selection.one_measurement(named(cells)).sort_values(["read_share_pct", "block_size_bytes", "round"])
    table = loop.assign(
        panel=[f"{format_mix(share)} read/write" for share in loop["read_share_pct"]],
        line=[format_size(size) for size in loop["block_size_bytes"]],
        tracked=loop["cell_label"].isin(set(steady_state["variable"])),
    )

    def window(panel: Panel) -> Sequence[Artist]:
        _span(panel, steady_state)
        return ()

    return Lines(
        "Convergence of writes, mixes and reads", (metric,), ROUND, looks=in_order, columns=1,
        same_x=True, most=4, legend="Block size (thick: tracked)", marks=window,
    ).draw(table, steady_state)  # fmt: skip


def convergence(
    cells: pd.DataFrame,
    steady_state: pd.DataFrame,
    *,
    metric: str | None = None,
    history: bool = False,
    beside_sweep: bool = False,
) -> Figure:
    """Draw the convergence of the cells of `shown_cells`, with the steady-state window.

    `cells` and `steady_state` hold one drive and run. `metric` is a column of `cells`, by default the tracked one.
    Filled markers are in the window, hollow ones outside; a `history` has no window, and `steady_state` may be empty.
    """
    if history:
        steady_state = steady_state.iloc[:0]
    else:
        selection.require(steady_state, "steady_state")
    if metric is None:
        metric = str(selection.require_one(steady_state, "metric", "steady_state"))
    selection.require(cells, "cells")
    loop = selection.one_measurement(named(cells))
    tracked = set(steady_state[steady_state["metric"] == metric]["variable"])
    labels = shown_cells(loop, tracked, beside_sweep=beside_sweep)
    rows = loop[loop["cell_label"].isin(labels)]
    windows, message = selection.windows(steady_state), selection.not_steady(steady_state)
    is_tracked = rows["cell_label"].isin(tracked)
    ends = [windows.get(step, (0, -1)) for step in zip(rows["recording"], rows["step"], strict=True)]
    table = rows.assign(
        line=rows["cell_label"] + is_tracked.map({True: " *", False: ""}),
        order=rows["cell_label"].map(labels.index),
        tracked=is_tracked,
        part=rows["recording"] + rows["step"].astype(str),
        inside=[history or start <= number <= end for number, (start, end) in zip(rows["round"], ends, strict=True)],
    ).sort_values(["order", "recording", "step", "round"])

    def marks(panel: Panel) -> Sequence[Artist]:
        outside = _hollow(panel, "not the last" if message else "outside window")
        return [*_flags(panel), *_span(panel, steady_state, message), *outside]

    title, several = "Writes before each round" if beside_sweep else "Convergence", loop["cell_label"].nunique()
    if not history and metric not in set(steady_state["metric"]):
        title += f", {short_name(metric)}"
    notes = [f"{len(labels)} of {several} cells"] if len(labels) < several and not beside_sweep else []
    notes += ["*: tracked"] if is_tracked.any() else []
    lines = Lines(title, (metric,), ROUND, looks=in_order, marks=marks, legend="Cell", note="; ".join(notes))
    return lines.draw(table, steady_state)


def _span(panel: Panel, steady_state: pd.DataFrame, message: str | None = None) -> list[Artist]:
    """Shade the window that all steps have in common; return its legend entry, if there is one."""
    windows = set(selection.windows(steady_state).values())
    return [
        panel.axes.axvspan(start - 0.5, end + 0.5, color=style.ALARM if message else WINDOW, alpha=0.12, linewidth=0,
                           label="last rounds" if message else "window", zorder=0, gid="span")
        for start, end in windows if len(windows) == 1
    ]  # fmt: skip


def _hollow(panel: Panel, name: str) -> list[Artist]:
    """Draw hollow markers outside the window; return their legend entry, if there are any."""
    outside = panel.points[~panel.points["inside"]]
    for line, part in outside.groupby("line", sort=False):
        look = panel.looks[str(line)]
        panel.axes.plot(part["round"], panel.shown(part), color=look.colour, marker=look.marker, linestyle="none",
                        markerfacecolor="white", label=line, gid="outside")  # fmt: skip
    hollow = Line2D([], [], color=style.MUTED, marker="o", markerfacecolor="white", linestyle="none", label=name)
    return [] if outside.empty else [hollow]


def _flags(panel: Panel) -> list[Artist]:
    """Mark tainted and host-limited cells and rounds after a gap, which make a curve less trustworthy."""
    points, entries = panel.points, list[Artist]()
    tainted = points["tainted"].eq(True) if "tainted" in points else []
    limited = points["host_limit"].notna() if "host_limit" in points else []
    for rows, label, marker in ((tainted, "tainted", "o"), (limited, "host-limited", "s")):
        flagged = points[rows]
        if not flagged.empty:
            entries += panel.axes.plot(
                flagged["round"], panel.shown(flagged), linestyle="none", marker=marker, markersize=10,
                markerfacecolor="none", markeredgecolor=style.ALARM, label=label, gid=label,
            )  # fmt: skip
    for number in sorted(points["round"][points["after_gap"].fillna(False).astype(bool)].unique()):
        entries.append(panel.axes.axvline(number - 0.5, color=style.MUTED, linestyle=":", label="after a gap",
                                          gid="gap"))  # fmt: skip
    return entries


_MOST_PANELS = 9
_BANDS = (("data", "max \N{MINUS SIGN} min", "#dcecf9"), ("slope", "rise of the fit", "#a9dcc8"))


def window(steady_state: pd.DataFrame) -> Figure:
    """Draw each tracked variable's window, bands and fit `m * R + b` (R: round), with their numbers above.

    Each row of the table has a panel. The axes are limited to the neighbourhood of the
    average; the right axis has the deviation from it. Raises ValueError for unsuitable tables and a fit that misses its
    own values.
    """
    selection.require(steady_state, "steady_state")
    if "recording" in steady_state:
        selection.require_one(steady_state, "recording", "steady_state")
    shown, names = steady_state.iloc[:_MOST_PANELS], _names(steady_state)
    several = len(shown) > 1
    title = "Steady-state windows" if several else f"Steady-state window, {names[0]}"
    figure = style.new_figure(title, height_in=1.3 + 3.2 * len(shown))
    if len(steady_state) > len(shown):
        style.note(figure, f"the first {len(shown)} of {len(steady_state)} variables; all are in the tables")
    panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
    for axes, name, (_, row) in zip(panels, names, shown.iterrows(), strict=False):
        scale = _window(axes, row)
        numbers = _determination(row, scale)
        axes.set_title("\n".join([name, *numbers] if several else numbers), fontsize=style.SMALL_PT, loc="left",
                       gid="determination", color=style.ALARM if _broken(row) else style.INK)  # fmt: skip
    style.alarm(figure, selection.not_steady(steady_state))
    ax.legend(figure, panels[0])
    return figure


def _names(steady_state: pd.DataFrame) -> list[str]:
    """Return the name of each row: its variable, with metric and step where needed to tell rows apart.

    Raises ValueError for two rows of the same name.
    """
    names = steady_state["variable"].astype(str)
    for column, words in (("metric", "{}"), ("step", "step {}")):
        if names.duplicated().any() and column in steady_state:
            names = names + ", " + steady_state[column].map(words.format)
    if names.duplicated().any():
        raise ValueError(f"table 'steady_state' holds {len(names)} windows ({', '.join(names)}); expected one of each")
    return [str(name) for name in names]


def _window(axes: Axes, row: pd.Series) -> Quantity:
    values = np.asarray(row["values"], dtype=float)
    rounds = np.arange(int(row["window_start"]), int(row["window_end"]) + 1)
    if len(values) != len(rounds):
        raise ValueError(f"table 'steady_state' has {len(values)} values for a window of {len(rounds)} rounds")
    scale = quantity(str(row["metric"]), float(values.max()))
    average, shown = float(row["average"]) / scale.divisor, values / scale.divisor
    axes.plot(rounds, shown, color=style.INK, marker="o", linestyle="none", markersize=7, label="measured", zorder=4,
              gid="values")  # fmt: skip
    axes.axhline(average, color=style.INK, linewidth=1, label="average (middle of the bands)", gid="average")
    reach = float(np.abs(shown - average).max())
    for order, (name, rule, colour) in enumerate(_BANDS):
        half = float(row[f"allowed_{name}_excursion"]) / scale.divisor / 2
        share = f" ({200 * half / average:.3g} %)" if average else ""
        axes.axhspan(average - half, average + half, facecolor=colour, linewidth=0, zorder=0.1 + 0.1 * order,
                     label=f"allowed {rule}{share}", gid=f"{name} band")  # fmt: skip
        reach = max(reach, half)
    if isfinite(row["slope"]):
        ends = rounds[[0, -1]]
        fit = (float(row["slope"]) * ends + float(row["intercept"])) / scale.divisor
        if not isclose(fit.mean(), average, rel_tol=1e-3):
            raise ValueError("table 'steady_state': slope and intercept do not fit the average; R is the round number")
        axes.plot(ends, fit, color=style.ALARM, linestyle="--", label="fit", zorder=3, gid="fit")
    reach = reach * 1.15 or 1.0
    axes.set(ylabel=scale.label, ylim=(average - reach, average + reach))
    ax.write(axes.yaxis, NUMBER)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7))
    ax.round_axis(axes, int(rounds[0]), int(rounds[-1]))
    if average:
        right = axes.secondary_yaxis(
            "right",
            functions=(lambda y: 100 * (np.divide(y, average) - 1), lambda pct: average * (1 + np.divide(pct, 100))),
        )
        right.set_ylabel("From the average (%)")
        ax.write(right.yaxis, SIGNED)
    return scale


def _broken(row: pd.Series) -> bool:
    return any(row[f"measured_{kind}_excursion"] > row[f"allowed_{kind}_excursion"] for kind, *_ in _BANDS)


def _determination(row: pd.Series, scale: Quantity) -> list[str]:
    """Return the numbers that the PTS prints under its window, in three lines."""

    def number(column: str) -> str:
        value = float(row[column]) / scale.divisor
        return with_minus(format_exact(value)) if isfinite(value) else "none"

    drift = float(row["residual_drift_pct"])
    head = [f"average {number('average')} {scale.unit}".strip()]
    if isfinite(row["slope"]):
        slope, intercept = (float(row[name]) / scale.divisor for name in ("slope", "intercept"))
        fit = f"{format_exact(slope)} · R {'-' if intercept < 0 else '+'} {format_exact(abs(intercept))}"
        head.append(f"fit {with_minus(fit)}")
    limits = [f"{rule}: {number(f'measured_{kind}_excursion')} of {number(f'allowed_{kind}_excursion')} allowed"
              for kind, rule, _ in _BANDS]  # fmt: skip
    limits[-1] += f"; residual drift {f'{format_percentage(drift, signed=True)} %' if isfinite(drift) else 'unknown'}"
    return ["; ".join(head), *limits]
