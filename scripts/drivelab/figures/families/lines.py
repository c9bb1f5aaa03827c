"""Lines over an axis, in panels: a figure of this family declares its data, axis, lines and panels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log2
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style, words
from drivelab.figures.base.overlay import Look
from drivelab.figures.base.quantities import BLOCK, NUMBER, PLAIN, Quantity, Texts, elapsed, quantity
from drivelab.figures.base.words import say

Looks = Mapping[str, Look]
_MOST_TICKS = 14
"""Most ticks of the binary axes of a row of panels together."""
_SMALLEST_PT = 4.5
"""Size of the smallest marker of several drives."""
_TRACKED_WIDTH = 2.6
_LONG = 60
"""Longer lines are thin and have markers at some points only."""
_LETTERS_PER_IN = 9.6
"""Letters of a label beside a panel, for each inch of its row."""
_POINT = ("panel", "workload", "threads", "queue_depth", "run")
"""Columns that identify a point of a drive, with that of the x axis."""
_LINE_IN = 0.175
_REST_IN = 1.3
"""Height of the header, the x axis and the legend."""


@dataclass(frozen=True)
class X:
    """The x axis: a column of the points, its label, and its scale."""

    column: str
    label: str
    scale: str = "binary"
    """`binary` (logarithmic, ticks at the points), `rounds`, or `linear`."""
    text: Texts = PLAIN
    limits: tuple[float, float] | None = None
    ticks: tuple[float, ...] = ()
    """Ticks of a linear axis, if its points are too close together for one tick each."""
    apart: float = 0.0
    """Smallest distance between points that have one tick each."""
    divisor: float = 1.0
    """The column divided by it has the unit of the label."""
    start_s: float | None = None
    """Of a time axis in seconds: how far into the recording it begins."""

    @classmethod
    def time(
        cls, column: str, end_s: float, name: str = "Time since the start", start_s: float = 0.0, room: float = 0.01
    ) -> X:
        """Return an axis of seconds up to `end_s`, whose label is `name`, perhaps with `{}` for the unit."""
        scale = elapsed(end_s, name)
        label = name.format(scale.unit) if "{" in name else scale.label
        limits = 0.0, end_s * (1 + room) / scale.divisor or 1.0
        return cls(column, label, "linear", limits=limits, divisor=scale.divisor, start_s=start_s)


OUTSTANDING = X("outstanding", "All outstanding I/Os (number), log scale")
BLOCK_SIZE = X("block_size_bytes", "Block size (KiB), log scale", text=BLOCK)
READS = X(
    "read_share_pct", "Reads (% of the I/Os)", "linear", limits=(-4, 104), ticks=(0, 20, 40, 60, 80, 100), apart=5
)
POSITION = X("position_pct", "Position (% of the capacity)", "linear", limits=(0, 100))
ROUND = X("round", "Round (number)", "rounds")
RATE = X("iops", "I/O rate (IOPS)", "linear")


@dataclass(frozen=True)
class Panel:
    """Axes with the lines of one metric."""

    axes: Axes
    points: pd.DataFrame
    metric: str
    scale: Quantity
    looks: Looks
    x: X

    def at(self, points: pd.DataFrame) -> pd.Series:
        """Return the places of `points` on the x axis."""
        return points[self.x.column] / self.x.divisor

    def shown(self, points: pd.DataFrame) -> pd.Series:
        """Return the metric of `points` in the unit of the axis."""
        return points[self.metric] / self.scale.divisor

    @property
    def is_first(self) -> bool:
        """Whether these are the uppermost axes."""
        spec = self.axes.get_subplotspec()
        return spec is not None and spec.is_first_row()


Marks = Callable[[Panel], Sequence[Artist]]
"""Draws what only one figure has; returns its legend entries."""


def in_order(table: pd.DataFrame) -> dict[str, Look]:
    """Return looks from dark to light for lines that have an order, such as numbers of threads."""
    names = list(table["line"].drop_duplicates())
    looks = overlay.told_apart(names, style.ordered_colours(len(names)))
    return {name: replace(look, dash="-") for name, look in looks.items()}


def apart(table: pd.DataFrame) -> dict[str, Look]:
    """Return looks for lines without an order."""
    names = list(table["line"].drop_duplicates())
    return overlay.told_apart(names, style.colours(len(names)))


def by_drive(table: pd.DataFrame) -> dict[str, Look]:
    """Return looks with the colour of the drive; several lines of a drive differ in marker and dash.

    Later drives have smaller markers, as drives of one interface often coincide.
    """
    drives = overlay.looks(table["drive"])
    lines = {drive: table["line"][table["drive"] == drive].drop_duplicates() for drive in drives}
    several = any(len(names) > 1 for names in lines.values())
    looks = {}
    for below, (drive, look) in zip(reversed(range(len(drives))), drives.items(), strict=True):
        for place, name in enumerate(lines[drive]):
            if several:
                look = replace(look, marker=style.MARKERS[place % len(style.MARKERS)], dash=style.DASHES[place % 4])
            looks[str(name)] = replace(look, size=_SMALLEST_PT * (1 + 0.7 * below / len(drives)))
    return looks


@dataclass(frozen=True)
class Lines:
    """A figure of lines. Called with its tables it draws itself.

    Its points are rows with the columns line (name of the line), panel (name of the panel; missing for a single panel),
    the column of the x axis, and the metrics. Lines join their points in the order of the rows, and panels have the
    order of their first rows. Optional columns: drive, part (parts of a line that are not joined), tracked (thicker
    line), words (what a reader who points at the point sees as well).
    """

    title: str
    metrics: tuple[str, ...]
    """Columns on the y axes: with several, each panel has axes for each of them."""
    x: X
    data: Callable[..., pd.DataFrame] | None = None
    """Makes the points of the tables; raises ValueError for unsuitable tables."""
    looks: Callable[[pd.DataFrame], dict[str, Look]] = by_drive
    legend: str | None = None
    """Title of the legend, which allows it beside the panels."""
    columns: int = 2
    """Most panels in a row."""
    most: int = 9
    """Most panels; of more, some from first to last are shown."""
    stacked: bool = False
    """Whether the axes of several metrics are one above the other, else side by side."""
    row_in: float = 2.2
    linear: tuple[str, ...] = ()
    """Metrics whose axis is never logarithmic; that of others is if only that shows all values."""
    same_x: bool = False
    """Whether panels one above the other share their x axis, as axes of several metrics do."""
    same_y: bool = False
    """Whether all panels have one scale."""
    point: str = ""
    """What a point is, if not the value of a cell in the rounds that count."""
    note: str = ""
    steps: bool = False
    """Whether each value holds up to the next point."""
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    """Names and units of columns other than metrics."""
    marks: Marks | None = None

    def __call__(self, cells: pd.DataFrame, steady_state: pd.DataFrame, **options: Any) -> Figure:
        """Draw the figure from its tables; raises ValueError for unsuitable ones."""
        assert self.data is not None
        return self.draw(self.data(cells, steady_state, **options), steady_state)

    def draw(self, table: pd.DataFrame, steady_state: pd.DataFrame | None = None) -> Figure:
        """Draw the points of `table`; `steady_state` says whether the drives of a loop were steady."""
        metrics = [metric for metric in self.metrics if table[metric].notna().any()]
        if not metrics:
            raise ValueError(f"there is no value of '{', '.join(self.metrics)}' to show")
        names = list(table["panel"].drop_duplicates()) if "panel" in table else []
        shown = _spread(names, self.most) or [""]
        title = f"{self.title}, {names[0]}" if len(names) == 1 else self.title
        figure, grid = self._grid(title, len(shown), len(metrics))
        point = self.point or ("" if steady_state is None or self.x is ROUND else selection.value_name(steady_state))
        parts = [f"each point: {point}" if point else "", self.note]
        if len(shown) < len(names):
            parts.append(f"{len(shown)} of {len(names)} panels, all are in the tables")
        if any(parts):
            style.note(figure, "; ".join(filter(None, parts)))
            style.grow(figure, _LINE_IN * figure.texts[-1].get_text().count("\n"))
        looks = self.looks(table)
        if "drive" in table:
            by = [column for column in dict.fromkeys((*_POINT, self.x.column)) if column in table]
            overlay.note_coinciding(figure, table, by, metrics)
        entries: dict[str, Artist] = {}
        for place, name in enumerate(shown):
            part = table[table["panel"] == name] if len(names) > 1 else table
            for metric, axes in zip(metrics, grid[place], strict=True):
                for entry, artist in self._panel(axes, part, table, metric, looks).items():
                    entries.setdefault(entry, artist)
            if len(shown) > 1:
                grid[place][0].set_title(name, fontsize=style.SMALL_PT, loc="left")
        _label_outer_axes(figure, same_y=self.same_y)
        if steady_state is not None:
            style.alarm(figure, selection.not_steady(steady_state))
        of_lines = {name: entries.pop(name) for name in looks if name in entries}
        ax.legend(figure, grid[0][0], self.legend, [*of_lines.values(), *entries.values()])
        return figure

    def _grid(self, title: str, panels: int, several: int) -> tuple[Figure, list[list[Axes]]]:
        """Return a figure, and for each panel the axes of its `several` metrics."""
        columns = min(panels, self.columns) if several == 1 or self.stacked else several
        rows = several * ceil(panels / columns) if self.stacked or several == 1 else panels
        height_in = style.HEIGHT_IN if rows == 1 else _REST_IN + self.row_in * rows
        figure = style.new_figure(title, height_in=height_in)
        grid = figure.subplots(rows, columns, squeeze=False, sharex="col" if self.stacked or self.same_x else False)
        upright = self.stacked or several == 1
        used = [
            [grid[place // columns * several + row, place % columns] for row in range(several)]
            if upright else list(grid[place])
            for place in range(panels)
        ]  # fmt: skip
        for unused in set(grid.flat) - {axes for panel in used for axes in panel}:
            unused.remove()
        return figure, used

    def _panel(
        self, axes: Axes, part: pd.DataFrame, table: pd.DataFrame, metric: str, looks: Looks
    ) -> dict[str, Artist]:
        """Draw one metric of one panel; return the legend entries."""
        scale = self.quantities.get(metric) or quantity(metric, float(table[metric].max()))
        panel = Panel(axes, part, metric, scale, looks, self.x)
        entries: dict[str, Artist] = {}
        for place, (name, look) in enumerate(looks.items()):
            line = part[part["line"] == name]
            if line[metric].isna().all():
                continue
            drawn = self._line(panel, line, look)
            entries[name] = drawn[0]
            if len(line) > _LONG and self.x is not ROUND and look.dash != "none":
                drawn[0].set(linewidth=1.2, markersize=6, markeredgecolor="white",
                             markevery=(place * len(line) // 100, len(line) // 12))  # fmt: skip
        values = panel.shown(table if self.same_y else part).dropna().tolist()
        log = metric not in self.linear and ax.is_wide(values)
        ax.scale_y(axes, values, scale, log=log)
        if _shape(axes)[0] > 1 and len(axes.get_ylabel()) > _LETTERS_PER_IN * self.row_in:
            axes.set_ylabel(axes.get_ylabel().replace(" (", "\n(", 1))
        self._x_axis(axes, table if self.stacked or self.same_x else part)
        if self.marks is not None:
            entries |= {str(entry.get_label()): entry for entry in self.marks(panel)}
        return entries

    def _line(self, panel: Panel, line: pd.DataFrame, look: Look) -> list[Line2D]:
        """Draw the parts of one line."""
        drawn = []
        longest = panel.points["line"].value_counts().max()
        size = look.size if longest <= _LONG / 2 or self.x is ROUND else 0.6 * look.size
        for _, part in line.groupby("part", sort=False) if "part" in line else [("", line)]:
            at, shown = panel.at(part), panel.shown(part)
            drawn += panel.axes.plot(
                at, shown, color=look.colour, marker=look.marker, markersize=size, linestyle=look.dash, gid="line",
                label=part["line"].iloc[0], drawstyle="steps-post" if self.steps else "default",
            )  # fmt: skip
            if look.filled:
                panel.axes.fill_between(at, shown, step="post", color=look.colour, alpha=0.4, linewidth=0, gid="area",
                                        label=part["line"].iloc[0])  # fmt: skip
            if "tracked" in part:
                drawn[-1].set_linewidth(_TRACKED_WIDTH if part["tracked"].any() else 1.4)
            if "words" in part:
                said = list(part["words"])
                say(drawn[-1], said if len(set(said)) > 1 else said[0])
        return drawn

    def _x_axis(self, axes: Axes, part: pd.DataFrame) -> None:
        columns = _shape(axes)[1]
        places = sorted(int(place) for place in part[self.x.column].dropna().unique())
        if self.x.scale == "binary":
            axes.set_xscale("log", base=2)
            axes.set_xlim(places[0] / 1.5, places[-1] * 1.5)
            ax.ticks(axes.xaxis, _with_room(places, columns), self.x.text)
        elif self.x.scale == "rounds":
            ax.round_axis(axes, places[0], places[-1])
        else:
            ax.write(axes.xaxis, NUMBER)
        if self.x.start_s is not None:
            words.time(axes.xaxis, self.x.divisor, self.x.start_s)
        if self.x.limits:
            axes.set_xlim(*self.x.limits)
        if self.x.ticks:
            fits = min(np.diff(places), default=0) >= self.x.apart and columns == 1
            axes.xaxis.set_major_locator(FixedLocator(places if fits else self.x.ticks))
        axes.set_xlabel(self.x.label.replace(" (", "\n(", 1) if columns > 1 else self.x.label)


def _shape(axes: Axes) -> tuple[int, int]:
    """Return the number of rows and columns of the grid of some axes."""
    spec = axes.get_subplotspec()
    assert spec is not None
    rows, columns = spec.get_gridspec().get_geometry()
    return rows, columns


def _with_room(places: Sequence[int], columns: int) -> list[int]:
    """Return the first and the last place, and those between them that have room for a tick label."""
    apart = log2(places[-1] / places[0]) * columns / _MOST_TICKS
    named = [*places[:1]]
    for place in places[1:-1]:
        if min(log2(place / named[-1]), log2(places[-1] / place)) >= apart:
            named.append(place)
    return [*named, *places[1:][-1:]]


def _spread(names: Sequence[str], most: int) -> list[str]:
    """Return all names, or `most` of them, evenly spread from first to last."""
    if len(names) <= most:
        return list(names)
    return [names[round(place * (len(names) - 1) / (most - 1))] for place in range(most)]


def _label_outer_axes(figure: Figure, *, same_y: bool) -> None:
    """Leave labels only at the lowest axes of a column, and at the left ones of a row if all have one scale."""
    specs = {axes: axes.get_subplotspec() for axes in figure.axes}
    lowest = {spec.colspan.start: spec.rowspan.start for spec in specs.values() if spec is not None}
    for axes, spec in specs.items():
        if spec is None:
            continue
        if spec.rowspan.start < lowest[spec.colspan.start]:
            axes.xaxis.label.set_visible(False)  # a reader who points at a mark still sees it
        if same_y and spec.colspan.start:
            axes.yaxis.label.set_visible(False)
            axes.tick_params(labelleft=False)
    figure.align_ylabels()
