"""Size, fonts, colours, header with status badges, and files of all figures."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from io import StringIO
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from drivelab.figures.base.svg import for_page, with_values
from drivelab.figures.base.values import marked

WIDTH_IN = 6.4  # narrow, so that text stays readable on a phone
HEIGHT_IN = 4.2
PNG_DPI = 150
SMALL_PT = 9.5
TEXT_PT = 10.0
LEGEND_PT = 9.0
INK = "#222222"
MUTED = "#5a5a5a"
ALARM = "#b00020"
COLOURBLIND = ("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#fbafe4", "#949494", "#ece133",
               "#56b4e9")  # fmt: skip
"""The palette `colorblind` of seaborn, whose import takes a second."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
DASHES = ("-", "--", "-.", ":")
_BADGES = {"REDUCED protocol": "#ffb000", "VIRTUAL drive": "#8fd0ff", "virtual clock": "#d6c3f0"}
_TRACE_BADGES = {"lossy": "#ff8c7a", "incomplete": "#ffc08a", "issue times": "#f5e08a", "derived": "#d6c3f0",
                 "imported": "#c9e3b4"}  # fmt: skip
"""Colours of the marks of a trace; `label` adds the badge of a virtual drive."""
_PAD_IN = 0.08
_PANEL_PAD_IN = 0.07
"""Padding around each panel with its texts."""
_TITLE_IN = 0.27
_TITLE_LINE_IN = 0.19
"""Height of each further line of a title."""
_LINE_IN = 0.175
_FEWEST_LETTERS = 10
"""Shortest line when wrapping; it always fits."""

RC: Any = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "white",
    "patch.force_edgecolor": True,
    "xtick.bottom": False,
    "ytick.left": False,
    "font.family": ["DejaVu Sans"],  # shipped with matplotlib
    "font.size": TEXT_PT,
    "axes.labelsize": TEXT_PT,
    "axes.edgecolor": "#9a9a9a",
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": SMALL_PT,
    "ytick.labelsize": SMALL_PT,
    "legend.fontsize": LEGEND_PT,
    "legend.title_fontsize": LEGEND_PT,
    "legend.frameon": False,
    "grid.color": "#dcdcdc",
    "grid.linewidth": 0.7,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "path.simplify_threshold": 0.3,  # of a point, less than the width of a line
    "figure.facecolor": "white",
    "figure.dpi": 72,  # as in SVG, so that texts are measured only once
    "axes.titley": 1.0,  # avoids a slow check for overlaps of titles
    "text.parse_math": False,
    "text.hinting": "none",  # else the width of a text depends on the resolution
    "svg.fonttype": "none",  # text instead of shapes: smaller, searchable and accessible
    "svg.hashsalt": "drivelab",  # else random ids make every file different
}


@dataclass(frozen=True)
class Page:
    """How wide figures are drawn, and whether they have a title; a paper's caption replaces it."""

    width_in: float = WIDTH_IN
    titled: bool = True


_PAGE = Page()
page: ContextVar[Page] = ContextVar("page of the figures", default=_PAGE)
_under_style = ContextVar("under the style", default=False)
"""Setting the style again would take a tenth of the time of a figure."""
P = ParamSpec("P")
R = TypeVar("R")
Colour = tuple[float, float, float]


