"""SQL over the tables of a results folder; nothing can be changed, and no other file read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from drivelab.errors import UserError
from drivelab.tables.io import METADATA_KEY
from drivelab.tables.schemas import SCHEMAS, VERSION

_ALLOWED = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
"""DESCRIBE, SHOW and SUMMARIZE are SELECT to DuckDB."""
_CONFIG: Mapping[str, Any] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # a name is a table, never a variable of this program
    "lock_configuration": True,
}


@dataclass(frozen=True)
class Results:
    """The tables of a results folder, each as one: files of all recordings together."""

    datasets: Mapping[str, ds.Dataset]
    outdated: int
    """Files that are left out because they were written by another version."""


def open_results(folder: Path, names: Collection[str] | None = None) -> Results:
    """The tables below `folder`, or those of them in `names`; raises UserError where there is none.

    A table that no file is there of is empty.
    """
    root = folder / "tables"
    if not root.is_dir():
        raise UserError(f"{folder}: holds no tables; name a study's results folder with --results")
    files: dict[str, list[str]] = {name: [] for name in SCHEMAS if names is None or name in names}
    outdated = 0
    for path in sorted(root.rglob("*.parquet")):
        if path.stem in files and not path.name.startswith("."):
            if _version(path) == VERSION:
                files[path.stem].append(str(path))
            else:
                outdated += 1
    return Results({name: _dataset(name, paths) for name, paths in files.items()}, outdated)


def query(results: Results, sql: str) -> pa.Table:
    """The answer to one statement that only reads; raises UserError for any other and for what SQL makes no sense."""
    with duckdb.connect(":memory:", config=dict(_CONFIG)) as connection:
        try:
            statements = duckdb.extract_statements(sql)
        except duckdb.Error as error:
            raise UserError(f"the query is no SQL: {_first_line(error)}; correct it") from None
        if len(statements) != 1:
            raise UserError(f"the query has {len(statements)} statements; give one")
        if statements[0].type not in _ALLOWED or _executes(sql):
            raise UserError(
                f"{statements[0].type.name} is not allowed, tables are read only; use SELECT, EXPLAIN, DESCRIBE, SHOW "
                "or SUMMARIZE"
            )
        for name, dataset in results.datasets.items():
            connection.register(name, dataset)
        try:
            return connection.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise UserError(f"the query cannot be answered: {_first_line(error)}; 'drivelab query' alone lists all "
                            "tables and columns") from None  # fmt: skip


def named_in(sql: str) -> set[str] | None:
    """Tables that a statement may be about: those whose names stand in it; None for SHOW, which is about all."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return None if "show" in words or "information_schema" in words else words & set(SCHEMAS)


def columns(results: Results) -> list[tuple[str, int, list[tuple[str, str]]]]:
    """Each table with its number of rows, and names and types of its columns."""
    return [
        (name, dataset.count_rows(), [(field.name, _type(field)) for field in dataset.schema])
        for name, dataset in results.datasets.items()
    ]


def records(table: pa.Table) -> list[dict[str, Any]]:
    """Rows for JSON: times as text, and null for what is no number."""
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if value is None or isinstance(value, str | bool | int) else str(value)


def _executes(sql: str) -> bool:
    """EXPLAIN ANALYZE carries out what it explains."""
    return duckdb.extract_statements(sql)[0].type == duckdb.StatementType.EXPLAIN and bool(
        re.search(r"\banaly[sz]e\b", sql, re.IGNORECASE)
    )


def _dataset(name: str, paths: list[str]) -> ds.Dataset:
    schema = SCHEMAS[name]
    return ds.dataset(paths, schema=schema, format="parquet") if paths else ds.dataset(schema.empty_table())


def _version(path: Path) -> int | None:
    try:
        mark = (pq.read_schema(path).metadata or {}).get(METADATA_KEY, b"{}")
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: cannot be read as Parquet ({error}); delete it and run again") from None
    found = json.loads(mark)
    return found.get("version") if found.get("table") == path.stem else None


def _type(field: pa.Field) -> str:
    return f"{field.type}{'' if field.nullable else ', never null'}"


def _first_line(error: duckdb.Error) -> str:
    return str(error).split("\n")[0].strip()
