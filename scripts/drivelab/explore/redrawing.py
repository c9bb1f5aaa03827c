"""Draw any figure of a finished study again, from its tables: in a notebook, or for a paper.

from drivelab.explore.redrawing import redraw
redraw("results", "comparison/pts-iops/comparison")
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from drivelab.core.errors import UserError, suggestion
from drivelab.figures.over_drives import OF_THE_STUDY
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

    *parts, name = place.split("/")
    return next(figure for _, figure in sheets([name], tables_of(Path(results), place), subject_of(parts)))


def subject_of(parts: list[str]) -> str:
    """Return what a figure shows, from the folders of its place: drive and measurement."""
    return f"{'all drives' if parts[0] == COMPARISON else parts[0]}, {parts[1]}"


def tables_of(results: Path, place: str) -> Mapping[str, pd.DataFrame]:
    """Return the tables that the figure at a place is drawn from."""
    from drivelab.figures.base.sheets import tables_of as tables_of_figure

    drive, measurement, *_ = parts = place.split("/")[:-1]
    study = {name: results / f"tables/{name}.parquet" for name in OF_THE_STUDY}
    of_study = {name: io.read([path] if path.exists() else [], name) for name, path in study.items()}
    recordings = ["/".join(parts)]
    if drive == COMPARISON:  # of a measurement, or of all measurements NAME.VALUE of a protocol with several
        names = [*of_study["summary"]["recordings"].explode(), *of_study["exclusions"]["recording"]]
        recordings = [name for name in dict.fromkeys(map(str, names))
                      if f"{name.split('/')[1]}.".startswith(f"{measurement}.")]  # fmt: skip
    else:
        del of_study["exclusions"]
    tables = {}
    for table in dict.fromkeys(tables_of_figure(place.rpartition("/")[2])):
        if table in of_study:
            frame = of_study[table]
            tables[table] = frame[frame["measurement"] == measurement] if "measurement" in frame else frame
        elif table not in OF_THE_STUDY:
            files = [results / "tables" / recording / f"{table}.parquet" for recording in recordings]
            tables[table] = io.read([file for file in files if file.exists()], table)
    return tables


def _is_place(path: Path) -> bool:
    return len(path.parts) == (3 if path.parts[0] == COMPARISON else 4)
