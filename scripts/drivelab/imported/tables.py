"""What an import yields, as the tables of a study. What the origin does not say is null, NaN or "not recorded"."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from drivelab.analysis.labels import cell_labels
from drivelab.analysis.saturation_table import saturation_table
from drivelab.analysis.summary import summary_table
from drivelab.analysis.windows import windows_table
from drivelab.imported import IMPORTED
from drivelab.plan.cell import Cell
from drivelab.tables import io
from drivelab.tables.inventory import UNKNOWN
from drivelab.tables.schemas import SCHEMAS

MIB = 1 << 20
NAMES = ("cells", "series", "steady_state", "saturation", "summary", "drives", "hosts", "conditions")
WINDOW = {"window": 5, "data_excursion": 0.20, "slope_excursion": 0.10}
"""Of a loop until steady state, as in a plan: the rule of the PTS, which is TKperf's too."""
_KINDS = {"drive": "drive", "host": "host", "test": "protocol", "time": "time"}
_FACETS = {
    "drive": ("model", "serial", "firmware", "LBA format", "transport", "link", "capacity", "logical block"),
    "host": ("host", "CPU", "cores", "memory", "kernel", "operating system", "fio", "drivelab"),
    "test": ("class", "active range", "write cache", "purge", "fill", "data pattern", "engine", "scenario"),
    "time": ("temperature", "date", "evidence"),
}
"""Facets that every recording has, be it as "not recorded"; as in the table `conditions` of a study."""
_NAMES = {"cpu": "CPU", "os": "operating system", "lba_format": "LBA format", "capacity_bytes": "capacity",
          "logical_block_bytes": "logical block"}  # fmt: skip
"""Of facets, by column of `drives` and `hosts`, where they differ."""


@dataclass
class Recording:
    """One test of one drive, as far as its origin tells of it."""

    drive: str
    kind: str
    """One of the kinds of `drivelab import`."""
    test: str
    """Which of the tests in the origin, as a short name; part of the measurement's name."""
    title: str
    cells: list[dict[str, Any]] = field(default_factory=list)
    """Rows of table `cells` without the key, from `cell_row`."""
    series: list[dict[str, Any]] = field(default_factory=list)
    """Rows of table `series` without the key."""
    until: Mapping[str, Any] | None = None
    """Of its only loop, as in a plan; None: rounds are repeats, or there is none."""
    steady_state: list[dict[str, Any]] = field(default_factory=list)
    """Rows without the key, where the origin gives windows without cells."""
    summary: list[dict[str, Any]] = field(default_factory=list)
    """Rows without what identifies the recording, where the origin gives values without cells."""
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By `drive`, `host`, `test`, `time`: what is known. Names of columns of `drives` and `hosts`, or of facets."""
    notes: Sequence[str] = ()
    to_the_day: bool = False
    """Times of cells say no more than the day."""
    virtual: bool = False
    """From a virtual drive of drivelab, on the virtual clock."""

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
    def clock(self) -> str:
        return "virtual" if self.virtual else "wall"

    @property
    def key(self) -> dict[str, Any]:
        """The columns that say which recording a row is of."""
        return {
            "recording": self.name,
            "drive": self.drive,
            "serial": self.facts.get("drive", {}).get("serial") or UNKNOWN,
            "protocol": self.protocol,
            "measurement": self.measurement,
            "run": 1,
            "reduced": False,
            "virtual": self.virtual,
            "clock": self.clock,
        }


def cell_row(cell: Cell, *, kind: str, number: int, place: int, until: str | None, **found: Any) -> dict[str, Any]:
    """A row of table `cells` without its key: of round (or slice) `number`, at `place` within it.

    `found` holds what was measured, with `started`, `directory`, and the counts `read_ios`, `write_ios` and
    `bytes_written`; what it leaves out is unknown.
    """
    empty = {one.name: math.nan if one.type == pa.float64() else None for one in SCHEMAS["cells"]}
    asked = {
        "pattern": cell.pattern,
        "read_share_pct": cell.read_share,
        "block_size_bytes": cell.block_size_bytes,
        "threads": cell.threads,
        "queue_depth": cell.queue_depth,
        "alignment_offset_bytes": 0,
        "range_share": 1.0,
        "workload": cell.workload,
        "filled": True,  # not known; only of a drive that was not filled would slices count otherwise
        "cold": False,
        "after_gap": False,
        "in_window": False,
        "tainted": False,
    }
    at = {"step": 0, "kind": kind, "round": number, "cell": place, "until": until}
    return {**empty, **asked, **at, **found}


def tables_of(recordings: Sequence[Recording]) -> dict[str, pd.DataFrame]:
    """The tables of NAMES. The summary of cells is the analysis's own; values that are not known have no row in it."""
    cells = _frame("cells", [{**row, **one.key} for one in recordings for row in _running_totals(one.cells)])
    cells["cell_label"] = cell_labels(cells)
    windows = [_frame("steady_state", [{**one.key, **row} for one in recordings for row in one.steady_state])]
    for one in recordings:
        if one.until is not None:
            windows.append(windows_table(cells[cells["recording"] == one.name], {0: one.until}))
    steady_state = _joined(windows, "steady_state")
    empty = {name: _frame(name, []) for name in ("replays", "replay_passes")}
    found = summary_table(cells, steady_state, **empty) if len(cells) else _frame("summary", [])
    known = {one.drive: one.facts.get("drive", {}).get("capacity_bytes") for one in recordings}
    capacities = {drive: capacity_bytes for drive, capacity_bytes in known.items() if capacity_bytes is not None}
    printed = _frame("summary", [_summary_row(one, row) for one in recordings for row in one.summary])
    return {
        "cells": cells,
        "series": _frame("series", [{**row, **one.key} for one in recordings for row in one.series]),
        "steady_state": steady_state,
        "saturation": saturation_table(cells[cells["drive"].isin(capacities)], capacities),
        "summary": _without_spread_of_one(_joined([found[found["value"].notna()], printed], "summary")),
        "drives": _frame("drives", [_inventory(one, "drives") for one in recordings]).drop_duplicates(),
        "hosts": _frame("hosts", [_inventory(one, "hosts") for one in recordings]).drop_duplicates(),
        "conditions": _frame("conditions", [row for one in recordings for row in _conditions(one)]),
    }


