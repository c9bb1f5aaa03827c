"""Evidence that may have changed since it was recorded: what is left of it as numbers, and what is against it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.soundness import (
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
from drivelab.analysis.windows import without_whole_round
from drivelab.errors import UserError
from drivelab.fio.consistency import contradiction, contradiction_of_slice, least_below_zero
from drivelab.fio.document import CellFailed, Direction, NotANumber, documents, from_document
from drivelab.fio.own import sections_of_job
from drivelab.fio.result import FioResult, complete_slices, read_result, read_slices
from drivelab.fio.series import BadLine
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.tables.belonging import against_job, against_journal, placed_slices
from drivelab.tables.schemas import SCHEMAS

_NOT_A_NUMBER = re.compile(r":\s*-?(nan|inf(inity)?)\b", re.IGNORECASE)
_PLACE = ["step", "kind", "round", "cell"]
_NOTHING = Direction(0, 0, 0.0, 0.0, 0.0, float("nan"), float("nan"), {}, 0)


def name_of(recording: Path) -> str:
    """What a recording in this folder must be called: DRIVE/MEASUREMENT/KEY, the last parts of its path."""
    return "/".join(recording.resolve().parts[-3:])


def check_place(recording: Path) -> None:
    """Raise UserError when the folder holds another recording than its path says: one that was copied there."""
    held = Plan.read(recording / "plan.json").recording
    if held != name_of(recording):
        raise UserError(
            f"{recording}: holds the recording {held}, which was copied or moved there; move the folder to its "
            "place, or remove it if it is a copy: what belongs there is measured then"
        )


def readable_result(recording: Path, line: Mapping[str, Any], cell: Cell) -> tuple[FioResult, str | None]:
    """What a cell's evidence says, and why it is unsound; `line` is the cell's of the journal.

    Of evidence that does not hold it is what its last whole document says, or nothing.
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
    """As `readable_result`, for the slices of a soak, each with its number; one that holds nothing where they do not
    add up.
    """
    directory = recording / line["directory"]
    try:
        results = read_slices(directory, cell) if line["finished"] else complete_slices(directory)
    except CellFailed as error:
        reason = _reason(directory, error)
        try:
            found = complete_slices(directory)
        except CellFailed:
            found = []
        return [(number, one, reason) for number, one in enumerate(found or [_empty(line)], start=line["first_slice"])]
    placed: list[tuple[int, FioResult, str | None]] = []
    sections = sections_of_job(directory)
    for before, (number, one, against) in zip([None, *results], placed_slices(results, line, cell), strict=False):
        against = against or _of_numbers(one, contradiction_of_slice(one, before, cell)) or against_job(one, sections)
        placed.append((number, one, against))
    return placed


def _of_numbers(result: FioResult, contradicting: str | None) -> str | None:
    if (words := least_below_zero(result)) is not None:
        return because(NEGATIVE_LATENCY, words)
    return None if contradicting is None else because(CONTRADICTS, contradicting)


def unsound_seconds(bad: Iterable[BadLine], begin_s: float, end_s: float | None) -> str | None:
    """Why the cell or slice from `begin_s` to `end_s` of fio's one-second logs is unsound, if it is.

    A second is of each slice that it overlaps; `end_s` is None for the last slice, which has all that comes after.
    """
    for one in bad:
        if one.second > begin_s and (end_s is None or one.second - 1 < end_s):
            negative = NEGATIVE_LATENCY if one.log == "lat" else NEGATIVE_RATE
            fault = negative if one.negative else NOT_A_NUMBER
            return because(fault, f"fio's one-second log {one.words}")
    return None


def judge(frames: Mapping[str, pd.DataFrame], plan: Plan) -> dict[str, pd.DataFrame]:
    """The tables `cells`, `latency_bins` and `series` of one recording with every cell judged.

    Numbers of an unsound cell that are none, where its columns must have one, are 0: it counts nowhere. Where no round
    has all variables that the steady state of a loop is judged by, nothing can be said of the loop: all its cells are
    unsound.
    """
    cells = frames["cells"].copy()
    cells["unsound"] = unsound_cells(cells, frames["latency_bins"])
    criteria = {n: one["loop"]["until"] for n, one in enumerate(plan.subject["measure"]) if "loop" in one}
    for recording, step in without_whole_round(cells, criteria) if cells["unsound"].notna().any() else ():
        rest = (cells["recording"] == recording) & (cells["step"] == step) & cells["unsound"].isna()
        words = "no round of the loop has all cells that its steady state is judged by"
        cells.loc[rest & (cells["kind"] == "loop"), "unsound"] = because(MISSING_ROUND, words)
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
    """Rows of no unsound cell or slice."""
    lost = set(cells.loc[cells["unsound"].notna(), _PLACE].itertuples(index=False, name=None))
    kept = [one not in lost for one in rows[_PLACE].itertuples(index=False, name=None)]
    return rows[np.array(kept, dtype=bool)].reset_index(drop=True)  # without a row it must not name columns


def _seconds_of_sound(series: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Seconds whose middle lies in no unsound cell or slice; those of a soak stand at its first slice for all."""
    lost = np.zeros(len(series), dtype=bool)
    for _, part in cells.groupby("directory", sort=False):
        if part["unsound"].isna().all():
            continue
        part = part.sort_values("round")
        begins_s = (part["elapsed_s"] - part["elapsed_s"].iloc[0]).to_numpy(dtype=float)
        mine = (series[_PLACE] == part[_PLACE].iloc[0]).all(axis=1).to_numpy()
        middles_s = series["time_s"].to_numpy(dtype=float) - 0.5
        slices = np.clip(np.searchsorted(begins_s, middles_s, side="right") - 1, 0, None)
        lost |= mine & part["unsound"].notna().to_numpy()[slices]
    return series[~lost].reset_index(drop=True)


def _reason(directory: Path, error: CellFailed) -> str:
    words = str(error)
    if words == "fio did no I/O at all":
        return because(NO_IO, words)
    if isinstance(error, NotANumber):
        return because(NOT_A_NUMBER, words)
    if _NOT_A_NUMBER.search(_text(directory)):
        return because(NOT_A_NUMBER, f"fio's JSON holds what is no number ({words})")
    return because(DAMAGED, words)


def _documents(directory: Path) -> Iterator[FioResult]:
    try:
        for document in documents(_text(directory)):
            yield from_document(document)
    except CellFailed:
        return


def _text(directory: Path) -> str:
    try:
        return (directory / "fio.json").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _empty(line: Mapping[str, Any]) -> FioResult:
    """In the place of evidence that says nothing."""
    return FioResult(_NOTHING, _NOTHING, datetime.fromisoformat(line["at"]), "", 0.0, 0.0, 0.0)
