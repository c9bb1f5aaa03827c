"""Names beside points, where they cover no other name and no point, and as little of the lines as can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from drivelab.figures.base import style

_SIDES = ((1, -1), (-1, 1), (1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
"""Right or left, above or below: the first that is free; lines rise to the right as a rule."""
_DISTANCES = (1.0, 2.2)
_DIAGONAL = 0.85
"""Of the distance, to each of two sides."""
_LETTER, _BOLD_LETTER, _HEIGHT = 0.68, 0.79, 1.25
"""Of a text of capitals and digits, to the size of its font."""
_POINT_PT = 4.0
_OVER_NAME, _OVER_POINT, _OVER_LINE, _FARTHER = 1000.0, 100.0, 3.0, 3.0
"""What a place costs; a line counts for each of its samples under the name, which it would strike through."""
_STEP_PX = 3.0
_H = {1: "left", 0: "center", -1: "right"}
_V = {1: "bottom", 0: "center", -1: "top"}

_Floats = npt.NDArray[np.float64]


@dataclass
class Names:
    """Places names on axes whose limits and position are known; `lines` are in data coordinates, a point each row."""

    axes: Axes
    lines: Sequence[_Floats]
    taken: list[_Floats] = field(default_factory=list)
    """Boxes of names: left, bottom, right, top, in pixels."""

    def __post_init__(self) -> None:
        pixels = [self.axes.transData.transform(line) for line in self.lines]
        self._points = np.concatenate(pixels)
        self._samples = np.concatenate([_along(line) for line in pixels])
        self._px_per_pt = self.axes.figure.dpi / 72

    def add(self, x: float, y: float, text: str, colour: object, *, gid: str, ring_pt: float = 0.0) -> None:
        """Name the point x, y. With a ring around it (diameter in points) the name is bold and always there; else only
        where there is room."""
        bold = ring_pt > 0
        place = self.axes.transData.transform((x, y))
        away_pt = max(ring_pt / 2, _POINT_PT) + 1.5
        width_pt = style.SMALL_PT * (_BOLD_LETTER if bold else _LETTER) * len(text)
        found = [
            (self._cost(box) + _FARTHER * far, side, far, box)
            for far in _DISTANCES
            for side, box in _boxes(place, away_pt * far, width_pt, self._px_per_pt)
        ]
        cost, side, far, box = min(found, key=lambda one: one[0])
        if cost >= _OVER_POINT and not bold:
            return
        self.taken.append(box)
        shift = [one * away_pt * far * (_DIAGONAL if all(side) else 1.0) for one in side]
        self.axes.annotate(text, (x, y), (shift[0], shift[1]), textcoords="offset points", ha=_H[side[0]],
                           va=_V[side[1]], color=colour, weight="bold" if bold else "normal", fontsize=style.SMALL_PT,
                           bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
                           gid=gid)  # fmt: skip

    def keep_clear(self, rings: _Floats, ring_pt: float) -> None:
        """Have no name over the rings around these points."""
        half = ring_pt / 2 * self._px_per_pt
        for place in self.axes.transData.transform(rings.reshape(-1, 2)):
            self.taken.append(np.concatenate([place - half, place + half]))

    def _cost(self, box: _Floats) -> float:
        inside = self.axes.bbox
        out = box[0] < inside.x0 or box[1] < inside.y0 or box[2] > inside.x1 or box[3] > inside.y1
        over_names = int(out) + sum(_overlap(box, other) for other in self.taken)
        over_points = _within(self._points, box, _POINT_PT * self._px_per_pt)
        return _OVER_NAME * over_names + _OVER_POINT * over_points + _OVER_LINE * _within(self._samples, box, 0.0)


def _boxes(
    place: _Floats, away_pt: float, width_pt: float, px_per_pt: float
) -> Iterator[tuple[tuple[int, int], _Floats]]:
    size = np.array([width_pt, style.SMALL_PT * _HEIGHT]) * px_per_pt
    for side in _SIDES:
        towards = np.array(side)
        middle = place + towards * (away_pt * (_DIAGONAL if all(side) else 1.0) * px_per_pt + size / 2)
        yield side, np.concatenate([middle - size / 2, middle + size / 2])


def _overlap(one: _Floats, two: _Floats) -> bool:
    return bool((one[:2] < two[2:]).all() and (two[:2] < one[2:]).all())


def _within(points: _Floats, box: _Floats, margin: float) -> int:
    return int(((points > box[:2] - margin) & (points < box[2:] + margin)).all(axis=1).sum())


def _along(line: _Floats) -> _Floats:
    """Points on a line, so many that none of its pixels is far from one."""
    lengths = np.hypot(*np.diff(line, axis=0).T)
    parts = [np.linspace(one, two, 2 + int(length / _STEP_PX))
             for one, two, length in zip(line[:-1], line[1:], lengths, strict=True)]  # fmt: skip
    return np.concatenate([line, *parts])
