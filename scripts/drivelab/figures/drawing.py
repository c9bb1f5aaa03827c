"""Draw all figures of a recording, of a comparison, or of a trace from the tables of a results folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from drivelab.collect import inventory
from drivelab.figures.base import sheets
from drivelab.figures.of_recording import figures_of_recording
from drivelab.figures.over_drives import OF_THE_STUDY, figures_over_drives, tables_over_drives
from drivelab.figures.registry import FIGURES, TRACE_FIGURES
from drivelab.plan.plan import Plan
from drivelab.recording.folders import tables_folder
from drivelab.tables import io

_BY_MEASUREMENT = ("deltas", "summary")
"""Tables of the study of which a comparison shows the rows of its measurement."""


def draw_recording(recording: Path, folder: Path, *, png: bool) -> None:
    """Draw the figures that the plan of a recording asks for into `folder`, as NAME.svg and, with `png`, NAME.png."""
    plan = Plan.read(recording / "plan.json")
    names = figures_of_recording(plan.subject)
    sheets.draw(names, tables_of_recording(names, recording), f"{plan.drive}, {plan.measurement}", folder, png=png)


def tables_of_recording(figures: Iterable[str], recording: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of figures of a recording; the table `drives` has one row, from the recording itself."""
    kinds = [FIGURES[name] for name in figures]
    return {
        table: inventory.drives([recording]) if table == "drives" else _read([recording], table)
        for table in dict.fromkeys(table for kind in kinds for table in (*kind.required, kind.values))
    }


def draw_comparison(
    recordings: Sequence[Path], of_study: Path, measurement: str, basis: str, folder: Path, *, png: bool
) -> None:
    """Draw the figures that compare the drives of a measurement, or its block sizes, into `folder`.

    `of_study` is the folder of the study's tables; `basis` is the drive to compare with.
    """
    plans = [Plan.read(recording / "plan.json") for recording in recordings]
    names = figures_over_drives(plans, measurement, basis)
    tables = tables_of_comparison(names, recordings, of_study, measurement)
    sheets.draw(names, tables, f"all drives, {measurement}", folder, png=png)


def tables_of_comparison(
    figures: Iterable[str], recordings: Sequence[Path], of_study: Path, measurement: str
) -> dict[str, pd.DataFrame]:
    """Return the tables of figures that compare recordings of a measurement; `of_study` as in `draw_comparison`."""
    tables = {
        table: io.read(of_study / f"{table}.parquet", table) if table in OF_THE_STUDY else _read(recordings, table)
        for table in tables_over_drives(figures)
    }
    for table in tables.keys() & set(_BY_MEASUREMENT):
        tables[table] = tables[table][tables[table]["measurement"] == measurement]
    return tables


def draw_trace(tables: Path, folder: Path, *, png: bool) -> None:
    """Draw the figures of a trace from its folder of tables into `folder`."""
    needed = dict.fromkeys(table for kind in TRACE_FIGURES.values() for table in kind.required)
    read = {table: io.read(tables / f"{table}.parquet", table) for table in needed}
    sheets.draw_trace(TRACE_FIGURES, read, folder, png=png)


def _read(recordings: Sequence[Path], table: str) -> pd.DataFrame:
    return io.read([tables_folder(recording) / f"{table}.parquet" for recording in recordings], table)