@contextmanager
def on_page(width_in: float, *, titled: bool = True) -> Iterator[None]:
    """Make new figures this wide, perhaps without a title."""
    token = page.set(Page(width_in, titled))
    try:
        yield
    finally:
        page.reset(token)


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` under the style, which matplotlib reads when it creates and when it draws artists."""

    @wraps(function)
    def under_style(*args: P.args, **kwargs: P.kwargs) -> R:
        if _under_style.get():
            return function(*args, **kwargs)
        token = _under_style.set(True)
        try:
            with matplotlib.rc_context(RC):
                return function(*args, **kwargs)
        finally:
            _under_style.reset(token)

    return under_style


def colours(count: int) -> list[Colour]:
    """Return colours for unordered things (drives), safe for colour-blind readers."""
    return [to_rgb(colour) for colour in COLOURBLIND[:count]] if count <= len(COLOURBLIND) else ordered_colours(count)


def ordered_colours(count: int) -> list[Colour]:
    """Return colours from dark to light for ordered things (block sizes, mixes); none too pale for paper."""
    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.8, count))
    return [(float(red), float(green), float(blue)) for red, green, blue, _ in shades]


def new_figure(title: str, *, height_in: float = HEIGHT_IN) -> Figure:
    """Return an empty figure with its title, without pyplot, which would keep it in memory."""
    engine = ConstrainedLayoutEngine(w_pad=_PANEL_PAD_IN, h_pad=_PANEL_PAD_IN, wspace=0, hspace=0)
    figure = Figure(figsize=(page.get().width_in, height_in), layout=engine)
    FigureCanvasAgg(figure)  # measures texts
    figure.set_label(title)
    _header_line(figure, title, "title", fontsize=11.5, weight="bold")
    return figure


def grow(figure: Figure, extra_in: float) -> None:
    """Make a figure higher by `extra_in` inches."""
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + extra_in)
    _lay_out(figure)


def alarm(figure: Figure, message: str | None) -> None:
    """Add a white-on-red message under the title, if there is one."""
    if message is None:
        return
    box = {"facecolor": ALARM, "edgecolor": "none", "boxstyle": "square,pad=0.3"}
    _header_line(figure, message, "alarm", color="white", weight="bold", fontsize=TEXT_PT, bbox=box)


def note(figure: Figure, message: str) -> None:
    """Add a condition of the measurement under the subject."""
    _header_line(figure, message, "note", color=MUTED, fontsize=SMALL_PT)


def phase(axes: Axes, begin: float, end: float, name: str = "", *, dark: bool) -> None:
    """Shade the part of a panel that belongs to a phase, and write its name above."""
    axes.axvspan(begin, end, color="#f0f0f0" if dark else "#ffffff", zorder=0, linewidth=0, gid="phase")
    if not name:
        return
    axes.annotate(name, ((begin + end) / 2, 1.0), (0, 3), xycoords=("data", "axes fraction"), ha="center", va="bottom",
                  textcoords="offset points", fontsize=SMALL_PT, gid="phase name")  # fmt: skip


def badge(figure: Figure, text: str, colour: str) -> None:
    """Add a status badge; `label` places it."""
    box = {"facecolor": colour, "edgecolor": "none", "boxstyle": "round,pad=0.25"}
    figure.text(0, 0, text, fontsize=SMALL_PT, weight="bold", color="black", gid="badge", bbox=box)


def badges_of_trace(figure: Figure, marks: Iterable[str], *, partial: bool = False) -> None:
    """Add badges for the marks of a trace and for a partial replay; call this before `label`."""
    if partial:
        badge(figure, "PARTIAL replay", _TRACE_BADGES["lossy"])
    for mark in dict.fromkeys(marks):
        if mark in _TRACE_BADGES:
            text = "trace of ISSUE TIMES" if mark == "issue times" else f"{mark.upper()} trace"
            badge(figure, text, _TRACE_BADGES[mark])


def label_by(figure: Figure, rows: pd.DataFrame, subject: str) -> None:
    """Label a figure by the columns reduced, virtual and clock of all rows that it shows."""
    clock = "virtual" if (rows["clock"] == "virtual").any() else "wall"
    label(figure, reduced=bool(rows["reduced"].any()), virtual=bool(rows["virtual"].any()), clock=clock,
          subject=subject)  # fmt: skip


@styled
def label(figure: Figure, *, reduced: bool, virtual: bool, clock: str, subject: str) -> None:
    """Add the subject (drive and test) under the title, and the status badges on the right.

    Raises ValueError for an empty subject, a clock other than `wall` and `virtual`, and a figure labelled before.
    """
    if not subject.strip():
        raise ValueError("a figure needs a subject: name the drive and the test")
    if clock not in ("wall", "virtual"):
        raise ValueError(f"clock '{clock}' is neither 'wall' nor 'virtual'")
    if _texts(figure, "subject"):
        raise ValueError("this figure has its label already")
    wanted = zip(_BADGES.items(), (reduced, virtual, clock == "virtual"), strict=True)
    for (name, colour), shown in wanted:
        if shown:
            badge(figure, name, colour)
    figure.set_label(f"{figure.get_label()}: {subject}")
    _header_line(figure, subject, "subject", color=MUTED, fontsize=TEXT_PT)


@styled
def save(figure: Figure, stem: Path | str, *, png: bool = True) -> list[Path]:
    """Write `stem`.png if `png` is set, then `stem`.svg with the values of its marks (`values`); return the paths.

    The same figure gives the same bytes.
    """
    picture = Path(f"{stem}.svg")
    text = svg(figure)
    others = [Path(f"{stem}.png")] if png else []
    for path in others:
        figure.savefig(path, format="png", dpi=PNG_DPI, pil_kwargs={"compress_level": 1})
    picture.write_text(text, encoding="utf-8")
    return [picture, *others]


@styled
def svg(figure: Figure) -> str:
    """Return a figure as SVG with the values of its marks."""
    settle(figure)
    drawn = StringIO()
    with marked(figure) as values:
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Title": figure.get_label()})
    picture = for_page(drawn.getvalue()).replace("<svg ", '<svg role="img" ', 1)
    return with_values(picture, values) if values["panels"] else picture  # none in three dimensions


def settle(figure: Figure) -> None:
    """Lay out the axes once for all files, as it takes as long as drawing."""
    engine = figure.get_layout_engine()
    if engine is not None:
        for spine in (spine for axes in figure.axes for spine in axes.spines.values()):
            spine.set_in_layout(False)  # it lies on the edge of the axes, but measuring it takes long
        if figure.axes:
            engine.execute(figure)
        figure.set_layout_engine(None)  # layout "none" would draw each file twice


def _texts(figure: Figure, gid: str) -> list[Text]:
    return [text for text in figure.texts if text.get_gid() == gid]


def width_in(text: Text) -> float:
    """Return the width of a text in inches."""
    figure = text.get_figure(root=True)
    assert figure is not None
    return float(text.get_window_extent().width / figure.dpi)


def _header_line(figure: Figure, message: str, gid: str, **style: Any) -> None:
    """Add text to the header, wrapped to the width of the figure."""
    if gid in ("title", "subject") and not page.get().titled:
        message = ""
    text, letters = figure.text(0, 0, message, gid=gid, **style), len(message)
    room = figure.get_size_inches()[0] - 3 * _PAD_IN
    while letters > _FEWEST_LETTERS and (width := width_in(text)) > room:  # repeated, as letters differ in width
        letters = max(_FEWEST_LETTERS, int(letters * room / width * 0.95))
        text.set_text(textwrap.fill(message, letters))
    _lay_out(figure)


def _lay_out(figure: Figure) -> None:
    """Stack title, badges, subject, notes and alarm from the top; axes get the rest. If there is none, it grows."""
    width, height = figure.get_size_inches()
    (title,), badges = _texts(figure, "title"), _texts(figure, "badge")
    needed = sum(width_in(badge) + 2 * _PAD_IN for badge in badges)
    title_in = _TITLE_IN + _TITLE_LINE_IN * title.get_text().count("\n") if title.get_text() else 0.0
    below = bool(badges) and width_in(title) + needed + 3 * _PAD_IN > width
    badges_top, right = _PAD_IN + below * title_in, width - _PAD_IN
    for badge in reversed(badges):
        badge.set(position=((right - _PAD_IN / 2) / width, 1 - (badges_top + 0.02) / height), ha="right", va="top")
        right -= width_in(badge) + 2 * _PAD_IN
    title.set(position=(_PAD_IN / width, 1 - _PAD_IN / height), va="top")
    top = _PAD_IN + title_in + (_TITLE_IN if below or (badges and not title_in) else 0.0)
    for text in (*_texts(figure, "subject"), *_texts(figure, "note"), *_texts(figure, "alarm")):
        boxed = _PAD_IN if text.get_gid() == "alarm" else 0.0
        text.set(position=((_PAD_IN + boxed / 2) / width, 1 - (top + boxed) / height), va="top")
        top += (text.get_text().count("\n") + 1) * _LINE_IN * bool(text.get_text()) + 1.5 * boxed
    if (lowest := top + _PAD_IN) > height:
        grow(figure, lowest - height)
    else:
        engine = figure.get_layout_engine()
        assert isinstance(engine, ConstrainedLayoutEngine)  # as `new_figure` makes it
        engine.set(rect=(0.0, 0.0, 1.0, 1 - lowest / height))
