"""Rows with a number: a figure of this family has a row for each thing, with bars or dots, intervals and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, style
from drivelab.figures.base.quantities import NUMBER, SIGNED, Quantity, Texts, format_number, quantity
from drivelab.figures.base.words import say, tell

MARGIN = "#e9e4d4"
"""Colour of the band of a margin."""
LINE_IN = 0.185
"""Height of a line: of a bar, of a dot with its number, and of a line of a name."""
_GAP = 0.45
"""Lines between two rows."""
_BAR = 0.86
"""Height of a bar in lines."""
_REST_IN = 1.75
"""Height of the header, the x axis and the legend."""
_TEXT_IN = 0.175
_GAP_PT = 6.0
"""Space before each column of texts beside a panel."""
_OPTIONAL: Mapping[str, Any] = {
    "panel": "", "line": "", "low": np.nan, "high": np.nan, "number": "", "verdict": "", "also": "", "name": "",
    "colour": style.INK, "marker": "o", "hollow": False, "bar": False, "hatch": "", "gid": "value",
    "shift": 0.0, "heading": "",
}  # fmt: skip
"""Columns that a table of marks may lack, with their values."""
_LOOK = ["name", "colour", "marker", "hollow", "bar", "hatch", "gid"]


_SYMLOG_FROM = 400.0
"""From this value on, an axis around 0 is logarithmic beyond ±10."""


@dataclass(frozen=True)
class Across:
    """The x axis of a panel; from 0 unless it is logarithmic, has limits, or shows both sides of 0."""

    label: str
    log: bool = False
    texts: Texts = NUMBER
    limits: tuple[float, float] | None = None
    praise: str = ""
    """End of the label."""
    least: float = 0.0
    """Of an axis around 0: how far it reaches at least on both sides."""
    margin: float = 0.0
    """Half of the band around 0."""

    @classmethod
    def of(cls, scale: Quantity, values: Any, praise: str = "") -> Across:
        """Return the axis of a quantity, logarithmic if only that shows all `values`, which are in its unit."""
        return cls(scale.label, ax.is_wide(values), praise=praise)

    def set(self, axes: Axes, marks: pd.DataFrame) -> None:
        """Set label, scale and limits for `marks`."""
        ends = marks[["value", "low", "high"]].to_numpy(dtype=float)
        ends, log = ends[np.isfinite(ends)], ", log scale" if self.log else ""
        if self.least:
            log = self._around_0(axes, float(ends.min(initial=-self.least)), float(ends.max(initial=self.least)))
        elif self.log:
            ax.log_axis(axes, "x", float(ends[ends > 0].min()), float(ends.max()), self.texts)
        else:
            axes.set_xlim(0, float(ends.max(initial=0.0)) * 1.06 or 1.0)
            ax.write(axes.xaxis, self.texts)
        if self.limits is not None:
            axes.set_xlim(*self.limits)
        axes.set_xlabel(self.label + log + self.praise)

    def _around_0(self, axes: Axes, low: float, high: float) -> str:
        """Show both sides of 0, with the band; return what the label says of the scale."""
        room, log = 0.05 * (high - low) or 1.0, max(high, -low) >= _SYMLOG_FROM
        if log:
            axes.set_xscale("symlog", linthresh=10)
            axes.set_xlim(low * 2 if low < -self.least else low, high * 2 if high > self.least else high)
        else:
            axes.set_xlim(low - room, high + room)
        axes.axvline(0, color=style.INK, linewidth=1)
        if self.margin:
            axes.axvspan(-self.margin, self.margin, color=MARGIN, zorder=0, linewidth=0, gid="margin")
        ax.write(axes.xaxis, SIGNED)
        return ", log scale beyond ±10" if log else ""


@dataclass(frozen=True)
class Places:
    """Positions on a y axis that counts lines from the top."""

    of_line: Mapping[tuple[object, object], float]
    """Middle of each line, by row and line."""
    names: Mapping[float, str]
    """Name of each row, by its middle."""
    told: Mapping[float, str]
    """The same for a reader who points at a mark."""
    headings: Mapping[float, str]
    edges: Sequence[float]
    """Ends of the rows."""

    @classmethod
    def of(cls, marks: pd.DataFrame) -> Places:
        """Place the rows of a table of marks in their order, each below its heading."""
        of_line: dict[tuple[object, object], float] = {}
        names, told, headings, edges = {}, {}, {}, [0.0]
        before = ""
        for row, part in marks.groupby("row", sort=False):
            first, top = part.iloc[0], edges[-1]
            if first["heading"] != before:
                before = headings[top + 0.6] = first["heading"]
                top += 1.0
            name = str(first["text"])
            lines = list(part["line"].drop_duplicates())
            high = max(len(lines), name.count("\n") + 1) + _GAP
            for place, line in enumerate(lines):
                of_line[row, line] = top + high / 2 + place - (len(lines) - 1) / 2
            names[top + high / 2], told[top + high / 2] = name, str(first["told"])
            edges.append(top + high)
        return cls(of_line, names, told, headings, edges)

    def set(self, axes: Axes) -> None:
        """Set ticks, limits and words of the y axis."""
        named = {**self.headings, **self.names}
        axes.set_yticks(list(named), list(named.values()))
        for tick in axes.get_yticklabels() if self.headings else ():
            tick.set_fontweight("bold" if tick.get_text() in self.headings.values() else "normal")
        tell(axes.yaxis, Texts(str, lambda at: self.told[min(self.told, key=lambda middle: abs(middle - at))]))
        axes.set_ylim(self.edges[-1], 0)
        axes.grid(visible=False, axis="y")
        if len(self.of_line) > len(self.names):
            for edge in self.edges[1:-1]:
                axes.axhline(edge, color=style.RC["grid.color"], linewidth=0.7, zorder=0)


@dataclass(frozen=True)
class Rows:
    """A figure of rows, drawn from a table of marks.

    A mark is a bar or a dot, with the columns row (identifies the row) and value in the unit of the axis. Optional:
    text (name of the row), told (its name for a reader who points at a mark), heading (above the row), panel, line
    (place within the row), name (in the legend), colour, marker, hollow, bar, hatch, gid, shift (in lines), low
    and high (interval), number and verdict (beside the panel), also (what a reader who points at the mark sees).
    """

    title: str
    across: Mapping[str, Across]
    """X axis of each panel."""
    stacked: bool = False
    """Whether panels are one above the other with their own rows, else side by side with common rows."""
    width_ratios: Sequence[float] | None = None

    def draw(
        self, table: pd.DataFrame, handles: Sequence[Artist] | None = None, *, notes: Sequence[str] = ()
    ) -> Figure:
        """Draw the marks of `table`; `handles` are the legend entries, by default one for each name."""
        marks = complete(table)
        parts = [marks[marks["panel"] == panel] for panel in self.across]
        places = [Places.of(part) for part in parts] if self.stacked else [Places.of(marks)] * len(parts)
        lines = [place.edges[-1] for place in places] if self.stacked else [places[0].edges[-1]]
        rest_in = _REST_IN + 0.55 * (len(lines) - 1)
        rest_in += _TEXT_IN * (
            len(list(filter(None, notes))) + max(one.label.count("\n") for one in self.across.values())
        )
        figure = style.new_figure(self.title, height_in=max(2.6, rest_in + LINE_IN * sum(lines)))
        for note in filter(None, notes):
            style.note(figure, note)
        grid = figure.subplots(
            len(lines), ceil(len(parts) / len(lines)), squeeze=False, sharey=not self.stacked,
            height_ratios=[count * LINE_IN + 0.35 for count in lines], width_ratios=self.width_ratios,
        )  # fmt: skip
        entries: list[Artist] = []
        for axes, part, place, across in zip(grid.flat, parts, places, self.across.values(), strict=True):
            draw_panel(axes, part, place, across)
            if across.log and len(parts) > len(lines):
                ax.few_ticks(axes.xaxis)
            entries += axes.get_legend_handles_labels()[0]
        shown = entries if handles is None else handles
        if shown:
            ax.legend(figure, grid.flat[0], handles=shown)
        return figure


def in_units(values: pd.DataFrame, label: str = "{}") -> tuple[pd.DataFrame, dict[str, Across]]:
    """Return marks of `values` (columns metric, value, and perhaps low and high), with a panel for each metric.

    The values are in the unit of their axis, whose label is `label` with the name and unit in place of `{}`.
    """
    parts, across = [], {}
    for metric, part in values.groupby("metric", sort=False):
        scale = quantity(str(metric), float(part["value"].max()))
        across[str(metric)] = Across(label.format(scale.label))
        ends = part[[end for end in ("value", "low", "high") if end in part]].astype(float) / scale.divisor
        numbers = ["" if value != value else format_number(value) for value in ends["value"]]
        parts.append(part.assign(panel=metric, number=numbers, **ends))
    return pd.concat(parts), across


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of marks with all columns and values; marks of drives without a colour have the drive's look."""
    if "drive" in table and "colour" not in table:
        looks = overlay.looks(table["drive"])
        table = table.assign(colour=[looks[drive].colour for drive in table["drive"]],
                             marker=[looks[drive].marker for drive in table["drive"]])  # fmt: skip
    marks = table.assign(**{name: value for name, value in _OPTIONAL.items() if name not in table})
    for name, value in _OPTIONAL.items():
        marks[name] = [value if one is None or one != one else one for one in marks[name]]
    marks["text"] = marks["text"] if "text" in marks else marks["row"].astype(str)
    marks["told"] = marks["told"] if "told" in marks else marks["text"].str.replace("\n", " ")
    return marks


