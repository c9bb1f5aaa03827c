"""Build a study's tables from an import. Facts that the source does not give are null, NaN or "not recorded"."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from drivelab.analysis.deltas.doubts import PRINTED
from drivelab.analysis.values.saturation_table import saturation_table
from drivelab.analysis.values.summary import summary_table
from drivelab.analysis.verdict import AS_ASKED
from drivelab.collect.cell_rows import workload_columns
from drivelab.collect.inventory import UNKNOWN
from drivelab.criteria.inert import IO_PATH
from drivelab.imported import IMPORTED
from drivelab.plan.cell import Cell
from drivelab.tables import io
from drivelab.tables.labels import KINDS, UNITS, cell_labels
from drivelab.tables.schemas import SCHEMAS
from drivelab.tables.windows import windows_table

MIB = 1 << 20
NAMES = ("cells", "steady_state", "saturation", "summary", "drives", "hosts", "conditions")
WINDOW = {"window": 5, "data_excursion": 0.20, "slope_excursion": 0.10}
"""Rule of a loop until steady state, as in a plan: that of the PTS and of TKperf."""
_KINDS = {"drive": "drive", "host": "host", "test": "protocol", "time": "time"}
_FACETS = {
    "drive": ("model", "serial", "firmware", "LBA format", "transport", "link", "capacity", "logical block"),
    "host": ("host", "CPU", "cores", "memory", "kernel", "operating system", "fio", "drivelab"),
    "test": ("class", "active range", "write cache", "purge", "fill", "data pattern", "engine", IO_PATH, "scenario"),
    "time": ("temperature", "date", "evidence"),
}
"""Facets of every recording, possibly "not recorded", as in the table `conditions` of a study."""
_NAMES = {"cpu": "CPU", "os": "operating system", "lba_format": "LBA format", "capacity_bytes": "capacity",
          "logical_block_bytes": "logical block"}  # fmt: skip
"""Names of facets that differ from their columns in `drives` and `hosts`."""


@dataclass
class Recording:
    """One test of one drive, as far as its source describes it."""

    drive: str
    kind: str
    """Kind of `drivelab import`."""
    test: str
    """Short name of the test in the source; part of the measurement's name."""
    title: str
    cells: list[dict[str, Any]] = field(default_factory=list)
    """Rows of table `cells` without the key, from `cell_row`."""
    until: Mapping[str, Any] | None = None
    """Stop rule of its only loop, as in a plan; None if rounds are repeats or there is no loop."""
    steady_state: list[dict[str, Any]] = field(default_factory=list)
    """Rows without the key, if the source gives windows without cells."""
    summary: list[dict[str, Any]] = field(default_factory=list)
    """Rows without the columns of the recording, if the source gives values without cells."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Known facts by `drive`, `host`, `test`, `time`, named as columns of `drives` and `hosts` or as facets."""
    notes: Sequence[str] = ()
    left_out: Sequence[str] = ()
    """Files that cannot be imported, each with the reason; the report has them among the notes."""
    to_the_day: bool = False
    """Whether the times of cells are known only to the day."""

    @property
    def measurement(self) -> str:
        return f"imported-{self.kind}-{self.test}"

    @property
    def name(self) -> str:
        return f"{self.drive}/imported-{self.kind}/{self.test}"

    @property
    def protocol(self) -> str:
        return f"imported {self.kind}"

    @property
    def key(self) -> dict[str, Any]:
        """Columns that identify the recording of a row."""
        return {
            "recording": self.name,
            "drive": self.drive,
            "serial": self.facts.get("drive", {}).get("serial") or UNKNOWN,
            "protocol": self.protocol,
            "measurement": self.measurement,
            "run": 1,
            "reduced": False,
            "virtual": False,
            "clock": "wall",
        }


def cell_row(cell: Cell, *, kind: str, number: int, place: int, until: str | None, **measured: Any) -> dict[str, Any]:
    """Return a row of table `cells` without its key: round (or slice) `number`, at `place` within it.

    `measured` holds the measured columns, with `started`, `directory`, and the counts `read_ios`, `write_ios` and
    `bytes_written`; other columns are unknown.
    """
    empty = {column.name: math.nan if column.type == pa.float64() else None for column in SCHEMAS["cells"]}
    workload = {
        **workload_columns(cell),
        "workload": cell.workload,
        "filled": True,  # unknown; it matters only for slices of a drive that is not filled
        **dict.fromkeys(("cold", "after_gap", "in_window", "tainted"), False),
    }
    at = {"step": 0, "kind": kind, "round": number, "cell": place, "until": until}
    return {**empty, **workload, **at, **measured}


def printed_value(label: str, metric: str, value: float, evidence: str) -> dict[str, Any]:
    """Return a row of table `summary` without the columns of the recording, for one printed number.

    `label` is the workload, `metric` as in the table; `evidence` is the file that has the number.
    """
    return {
        "cell_label": label,
        "metric": metric,
        "kind": KINDS.get(metric, "time"),
        "unit": UNITS.get(metric, "us"),
        "value": value,
        "statistic": PRINTED,
        "verdict": AS_ASKED[1],
        "evidence": [evidence],
    }