def write_tables(tables: Mapping[str, pd.DataFrame], recordings: Sequence[Recording], source: Path, out: Path) -> None:
    """Write `out`/tables/NAME.parquet, and `out`/imported.json: what was imported and what is known of it.

    Of a drive or host of which numbers are missing that the tables `drives` and `hosts` must have there is no row in
    them; `conditions` and imported.json have what is known.
    """
    for name in NAMES:
        frame = tables[name]
        if name in ("drives", "hosts"):
            must = [one.name for one in SCHEMAS[name] if not one.nullable]
            frame = frame[frame[must].notna().all(axis=1)]
        io.write(_arrow(frame, name), out / "tables" / f"{name}.parquet", name)
    facts = {
        "imported": True,
        "source": source.name,
        "recordings": [
            {
                "recording": one.name,
                "drive": one.drive,
                "measurement": one.measurement,
                "protocol": one.protocol,
                "title": one.title,
                "facts": {name: dict(known) for name, known in one.facts.items()},
                "notes": list(one.notes),
            }
            for one in recordings
        ],
    }
    (out / IMPORTED).write_text(json.dumps(facts, indent=1, default=str) + "\n", encoding="utf-8")


def _frame(name: str, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows with all columns of a table, in its types as pandas reads them from Parquet."""
    frame = pd.DataFrame([dict(row) for row in rows], columns=SCHEMAS[name].names)
    for one in SCHEMAS[name]:
        if one.type == pa.float64():
            frame[one.name] = frame[one.name].astype(float)
        elif pa.types.is_boolean(one.type) and not one.nullable:
            frame[one.name] = frame[one.name].astype(bool)
        elif pa.types.is_timestamp(one.type):
            frame[one.name] = pd.to_datetime(frame[one.name], utc=True)
    return frame


def _joined(frames: Sequence[pd.DataFrame], name: str) -> pd.DataFrame:
    filled = [one for one in frames if len(one)]
    return pd.concat(filled, ignore_index=True) if filled else _frame(name, [])


def _arrow(frame: pd.DataFrame, name: str) -> pa.Table:
    """A column of floats that must not hold nulls may hold NaN: a number that nobody recorded."""
    columns = {}
    for one in SCHEMAS[name]:
        values = frame[one.name]
        if one.type == pa.float64() and not one.nullable:
            columns[one.name] = pa.array(np.asarray(values, dtype=float))
        elif pa.types.is_timestamp(one.type):
            columns[one.name] = pa.array(values.dt.floor("ms"), from_pandas=True)
        else:
            columns[one.name] = pa.array(list(values), type=one.type, from_pandas=True)
    return pa.table(columns)


def _running_totals(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the bytes written so far."""
    so_far, found = 0, []
    for row in rows:
        so_far += row["bytes_written"]
        found.append({**row, "bytes_written_total": so_far})
    return found


def _summary_row(one: Recording, row: Mapping[str, Any]) -> dict[str, Any]:
    """A value that stands alone: nothing is known of how it would repeat."""
    known = {name: one.key[name] for name in ("drive", "measurement", "protocol", "reduced", "virtual", "clock")}
    alone = {"n": 1, "samples": [float(row["value"])], "scope": "recordings"}
    return {**known, **alone, "recordings": [one.name], **row}


def _without_spread_of_one(summary: pd.DataFrame) -> pd.DataFrame:
    """A value that one sample stands on is not said to lie between that sample and itself."""
    return summary.assign(
        **{name: summary[name].where(summary["samples"].map(len) > 1) for name in ("spread_low", "spread_high")}
    )


def _inventory(one: Recording, table: str) -> dict[str, Any]:
    """The row of table `drives` or `hosts`; numbers that are not known are None, also where the table wants one."""
    known = one.facts.get(table.removesuffix("s"), {})
    row = {part.name: known.get(part.name) for part in SCHEMAS[table]}
    named = {"drive": one.drive, "virtual": one.virtual} if table == "drives" else {}
    texts = {part.name: UNKNOWN for part in SCHEMAS[table] if pa.types.is_string(part.type) and not part.nullable}
    return {**row, **{name: text for name, text in texts.items() if row[name] is None}, **named}


def _conditions(one: Recording) -> list[dict[str, Any]]:
    at = {"recording": one.name, "drive": one.drive, "measurement": one.measurement}
    rows = []
    for part, kind in _KINDS.items():
        known = {_NAMES.get(name, name): value for name, value in one.facts.get(part, {}).items()}
        known |= {name: f"{known[name]:,} B" for name in ("capacity", "logical block") if name in known}
        known |= {"protocol": one.protocol, "clock": one.clock} if part == "test" else {}
        for facet in dict.fromkeys([*_FACETS[part], *known]):
            value = known.get(facet)
            rows.append({**at, "facet": facet, "kind": kind, "value": UNKNOWN if value is None else str(value)})
    return rows
