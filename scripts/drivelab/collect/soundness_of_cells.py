"""Evidence that may be damaged: its remaining numbers, and why it is unsound."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drivelab.collect.belonging import against_job, against_journal, placed_slices
from drivelab.core.errors import CellFailed, UserError
from drivelab.criteria.soundness import (
    CONTRADICTS,
    DAMAGED,
    MISSING_ROUND,
    NEGATIVE_LATENCY,
    NEGATIVE_RATE,
    NO_IO,
    NOT_A_NUMBER,
    because,
    unsound_cells,
)
from drivelab.fio.consistency import contradiction, contradiction_of_slice, least_below_zero, sections_of_job
from drivelab.fio.document import NOTHING, NoIo, NotANumber, documents, from_document, output_text
from drivelab.fio.result import FioResult, complete_slices, read_result, read_slices
from drivelab.fio.series import BadLine
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.tables.schemas import SCHEMAS
from drivelab.tables.windows import without_whole_round

_NOT_A_NUMBER = re.compile(r":\s*-?(nan|inf(inity)?)\b", re.IGNORECASE)
_PLACE = ["step", "kind", "round", "cell"]


def name_of(recording: Path) -> str:
    """Return the name of a recording in this folder: DRIVE/MEASUREMENT/KEY, the last parts of its path."""
    return "/".join(recording.resolve().parts[-3:])


def check_place(recording: Path) -> None:
    """Raise UserError if the folder holds a different recording than its path says."""
    actual = Plan.read(recording / "plan.json").recording
    if actual != name_of(recording):
        raise UserError(
            f"{recording}: holds the recording {actual}, which was copied or moved there; move the folder to its "
            "place, or delete it if it is a copy; drivelab then measures what belongs here"
        )


def readable_result(recording: Path, line: Mapping[str, Any], cell: Cell) -> tuple[FioResult, str | None]:
    """Return the result of a cell's evidence, and why it is unsound, or None.

    `line` is the cell's line in the journal. For invalid evidence, the result is its last complete document, or empty.
    """
    directory = recording / line["directory"]
    try:
        result = read_result(directory, cell)
    except CellFailed as error:
        last = list(_documents(directory))[-1:]
        return (last or [_empty(line)])[0], _reason(directory, error)
    reason = _of_numbers(result, contradiction(result, cell)) or against_journal(result, line)
    return result, reason or against_job(result, sections_of_job(directory))


def readable_slices(recording: Path, line: Mapping[str, Any], cell: Cell) -> list[tuple[int, FioResult, str | None]]:
    """Return the slices of a soak, each with its number and as in `readable_result`.

    For evidence without a complete slice, return one empty slice.
    """
    directory = recording / line["directory"]
    try:
        results = read_slices(directory, cell) if line["finished"] else complete_slices(directory)
    except CellFailed as error:
        reason = _reason(directory, error)
        try:
            complete = complete_slices(directory)
        except CellFailed:
            complete = []
        return [(n, result, reason) for n, result in enumerate(complete or [_empty(line)], start=line["first_slice"])]
    slices: list[tuple[int, FioResult, str | None]] = []
    jobs = sections_of_job(directory)
    for before, (number, result, fault) in zip([None, *results], placed_slices(results, line, cell), strict=False):
        fault = fault or _of_numbers(result, contradiction_of_slice(result, before, cell)) or against_job(result, jobs)
        slices.append((number, result, fault))
    return slices


def _of_numbers(result: FioResult, contradicting: str | None) -> str | None:
    if (negative := least_below_zero(result)) is not None:
        return because(NEGATIVE_LATENCY, negative)
    return None if contradicting is None else because(CONTRADICTS, contradicting)


def unsound_seconds(bad: Iterable[BadLine], begin_s: float, end_s: float | None) -> str | None:
    """Return why fio's one-second logs make a cell or slice unsound, or None.

    The cell or slice lasts from `begin_s` to `end_s`, in seconds of the logs. A second belongs to each slice that it
    overlaps. For the last slice `end_s` is None: it has all later seconds.
    """
    for line in bad:
        if line.second > begin_s and (end_s is None or line.second - 1 < end_s):
            negative = NEGATIVE_LATENCY if line.log == "lat" else NEGATIVE_RATE
            fault = negative if line.negative else NOT_A_NUMBER
            return because(fault, f"fio's one-second log {line.words}")
    return None


def judge(frames: Mapping[str, pd.DataFrame], plan: Plan) -> dict[str, pd.DataFrame]:
    """Judge every cell in the tables `cells`, `latency_bins` and `series` of one recording.

    Invalid numbers in required columns of an unsound cell become 0: the cell never counts. If no round of a loop has
    all tracked variables, its steady state is unknown, and all of its cells are unsound.
    """
    cells = frames["cells"].copy()
    cells["unsound"] = unsound_cells(cells, frames["latency_bins"])
    criteria = {n: step["loop"]["until"] for n, step in enumerate(plan.subject["measure"]) if "loop" in step}
    for recording, step in without_whole_round(cells, criteria) if cells["unsound"].notna().any() else ():
        rest = (cells["recording"] == recording) & (cells["step"] == step) & cells["unsound"].isna()
        reason = "no round of the loop has all cells that its steady state needs"
        cells.loc[rest & (cells["kind"] == "loop"), "unsound"] = because(MISSING_ROUND, reason)
    bad = cells["unsound"].notna()
    if not bad.any():
        return {**frames, "cells": cells}
    for field in SCHEMAS["cells"]:
        if not field.nullable and cells[field.name].dtype.kind in "fiO" and str(field.type) in ("double", "int64"):
            numbers = pd.to_numeric(cells[field.name])
            cells[field.name] = numbers.mask(bad & ~np.isfinite(numbers.astype(float)), 0)
    bins = _of_sound(frames["latency_bins"], cells)
    return {**frames, "cells": cells, "latency_bins": bins, "series": _seconds_of_sound(frames["series"], cells)}


def _of_sound(rows: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of sound cells and slices."""
    unsound = set(cells.loc[cells["unsound"].notna(), _PLACE].itertuples(index=False, name=None))
    kept = [place not in unsound for place in rows[_PLACE].itertuples(index=False, name=None)]
    return rows[np.array(kept, dtype=bool)].reset_index(drop=True)  # pandas would read an empty list as column names


