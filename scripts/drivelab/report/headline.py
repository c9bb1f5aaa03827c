"""The main results for the terminal, in the report's sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from drivelab.analysis.exclusions import WHOLE
from drivelab.analysis.limits import limited
from drivelab.core.units import counted, some
from drivelab.report.inputs import Inputs
from drivelab.report.verdict import headline_deltas, headline_values, headlines
from drivelab.tables import io

_MOST_NAMED = 3
"""Number of excluded recordings that are named."""


def headline_inputs(tables: Path, recordings: Sequence[str], basis: str) -> Inputs:
    """Return what headlines need, from the folder with a study's tables."""
    of_recordings = {
        name: [tables / recording / f"{name}.parquet" for recording in recordings]
        for name in ("steady_state", "replays")
    }
    paths = {name: [tables / f"{name}.parquet"] for name in ("summary", "deltas", "conditions")} | of_recordings
    cells = [tables / recording / "cells.parquet" for recording in recordings]
    known_by = ("measurement", "cell_label", "pattern", "rate_iops")
    frames = {name: io.read(files, name) for name, files in paths.items()}
    return Inputs.of(frames | {"cells": io.read_columns(cells, "cells", known_by)}, {"basis": basis}, ())


def first_headlines(inputs: Inputs, most: int = 3) -> list[str]:
    """Return the first headline of each measurement, at most `most`; for a single drive, its values."""
    chosen: dict[str, tuple[str, str, str]] = {}
    for delta, headline in zip(headline_deltas(inputs), headlines(inputs), strict=True):
        text = f"{headline.delta:>8}  {headline.sentence}"
        chosen.setdefault(str(delta["measurement"]), (delta["cell_label"], delta["metric"], text))
    for row in [] if chosen else headline_values(inputs):
        text = f"{row['cell_label']} {row['metric']}: {row['value']:,.6g} {row['unit']} ({row['verdict']})"
        chosen.setdefault(str(row["measurement"]), (row["cell_label"], row["metric"], text))
    return [f"{name}{_caveats(inputs, name, *value)}: {text}" for name, (*value, text) in list(chosen.items())[:most]]


def _caveats(inputs: Inputs, *value: str) -> str:
    """Return the caveats that must accompany a number shown alone; `value` is measurement, cell label and metric."""
    summary = inputs.frame("summary")
    rows = summary[(summary[["measurement", "cell_label", "metric"]] == list(value)).all(axis="columns")]
    caveats = ", ".join(limited(rows, inputs.frame("conditions")))
    return f" ({caveats})" if caveats else ""


def left_out_words(exclusions: Path) -> str:
    """Return a sentence on the excluded evidence, from the study's table `exclusions`.

    It counts the exclusions by fault, names the recordings that are excluded whole, and says where to read more.
    """
    excluded = io.read(exclusions, "exclusions")
    if excluded.empty:
        return "Nothing was excluded from the results."
    counts = excluded["fault"].value_counts(sort=False)
    faults = ", ".join(f"{fault} {count}" for fault, count in counts.items())
    items = f"{counted(len(excluded), 'item')} {'was' if len(excluded) == 1 else 'were'}"
    whole = list(dict.fromkeys(excluded.loc[excluded["place"] == WHOLE, "recording"]))
    named = f", with the whole of {some(whole, _MOST_NAMED)}" if whole else ""
    return (
        f"{items} excluded from the results ({faults}){named}: see the top of the report, or "
        f'drivelab query "FROM exclusions" --results {exclusions.parent.parent}'
    )
