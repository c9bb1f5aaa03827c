"""Names beside points that cover no other name or point, and as little of the lines as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from drivelab.figures.base import style

_SIDES = ((1, -1), (-1, 1), (1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
"""Right or left, above or below, in order of preference, as most lines rise to the right."""
_DISTANCES = (1.0, 2.2)
_DIAGONAL = 0.85
"""Share of the distance along each axis for a diagonal side."""
_LETTER, _BOLD_LETTER, _HEIGHT = 0.68, 0.79, 1.25
"""Width of a letter and height of a line of capitals and digits, relative to the font size."""
_POINT_PT = 4.0
_OVER_NAME, _OVER_POINT, _OVER_LINE, _FARTHER = 1000.0, 100.0, 3.0, 3.0
"""Costs of a place; a line counts once for each of its samples under the name."""
_STEP_PX = 3.0
_H = {1: "left", 0: "center", -1: "right"}
_V = {1: "bottom", 0: "center", -1: "top"}

_Floats = npt.NDArray[np.float64]


@dataclass
class Names:
    """Places names on axes with final limits and position; `lines` are data coordinates, a row per point."""

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
        """Name the point x, y if there is room.

        A point with a ring (diameter in points) always gets a name, in bold.
        """
        bold = ring_pt > 0
        place = self.axes.transData.transform((x, y))
        away_pt = max(ring_pt / 2, _POINT_PT) + 1.5
        width_pt = style.SMALL_PT * (_BOLD_LETTER if bold else _LETTER) * len(text)
        candidates = [
            (self._cost(box) + _FARTHER * far, side, far, box)
            for far in _DISTANCES
            for side, box in _boxes(place, away_pt * far, width_pt, self._px_per_pt)
        ]
        cost, side, far, box = min(candidates, key=lambda candidate: candidate[0])
        if cost >= _OVER_POINT and not bold:
            return
        self.taken.append(box)
        shift = [direction * away_pt * far * (_DIAGONAL if all(side) else 1.0) for direction in side]
        self.axes.annotate(text, (x, y), (shift[0], shift[1]), textcoords="offset points", ha=_H[side[0]],
                           va=_V[side[1]], color=colour, weight="bold" if bold else "normal", fontsize=style.SMALL_PT,
                           bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
                           gid=gid)  # fmt: skip

    def keep_clear(self, rings: _Floats, ring_pt: float) -> None:
        """Keep names off the rings around these points."""
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


def _overlap(first: _Floats, second: _Floats) -> bool:
    return bool((first[:2] < second[2:]).all() and (second[:2] < first[2:]).all())


def _within(points: _Floats, box: _Floats, margin: float) -> int:
    return int(((points > box[:2] - margin) & (points < box[2:] + margin)).all(axis=1).sum())


def _along(line: _Floats) -> _Floats:
    """Return points on a line, at most `_STEP_PX` pixels apart."""
    lengths = np.hypot(*np.diff(line, axis=0).T)
    parts = [np.linspace(start, end, 2 + int(length / _STEP_PX))
             for start, end, length in zip(line[:-1], line[1:], lengths, strict=True)]  # fmt: skip
    return np.concatenate([line, *parts])
