"""Compute a published number again from its recordings; nothing is read from the tables of the results folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.exclusions import counted, exclusions_table
from drivelab.analysis.values.summary import summary_table
from drivelab.collect.conditions import start_times
from drivelab.collect.recording_tables import recording_tables
from drivelab.explore.row_selection import recording_facts
from drivelab.explore.side import BIN_COLUMNS, SUMMARISED, score_of
from drivelab.recording.checksums import MANIFEST
from drivelab.recording.folders import home
from drivelab.tables import io
from drivelab.tables.labels import SCORE

_SAME = 1e-9
"""Relative tolerance: only the order of sums may differ."""
_RUNS = ("replays", "application_runs", "load_rates")


def summary_row(row: Mapping[str, Any], results: Path) -> pd.DataFrame:
    """Return a row of table `summary`, computed from its recordings.

    The result is empty if they do not give the value, and for a score: it combines values of several drives.
    """
    if row["protocol"] == SCORE:
        return pd.DataFrame()
    paths = _paths(row, results)
    parts = [recording_tables(path, reduced=bool(row["reduced"])) for path in paths]
    tables = {name: io.as_read([part[name] for part in parts], name) for name in (*SUMMARISED, "latency_bins")}
    exclusions = exclusions_table(tables["cells"], recording_facts(paths), **{name: tables[name] for name in _RUNS})
    tables = {name: counted(table, exclusions) for name, table in tables.items()}
    bins = tables.pop("latency_bins")
    values = summary_table(
        **tables, soak_bins=bins.loc[bins["kind"] == "soak", list(BIN_COLUMNS)],
        scores={row["measurement"]: score_of(row["protocol"])},
    )  # fmt: skip
    same = pd.Series(True, index=values.index)
    for name in ("drive", "measurement", "cell_label", "metric"):
        same &= values[name] == row[name]
    return values[same].reset_index(drop=True)


def of_value(row: Mapping[str, Any], results: Path) -> float | None:
    """Return the value of a row of table `summary`, computed from its recordings; None as in `summary_row`."""
    return _only(summary_row(row, results), "value")


def of_delta(row: Mapping[str, Any], sides: Sequence[Mapping[str, Any]], results: Path) -> float | None:
    """Return `delta_pct` of a row of table `deltas`; `sides` are the rows of table `summary` that it compares."""
    values = [summary_row(side, results) for side in sides]
    if any(len(value) != 1 for value in values):
        return None
    paths = [path for side in sides for path in _paths(side, results)]
    started = start_times(path / MANIFEST for path in paths)
    deltas = deltas_table(pd.concat(values, ignore_index=True), str(row["basis"]), started=started)
    return _only(deltas, "delta_pct")


def agrees(value: object, again: float | None) -> bool:
    """Whether a number of a table equals the one that was computed again."""
    return isinstance(value, int | float) and again is not None and math.isclose(value, again, rel_tol=_SAME)


def _paths(row: Mapping[str, Any], results: Path) -> list[Path]:
    return [home(results, str(name)) / "recordings" / str(name) for name in row["recordings"]]


def _only(rows: pd.DataFrame, column: str) -> float | None:
    return float(rows[column].iloc[0]) if len(rows) == 1 else None
