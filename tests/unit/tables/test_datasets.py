"""Datasets of the tables of recordings: what other programs read, and what `query` reads instead of many files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

from drivelab.core.errors import UserError
from drivelab.core.files import whole_folder
from drivelab.explore.query import open_results, query
from drivelab.tables import datasets, io
from drivelab.tables.schemas import SCHEMAS

RECORDINGS = {"op7/test/0-run1": 10.0, "op7/test/0-run2": 20.0, "op28@rack/test/0-run1": 30.0}


def row(**given: object) -> dict[str, object]:
    zero = {"string": "", "bool": False, "timestamp[ms, tz=UTC]": pd.Timestamp("2026-01-02T03:04:05Z")}
    return {f.name: given.get(f.name, None if f.nullable else zero.get(str(f.type), 0)) for f in SCHEMAS["cells"]}


def add(results: Path, name: str, iops: float) -> None:
    with whole_folder(results / "tables" / name) as folder:
        cells = pd.DataFrame([row(drive=name.split("/")[0], recording=name, iops=iops)])
        io.write(cells, folder / "cells.parquet", "cells")
        io.write(SCHEMAS["findings"].empty_table(), folder / "findings.parquet", "findings")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name, iops in RECORDINGS.items():
        add(tmp_path, name, iops)
    with whole_folder(tmp_path / "dataset") as folder:
        datasets.write_datasets(tmp_path, folder)
    return tmp_path


def test_other_programs_read_a_folder(results: Path) -> None:
    assert [path.name for path in (results / "dataset").glob("[!_]*")] == ["cells"], "only tables with rows"
    expected = {"op7": 30.0, "op28@rack": 30.0}
    cells = pd.read_parquet(results / "dataset/cells")
    assert cells.groupby("drive", observed=True)["iops"].sum().to_dict() == expected
    assert set(cells.columns) == set(SCHEMAS["cells"].names)
    sums = pl.read_parquet(results / "dataset/cells").group_by("drive").agg(pl.col("iops").sum())
    assert dict(sums.iter_rows()) == expected
    sql = f"SELECT drive, sum(iops) FROM read_parquet('{results}/dataset/cells/**/*.parquet') GROUP BY 1"
    assert dict(duckdb.sql(sql).fetchall()) == expected


def test_a_query_reads_the_datasets_only_while_they_are_current(results: Path) -> None:
    sql = "SELECT drive, recording, iops FROM cells ORDER BY recording"
    expected = [(name.split("/")[0], name, iops) for name, iops in sorted(RECORDINGS.items())]

    def answer() -> list[tuple[object, ...]]:
        return [tuple(line.values()) for line in query(open_results(results), sql).to_pylist()]

    assert [path.name for path in map(Path, open_results(results).datasets["cells"].files)] == ["part.parquet"] * 2
    assert answer() == expected
    assert query(open_results(results), "SELECT * FROM findings").num_rows == 0
    add(results, "op7/test/0-run2", 25.0)
    assert answer()[1] == ("op7", "op7/test/0-run1", 10.0)
    assert answer()[2] == ("op7", "op7/test/0-run2", 25.0)
    (results / "dataset/_made.json").write_text("{")
    assert answer()[2][2] == 25.0


def test_a_changed_table_is_refused(results: Path, tmp_path: Path) -> None:
    change(results / "dataset/cells/drive=op7/part.parquet")
    with pytest.raises(UserError, match=r"drive=op7.*was changed after drivelab wrote it"):
        open_results(results)
    change(results / "tables/op7/test/0-run1/cells.parquet")
    with pytest.raises(UserError, match="was changed after drivelab wrote it"):
        datasets.write_datasets(results, tmp_path / "new")


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