def draw_panel(axes: Axes, marks: pd.DataFrame, places: Places, across: Across) -> None:
    """Draw the complete `marks` of a panel, with its axes, intervals and the texts beside it."""
    across.set(axes, marks)
    marks = marks.assign(y=[places.of_line[row, line] for row, line in zip(marks["row"], marks["line"], strict=True)])
    marks["y"] += marks["shift"]
    low, high = axes.get_xlim()
    base = 1.0 if across.log else 0.0
    for (name, colour, marker, hollow, bar, hatch, gid), part in marks.groupby(_LOOK, sort=False):
        label = name or f"_{gid}"
        drawn: Any
        if bar:
            drawn = axes.barh(part["y"], part["value"] - base, _BAR, left=base, label=label, gid=gid, facecolor=colour,
                              hatch=hatch, edgecolor="white", linewidth=0.5)  # fmt: skip
        else:
            (drawn,) = axes.plot(part["value"], part["y"], linestyle="none", marker=marker, label=label, gid=gid,
                                 markersize=14 if marker == "|" else 6, markeredgewidth=2 if marker == "|" else None,
                                 markeredgecolor=colour, markerfacecolor="white" if hollow else colour)  # fmt: skip
        if part["also"].any():
            say(drawn, list(part["also"]))
        ends = part[part["low"].notna() & part["high"].notna()]
        if len(ends):
            ax.whiskers(axes, ends["low"].clip(low, high), ends["high"].clip(low, high), ends["y"], label=label,
                        color=style.INK if bar else colour, linewidth=1.4, zorder=2.5 if bar else 1.9)  # fmt: skip
    places.set(axes)
    _write_beside(axes, marks)


