"""Replays: runs of each drive and trace, with the median of the counted runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import format_number, quantity
from drivelab.figures.kinds.trace.trace_common import nothing
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="replay",
        title="Replay",
        caption=(
            "Access time, bandwidth and score of each run, in order. Bandwidth is bytes per time in which at "
            "least one read or write was in flight. Score is the geometric mean of bandwidth in MiB/s and "
            "1/access time in 1/s. Cold runs do not count; the result is the median of an odd number of runs."
        ),
        tables=("replays", "replay_passes"),
        when=("replay",),
        place=240,
    ),
)

_METRICS = {"access_time_us": "← better", "bandwidth_mib_s": "better →", "score": "better →"}
_MANY_ROWS = 8


@style.styled
def replay(replays: pd.DataFrame, replay_passes: pd.DataFrame) -> Figure:
    """Draw access time, bandwidth and score of the runs by drive, trace and phase, with medians.

    Passes of several traces first have a row for the whole set. Beside each replay is its duration as a multiple of the
    planned one. Runs that do not count are hollow. Raises ValueError for unsuitable tables or a row without a counted
    run.
    """
    selection.require(replays, "replays")
    selection.require(replay_passes, "replay_passes")
    rows = dict(_rows(replays, replay_passes))
    without = [name for name, runs in rows.items() if not runs["counted"].astype(bool).any()]
    if without:
        raise ValueError(f"table 'replays' has no counted run of {', '.join(without)}; each needs one")
    names, drives = list(dict.fromkeys(replays["trace"])), list(dict.fromkeys(replays["drive"]))
    title = f"Replay of {names[0]}" if len(names) == 1 else f"Replay of {len(names)} traces"
    metrics = [metric for metric in _METRICS if replays[metric].notna().any()]
    if not metrics:
        return nothing(title, "No read or write completed, so access time and busy time are unknown.")

    lines = ["\n".join(textwrap.wrap(name, 22)) for name in rows]
    row_in = 0.165 * (max(name.count("\n") for name in lines) + 3) + (0.1 if len(rows) <= _MANY_ROWS else 0.0)
    figure = style.new_figure(title, height_in=1.9 + max(0.62, row_in) * len(rows))
    style.note(figure, _note(replays))
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for axes, metric in zip(panels, metrics, strict=True):
        _panel(axes, list(rows.values()), metric, {drive: look.colour for drive, look in overlay.looks(drives).items()})
    panels[0].set_yticks(
        range(len(rows)), [_with_duration(line, runs) for line, runs in zip(lines, rows.values(), strict=True)]
    )
    panels[0].set_ylim(len(rows) - 0.5, -0.58)
    ax.legend(figure, panels[0])
    return figure


def _rows(replays: pd.DataFrame, passes: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield name and runs of each row; names omit what all rows share.

    Of a set in phases, only the whole set has rows.
    """
    sets = passes[passes["traces"] > 1].assign(duration_ratio=float("nan"))
    sets = sets.assign(trace=[f"set of {count} traces" for count in sets["traces"]])
    both = pd.concat([sets, replays], ignore_index=True) if len(sets) else replays
    both = both.assign(phase=both["phase"].fillna(""))
    if len(sets) and (both["phase"] != "").any():  # `replay_phases` shows the rest
        both = both[both["trace"].isin(sets["trace"])]
    parts = ["drive", "trace", "phase"]
    varying = [part for part in parts if both[part].nunique() > 1] or ["drive"]
    for _, runs in both.groupby(parts, sort=False):
        first = runs.iloc[0]
        yield ", ".join(str(first[part]) for part in varying if first[part]), runs


def _with_duration(name: str, runs: pd.DataFrame) -> str:
    ratio = runs.loc[runs["counted"].astype(bool), "duration_ratio"].astype(float).median()
    whose = "trace's" if (runs["timing_mode"] == "asap").all() else "planned"
    return name if pd.isna(ratio) else f"{name}\n{ratio:.3f} \N{MULTIPLICATION SIGN} {whose} time"


def _panel(axes: Axes, rows: list[pd.DataFrame], metric: str, colours: Mapping[str, style.Colour]) -> None:
    largest = max((float(runs[metric].max()) for runs in rows if runs[metric].notna().any()), default=1.0)
    scale = quantity(metric, largest)
    for row, runs in enumerate(rows):
        colour = colours[runs["drive"].iloc[0]]
        counted = runs["counted"].astype(bool)
        for shown, fill in ((counted, colour), (~counted, "white")):
            chosen = runs[shown]
            values = chosen[metric].astype(float) / scale.divisor
            spread = [row + 0.36 * ((place + 1) / (len(chosen) + 1) - 0.5) for place in range(len(chosen))]
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
        median = float(runs.loc[counted, metric].astype(float).median()) / scale.divisor
        if median == median:
            axes.plot([median, median], [row - 0.3, row + 0.3], color=style.INK, linewidth=2, gid="median", zorder=4)
            axes.annotate(
                format_number(median), (median, row - 0.31), ha="center", va="bottom", fontsize=style.SMALL_PT
            )
    axes.plot([], [], linestyle="none", marker="o", color=style.MUTED, label="counted run")
    axes.plot(
        [], [], linestyle="none", marker="o", markerfacecolor="white", markeredgecolor=style.MUTED, label="not counted"
    )
    axes.plot([], [], color=style.INK, linewidth=2, label="median of counted")
    axes.set_xlim(0, largest / scale.divisor * 1.14 or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    ax.plain_numbers(axes, "x")
    axes.set_xlabel(f"{scale.label}\n{_METRICS[metric]}", fontsize=style.LEGEND_PT)
    axes.grid(visible=False, axis="y")


def _note(replays: pd.DataFrame) -> str:
    """Return how the trace was replayed, for the header."""
    return "; ".join(f"{column}: {', '.join(sorted(set(replays[column])))}" for column in ("engine", "timing"))
