"""Draw any figure of a finished study again, from its tables: in a notebook, or for a paper.

from drivelab.explore.redrawing import redraw
redraw("results", "comparison/pts-iops/comparison")
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from drivelab.core.errors import UserError, suggestion
from drivelab.figures.registry import FIGURES
from drivelab.tables import io

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMPARISON = "comparison"


def places(results: Path | str) -> list[str]:
    """Return the figures of a results folder that can be drawn again, as `redraw` takes them.

    These are paths below `figures`: DRIVE/MEASUREMENT/KEY/FIGURE, and comparison/MEASUREMENT/FIGURE. Raises UserError
    if there are none.
    """
    folder = Path(results) / "figures"
    paths = [path.relative_to(folder).with_suffix("") for path in sorted(folder.rglob("*.svg"))]
    found = [str(path) for path in paths if path.name in FIGURES and _is_place(path)]
    if not found:
        raise UserError(f"{folder}: holds no figures. Name the results folder of a finished study.")
    return found


def redraw(results: Path | str, place: str) -> Figure:
    """Draw a figure again from the tables of a results folder; `place` is one of `places`.

    The figure is matplotlib's: change it as you like. Its labels (reduced, virtual …) belong to the data.
    """
    known = places(results)
    if place not in known:
        raise UserError(f"{results}: has no figure '{place}'; {suggestion(place, known)}")
    from drivelab.figures.base.sheets import sheets  # imports matplotlib, which is slow
    from drivelab.figures.drawing import tables_of_comparison, tables_of_recording

    *parts, name = place.split("/")
    if parts[0] == COMPARISON:
        recordings = _compared(Path(results), parts[1])
        tables = tables_of_comparison([name], recordings, Path(results, "tables"), parts[1])
    else:
        tables = tables_of_recording([name], Path(results, "recordings", *parts))
    return next(figure for _, figure in sheets([name], tables, subject_of(parts)))


def subject_of(parts: list[str]) -> str:
    """Return what a figure shows, from the folders of its place: drive and measurement."""
    return f"{'all drives' if parts[0] == COMPARISON else parts[0]}, {parts[1]}"


def _compared(results: Path, measurement: str) -> list[Path]:
    """Return the recordings of a measurement, or of all measurements NAME.VALUE of a protocol with several."""
    summary, exclusions = (io.read(results / f"tables/{name}.parquet", name) for name in ("summary", "exclusions"))
    names = list(dict.fromkeys(map(str, (*summary["recordings"].explode(), *exclusions["recording"]))))
    names = [name for name in names if f"{name.split('/')[1]}.".startswith(f"{measurement}.")]
    return [results / "recordings" / name for name in names if (results / "tables" / name).is_dir()]


def _is_place(path: Path) -> bool:
    return len(path.parts) == (3 if path.parts[0] == COMPARISON else 4)
