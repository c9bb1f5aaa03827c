"""The tables of recordings as datasets, which pandas, polars, DuckDB and Spark read as a folder.

`dataset/TABLE/drive=DRIVE/part.parquet` has the rows of all recordings of a drive. A table without rows has no folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from drivelab.core.grouping import grouped
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS, VERSION

FOLDER = "dataset"
_MADE = "_made.json"
"""File with the times of the folders that were joined. Readers of Parquet skip names that begin so."""


@dataclass(frozen=True)
class Joined:
    """The files of the datasets of a results folder."""

    files: list[Path]
    outdated: int
    """Number of tables left out because another version wrote them."""


def write_datasets(results: Path, folder: Path) -> None:
    """Write the datasets of a results folder to a new, empty folder.

    Raises UserError if a table was changed after drivelab wrote it.
    """
    times = _times(results)
    outdated = 0
    for drive, names in grouped(times, lambda name: name.partition("/")[0]).items():
        for table in SCHEMAS:
            files = [file for name in names if (file := results / "tables" / name / f"{table}.parquet").exists()]
            current = [content for file in files if (content := io.read_current(file, table)) is not None]
            outdated += len(files) - len(current)
            _write(table, current, folder / table / f"drive={drive}" / "part.parquet")
    (folder / _MADE).write_text(json.dumps({"version": VERSION, "outdated": outdated, "times": times}))


def _write(name: str, parts: list[pa.Table], target: Path) -> None:
    """Write the rows of one table of a drive; the drive is in the path."""
    if any(part.num_rows for part in parts):
        target.parent.mkdir(parents=True)
        with target.open("wb") as file:
            io.pack(io.marked(pa.concat_tables(parts).drop_columns("drive"), name), file, {}, compression="zstd")


def joined(results: Path) -> Joined | None:
    """Return the datasets of a results folder; None unless they have all tables of all recordings as they are now."""
    folder = results / FOLDER
    try:
        made = json.loads((folder / _MADE).read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(made, dict) or (made.get("version"), made.get("times")) != (VERSION, _times(results)):
        return None
    return Joined(sorted(folder.glob("*/drive=*/part.parquet")), made.get("outdated", 0))


def _times(results: Path) -> dict[str, int]:
    """Return the time of each folder with the tables of a recording; it is a new folder whenever they change."""
    folders = (path for path in (results / "tables").glob("*/*/*/") if not path.name.startswith("."))
    return {"/".join(path.parts[-3:]): path.stat().st_mtime_ns for path in sorted(folders)}
