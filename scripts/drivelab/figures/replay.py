"""Replay of a trace: every run of every drive, the counted warm ones with their median."""

from __future__ import annotations

import textwrap

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures import axes as ax
from drivelab.figures import selection, style
from drivelab.figures.quantities import format_number, quantity

_METRICS = ("mean_latency_us", "bandwidth_mib_s")
_COLUMNS = ("drive", "trace", "repeat", "warm", "counted", "engine", "timing", "duration_ratio", "dropped", *_METRICS)


@style.styled
def replay(replays: pd.DataFrame) -> Figure:
    """Mean latency and bandwidth of the runs of one trace, by drive, with the median of the counted warm runs.

    How long the replay took as a multiple of the trace is said beside the drive. Runs that do not count are hollow.
    Raises ValueError for unsuitable tables or a drive without a counted run.
    """
    selection.require(replays, _COLUMNS, "replays")
    trace = selection.require_one(replays, "trace", "replays")
    drives = list(replays["drive"].drop_duplicates())
    counted = replays["counted"].astype(bool)
    without = [drive for drive in drives if not (counted & (replays["drive"] == drive)).any()]
    if without:
        raise ValueError(f"table 'replays' has no counted run of {', '.join(without)}; each drive needs one")

    names = ["\n".join(textwrap.wrap(drive, 26)) for drive in drives]
    row_in = max(0.65, 0.16 * (max(name.count("\n") for name in names) + 3))
    figure = style.new_figure(f"Replay of {trace}", height_in=1.9 + row_in * len(drives))
    style.note(figure, _note(replays))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, metric, better in zip(panels, _METRICS, ("← better", "better →"), strict=True):
        _panel(axes, replays, drives, metric, better)
    ratios = [replays[counted & (replays["drive"] == drive)]["duration_ratio"].median() for drive in drives]
    times = "\N{MULTIPLICATION SIGN} trace time"
    said = [f"{name}\n{ratio:.2f} {times}" for name, ratio in zip(names, ratios, strict=True)]
    panels[0].set_yticks(range(len(drives)), said)
    panels[0].set_ylim(len(drives) - 0.5, -0.58)
    ax.legend(figure, panels[0])
    return figure


def _panel(axes: Axes, replays: pd.DataFrame, drives: list[str], metric: str, better: str) -> None:
    scale = quantity(metric, replays[metric].max())
    counted = replays["counted"].astype(bool)
    for row, (drive, colour) in enumerate(zip(drives, style.colours(len(drives)), strict=True)):
        for shown, fill in ((counted, colour), (~counted, "white")):
            runs = replays[shown & (replays["drive"] == drive)].sort_values("repeat")
            values = runs[metric] / scale.divisor
            spread = [row + 0.36 * ((place + 1) / (len(runs) + 1) - 0.5) for place in range(len(runs))]
            axes.plot(
                values,
                spread,
                linestyle="none",
                marker="o",
                markersize=6,
                markerfacecolor=fill,
                markeredgecolor=colour,
                gid="counted" if fill == colour else "not counted",
                zorder=3,
            )
        median = float(replays[counted & (replays["drive"] == drive)][metric].median()) / scale.divisor
        axes.plot([median, median], [row - 0.3, row + 0.3], color=style.INK, linewidth=2, gid="median", zorder=4)
        axes.annotate(format_number(median), (median, row - 0.31), ha="center", va="bottom", fontsize=style.SMALL_PT)
    axes.plot([], [], linestyle="none", marker="o", color=style.MUTED, label="counted warm run")
    axes.plot(
        [], [], linestyle="none", marker="o", markerfacecolor="white", markeredgecolor=style.MUTED, label="not counted"
    )
    axes.plot([], [], color=style.INK, linewidth=2, label="median of counted")
    axes.set_xlim(0, replays[metric].max() / scale.divisor * 1.12 or 1.0)
    ax.plain_numbers(axes, "x")
    axes.set_xlabel(f"{scale.label}   {better}")
    axes.grid(visible=False, axis="y")


def _note(replays: pd.DataFrame) -> str:
    """What a reader must know of how the trace was replayed."""
    dropped = sorted({text for text in replays["dropped"].dropna() if text})
    parts = [f"{column}: {', '.join(sorted(set(replays[column])))}" for column in ("engine", "timing")]
    return "; ".join([*parts, *(f"not replayed: {text}" for text in dropped)])
