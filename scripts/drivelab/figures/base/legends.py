"""Names of the marks of a figure: their label, else the legend entry that looks like them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.colorbar import Colorbar
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from drivelab.figures.base.words import parts

_NOTHING = ("None", "none", "")


@dataclass(frozen=True)
class Legends:
    """Entries of all legends of a figure, and the labels of bars and error bars."""

    names: tuple[str, ...]
    """Texts of the entries."""
    handles: tuple[Artist, ...]
    texts: tuple[Artist, ...]
    of_parts: dict[int, str]
    """Labels of containers by the identity of their parts."""
    colour_bars: tuple[tuple[Any, Colorbar], ...]
    """Artist of each colour bar, and the bar."""

    @classmethod
    def of(cls, figure: Figure) -> Legends:
        """Read the legends and colour bars of a figure and of its axes."""
        legends: list[Legend] = [*figure.legends, *(legend for axes in figure.axes if (legend := axes.get_legend()))]
        entries = [
            (text.get_text(), handle, text)
            for legend in legends
            for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
            if handle is not None
        ]
        names, handles, texts = zip(*entries, strict=True) if entries else ((), (), ())
        return cls(names, handles, texts, _labels_of_parts(figure), tuple(_colour_bars(figure)))

    def name(self, artist: Artist) -> str:
        """Return the name of an artist in one line, or nothing."""
        own = str(self.of_parts.get(id(artist)) or artist.get_label() or "")
        if own.startswith("_"):
            entry = self._alike(artist)
            own = "" if entry is None else self.names[entry]
        return own.replace("\n", " ")

    def entry(self, artist: Artist) -> int | None:
        """Return the number of the legend entry of an artist, or None."""
        own = str(self.of_parts.get(id(artist)) or artist.get_label() or "")
        if own and not own.startswith("_"):
            return self.names.index(own) if own in self.names else None
        return self._alike(artist)

    def of_colours(self, artist: Any) -> tuple[str, str]:
        """Return name and unit of what the colours of a map show, by the colour bar of the same scale."""
        bars = [bar for shown, bar in self.colour_bars if shown.norm is artist.norm]
        return parts(bars[0].ax.get_ylabel() or bars[0].ax.get_xlabel()) if bars else ("", "")

    def _alike(self, artist: Artist) -> int | None:
        """Return the number of the only entry that looks like an artist; a closer match has priority."""
        alike = [place for place, handle in enumerate(self.handles) if _looks_like(artist, handle)]
        closer = [place for place in alike if _look(self.handles[place]) == _look(artist)]
        return (closer or alike)[0] if len(closer or alike) == 1 else None


def _colour_bars(figure: Figure) -> Iterator[tuple[Any, Colorbar]]:
    for axes in figure.axes:
        for artist in (*axes.collections, *axes.images):
            if artist.colorbar is not None:
                yield artist, artist.colorbar


def _labels_of_parts(figure: Figure) -> dict[int, str]:
    labels: dict[int, str] = {}
    for container in (container for axes in figure.axes for container in axes.containers):
        members: list[Any] = []
        if isinstance(container, BarContainer):
            members = list(container.patches)
        elif isinstance(container, ErrorbarContainer):
            line, caps, bars = container.lines
            members = [part for part in (line, *caps, *bars) if part is not None]
        labels |= {id(part): str(container.get_label()) for part in members}
    return labels


def _looks_like(artist: Any, handle: Any) -> bool:
    """Return whether two artists have the same kind and colour, and lines the same dash or marker."""
    if isinstance(artist, Line2D) != isinstance(handle, Line2D) or _look(artist)[0] != _look(handle)[0]:
        return False
    if not isinstance(artist, Line2D):
        return True
    pairs = zip(_look(artist)[1:], _look(handle)[1:], strict=True)
    return any(own == other and own not in _NOTHING for own, other in pairs)


def _look(artist: Any) -> tuple[str, ...]:
    """Return the colour, then the other features of an artist."""
    if isinstance(artist, Line2D):
        return _hex(artist.get_color()), str(artist.get_linestyle()), str(artist.get_marker())
    if isinstance(artist, Patch):
        return _hex(artist.get_facecolor()), str(artist.get_hatch())
    if isinstance(artist, Collection) and len(artist.get_facecolor()) == 1:
        return (_hex(artist.get_facecolor()[0]),)
    return (f"other {id(artist)}",)


def _hex(colour: Any) -> str:
    return str(to_hex(colour))