def tables_of(recordings: Sequence[Recording]) -> dict[str, pd.DataFrame]:
    """Return the tables in NAMES; the analysis summarises the cells, and unknown values have no summary row."""
    cells = _frame(
        "cells", [{**row, **recording.key} for recording in recordings for row in _running_totals(recording.cells)]
    )
    cells["cell_label"] = cell_labels(cells)
    windows = [
        _frame("steady_state", [{**recording.key, **row} for recording in recordings for row in recording.steady_state])
    ]
    for recording in recordings:
        if recording.until is not None:
            windows.append(windows_table(cells[cells["recording"] == recording.name], {0: recording.until}))
    steady_state = _joined(windows, "steady_state")
    empty = {name: _frame(name, []) for name in ("replays", "replay_passes")}
    summary = summary_table(cells, steady_state, **empty) if len(cells) else _frame("summary", [])
    known = {recording.drive: recording.facts.get("drive", {}).get("capacity_bytes") for recording in recordings}
    capacities = {drive: capacity_bytes for drive, capacity_bytes in known.items() if capacity_bytes is not None}
    printed = _frame("summary", [_summary_row(recording, row) for recording in recordings for row in recording.summary])
    return {
        "cells": cells,
        "steady_state": steady_state,
        "saturation": saturation_table(cells[cells["drive"].isin(capacities)], capacities),
        "summary": _without_spread_of_one(_joined([summary[summary["value"].notna()], printed], "summary")),
        "drives": _frame("drives", [_inventory(recording, "drives") for recording in recordings]).drop_duplicates(),
        "hosts": _frame("hosts", [_inventory(recording, "hosts") for recording in recordings]).drop_duplicates(),
        "conditions": _frame("conditions", [row for recording in recordings for row in _conditions(recording)]),
    }


def write_tables(tables: Mapping[str, pd.DataFrame], recordings: Sequence[Recording], source: Path, out: Path) -> None:
    """Write `out`/tables/NAME.parquet, and `out`/imported.json with the facts of the import.

    A drive or host without the required numbers has no row in `drives` or `hosts`; `conditions` and imported.json hold
    its known facts.
    """
    for name in NAMES:
        frame = tables[name]
        if name in ("drives", "hosts"):
            required = [column.name for column in SCHEMAS[name] if not column.nullable]
            frame = frame[frame[required].notna().all(axis=1)]
        io.write(_arrow(frame, name), out / "tables" / f"{name}.parquet", name)
    facts = {
        "imported": True,
        "source": source.name,
        "recordings": [
            {
                "recording": recording.name,
                "drive": recording.drive,
                "measurement": recording.measurement,
                "protocol": recording.protocol,
                "title": recording.title,
                "facts": {name: dict(known) for name, known in recording.facts.items()},
                "notes": list(recording.notes),
            }
            for recording in recordings
        ],
    }
    (out / IMPORTED).write_text(json.dumps(facts, indent=1, default=str) + "\n", encoding="utf-8")


def _frame(name: str, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows with all columns of a table, in the types that pandas reads from Parquet."""
    frame = pd.DataFrame([dict(row) for row in rows], columns=SCHEMAS[name].names)
    for column in SCHEMAS[name]:
        if column.type == pa.float64():
            frame[column.name] = frame[column.name].astype(float)
        elif pa.types.is_boolean(column.type) and not column.nullable:
            frame[column.name] = frame[column.name].astype(bool)
        elif pa.types.is_timestamp(column.type):
            frame[column.name] = pd.to_datetime(frame[column.name], utc=True)
    return frame


def _joined(frames: Sequence[pd.DataFrame], name: str) -> pd.DataFrame:
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else _frame(name, [])


def _arrow(frame: pd.DataFrame, name: str) -> pa.Table:
    """Return the Parquet table; float columns without nulls hold NaN for numbers that were not recorded."""
    columns = {}
    for column in SCHEMAS[name]:
        values = frame[column.name]
        if column.type == pa.float64() and not column.nullable:
            columns[column.name] = pa.array(np.asarray(values, dtype=float))
        elif pa.types.is_timestamp(column.type):
            columns[column.name] = pa.array(values.dt.floor("ms"), from_pandas=True)
        else:
            columns[column.name] = pa.array(list(values), type=column.type, from_pandas=True)
    return pa.table(columns)


def _running_totals(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with the bytes written so far."""
    totals = accumulate(row["bytes_written"] for row in rows)
    return [{**row, "bytes_written_total": total} for row, total in zip(rows, totals, strict=True)]


def _summary_row(recording: Recording, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a single value, whose repeatability is unknown."""
    known = {name: recording.key[name] for name in ("drive", "measurement", "protocol", "reduced", "virtual", "clock")}
    alone = {"n": 1, "samples": [float(row["value"])], "scope": "recordings"}
    return {**known, **alone, "recordings": [recording.name], **row}


def _without_spread_of_one(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the summary without a spread for values of one sample."""
    return summary.assign(
        **{name: summary[name].where(summary["samples"].map(len) > 1) for name in ("spread_low", "spread_high")}
    )


def _inventory(recording: Recording, table: str) -> dict[str, Any]:
    """Return the row of table `drives` or `hosts`; unknown numbers are None, even in required columns."""
    known = recording.facts.get(table.removesuffix("s"), {})
    row = {part.name: known.get(part.name) for part in SCHEMAS[table]}
    named = {"drive": recording.drive, "virtual": False} if table == "drives" else {}
    texts = {part.name: UNKNOWN for part in SCHEMAS[table] if pa.types.is_string(part.type) and not part.nullable}
    return {**row, **{name: text for name, text in texts.items() if row[name] is None}, **named}


def _conditions(recording: Recording) -> list[dict[str, Any]]:
    at = {"recording": recording.name, "drive": recording.drive, "measurement": recording.measurement}
    rows = []
    for part, kind in _KINDS.items():
        known = {_NAMES.get(name, name): value for name, value in recording.facts.get(part, {}).items()}
        known |= {name: f"{known[name]:,} B" for name in ("capacity", "logical block") if name in known}
        known |= {"protocol": recording.protocol, "clock": "wall"} if part == "test" else {}
        for facet in dict.fromkeys([*_FACETS[part], *known]):
            value = known.get(facet)
            rows.append({**at, "facet": facet, "kind": kind, "value": UNKNOWN if value is None else str(value)})
    return rows