def _seconds_of_sound(series: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds whose middle is in a sound cell or slice; soak seconds are stored at its first slice."""
    excluded = np.zeros(len(series), dtype=bool)
    for _, part in cells.groupby("directory", sort=False):
        if part["unsound"].isna().all():
            continue
        part = part.sort_values("round")
        begins_s = (part["elapsed_s"] - part["elapsed_s"].iloc[0]).to_numpy(dtype=float)
        own = (series[_PLACE] == part[_PLACE].iloc[0]).all(axis=1).to_numpy()
        middles_s = series["time_s"].to_numpy(dtype=float) - 0.5
        slices = np.clip(np.searchsorted(begins_s, middles_s, side="right") - 1, 0, None)
        excluded |= own & part["unsound"].notna().to_numpy()[slices]
    return series[~excluded].reset_index(drop=True)


def _reason(directory: Path, error: CellFailed) -> str:
    message = str(error)
    if isinstance(error, NoIo):
        return because(NO_IO, message)
    if isinstance(error, NotANumber):
        return because(NOT_A_NUMBER, message)
    if _NOT_A_NUMBER.search(output_text(directory)):
        return because(NOT_A_NUMBER, f"fio's JSON has a value that is not a number ({message})")
    return because(DAMAGED, message)


def _documents(directory: Path) -> Iterator[FioResult]:
    try:
        for document in documents(output_text(directory)):
            yield from_document(document)
    except CellFailed:
        return


def _empty(line: Mapping[str, Any]) -> FioResult:
    """Return an empty result for unreadable evidence."""
    return FioResult(NOTHING, NOTHING, datetime.fromisoformat(line["at"]), "", 0.0, 0.0, 0.0)
