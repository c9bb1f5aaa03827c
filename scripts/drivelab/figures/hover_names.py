"""What the artists of a drawn figure are called: by their own label, else by the legend's entry of their look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from matplotlib.artist import Artist
from matplotlib.collections import Collection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from drivelab.figures.hover_style import colour, escaped, line_style, marker_style
from drivelab.figures.hover_words import called

_FIRST_RANK = 1000


@dataclass
class Names:
    """Entries of the legends of a figure, and which of them have a trace already."""

    title: str
    entries: dict[str, Artist]
    of_parts: dict[int, str]
    """Labels of containers by the identity of their parts."""
    shown: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, figure: Figure) -> Names:
        """Those of the figure's own legends and of those in its axes."""
        in_axes = [legend for axes in figure.axes if (legend := axes.get_legend())]
        legends: list[Legend] = [*figure.legends, *in_axes]
        entries: dict[str, Artist] = {}
        for legend in legends:
            for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
                if handle is not None:
                    entries.setdefault(text.get_text(), handle)
        title = legends[0].get_title().get_text() if legends else ""
        return cls(title if title != "None" else "", entries, _labels_of_parts(figure))

    def trace(self, artist: Artist) -> tuple[str, dict[str, Any]]:
        """Name of an artist, escaped, and what its trace says of it; one trace stands in the legend for all alike."""
        name = self._name(artist)
        if not name:
            return "", {"name": "", "showlegend": False}
        text = escaped(name).replace("\n", " ")
        if name not in self.entries:
            return text, {"name": text, "showlegend": False}
        first = name not in self.shown
        self.shown.add(name)
        return text, {
            "name": text,
            "legendgroup": text,
            "legendrank": _FIRST_RANK + list(self.entries).index(name),
            "showlegend": first,
        }

    def left(self) -> list[dict[str, Any]]:
        """Traces without a point for the entries that explain a look alone."""
        return [_key(*self._left(name), handle) for name, handle in self.entries.items() if name not in self.shown]

    def _left(self, name: str) -> tuple[str, int]:
        return escaped(name).replace("\n", " "), _FIRST_RANK + list(self.entries).index(name)

    def _name(self, artist: Artist) -> str:
        own = called(artist) or str(self.of_parts.get(id(artist)) or artist.get_label() or "")
        if own and not own.startswith("_"):
            return own
        alike = [label for label, handle in self.entries.items() if _looks_like(artist, handle)]
        closer = [label for label in alike if _look(self.entries[label]) == _look(artist)]
        return (closer or alike)[0] if len(closer or alike) == 1 else ""


def _labels_of_parts(figure: Figure) -> dict[int, str]:
    found: dict[int, str] = {}
    for container in (one for axes in figure.axes for one in axes.containers):
        if isinstance(container, BarContainer):
            parts: list[Any] = list(container.patches)
        elif isinstance(container, ErrorbarContainer):
            line, caps, bars = container.lines
            parts = [part for part in (line, *caps, *bars) if part is not None]
        else:
            continue
        found |= {id(part): str(container.get_label()) for part in parts}
    return found


def _looks_like(artist: Any, handle: Any) -> bool:
    """Whether an entry of the legend may stand for an artist: the same kind and colour, of lines the dash or marker."""
    if isinstance(artist, Line2D) != isinstance(handle, Line2D) or _look(artist)[0] != _look(handle)[0]:
        return False
    if not isinstance(artist, Line2D):
        return True
    pairs = zip(_look(artist)[1:], _look(handle)[1:], strict=True)
    return any(one == other and one not in ("None", "none", "") for one, other in pairs)


def _look(artist: Any) -> tuple[str, ...]:
    """Colour first, then what else tells artists apart."""
    if isinstance(artist, Line2D):
        return colour(artist.get_color()), str(artist.get_linestyle()), str(artist.get_marker())
    if isinstance(artist, Patch):
        return colour(artist.get_facecolor()), str(artist.get_hatch())
    if isinstance(artist, Collection) and len(artist.get_facecolor()) == 1:
        return (colour(artist.get_facecolor()[0]),)
    return (f"other {id(artist)}",)


def _key(name: str, rank: int, handle: Any) -> dict[str, Any]:
    """An entry of the legend without data."""
    trace: dict[str, Any] = {
        "type": "scatter",
        "x": [None],
        "y": [None],
        "name": name,
        "legendrank": rank,
        "showlegend": True,
        "hoverinfo": "skip",
    }
    if isinstance(handle, Line2D):
        marker, has_line = marker_style(handle), handle.get_linestyle() not in ("None", "none", "")
        mode = "+".join((["lines"] if has_line else []) + (["markers"] if marker else []))
        return {**trace, "mode": mode or "lines", "line": line_style(handle), **({"marker": marker} if marker else {})}
    face = handle.get_facecolor()
    one = face if isinstance(handle, Patch) else face[0] if len(face) else "#888888"
    return {**trace, "mode": "markers", "marker": {"symbol": "square", "size": 12, "color": colour(one)}}