def _write_beside(axes: Axes, marks: pd.DataFrame) -> None:
    """Write numbers and verdicts in columns beside the panel; beside verdicts, numbers are aligned at their right."""
    look: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center",
                 "fontsize": style.SMALL_PT, "annotation_clip": False}  # fmt: skip
    numbered = marks[(marks["number"] != "") | (marks["verdict"] != "")]
    numbers = [axes.annotate(row.number, (1.0, row.y), (_GAP_PT, 0), ha="left", gid="number", **look)
               for row in numbered.itertuples()]  # fmt: skip
    if not numbered["verdict"].any():
        return
    width_pt = max((72 * style.width_in(number) for number in numbers), default=0.0)
    for number, row in zip(numbers, numbered.itertuples(), strict=True):
        number.set(position=(_GAP_PT + width_pt, 0), ha="right")
        axes.annotate(row.verdict, (1.0, row.y), (2 * _GAP_PT + width_pt, 0), ha="left", gid="verdict", **look)


def dot(label: str, colour: Any = style.MUTED, *, hollow: bool = False, marker: str = "o") -> Line2D:
    """Return a legend entry for dots."""
    return Line2D([], [], linestyle="none", marker=marker, color=colour, label=label,
                  markerfacecolor="white" if hollow else colour)  # fmt: skip
