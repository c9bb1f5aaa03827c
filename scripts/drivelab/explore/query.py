"""SQL over the tables of a results folder; nothing can be changed, and no other file read."""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from drivelab.errors import UserError
from drivelab.recording.places import homes
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
    "temp_directory": "",  # what does not fit into memory is refused, and nothing written
}
_SHARE_OF_MEMORY = 0.5
"""What a query may take at the most: the rest is for what else runs here, a measurement for instance."""
_BATCH_ROWS = 100_000
_INTERRUPT_AGAIN_S = 0.1
_COMMENTS = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Results:
    """The tables of a results folder, each as one: files of all recordings together."""

    datasets: Mapping[str, ds.Dataset]
    outdated: int
    """Files that are left out because they were written by another version."""


def open_results(folder: Path, names: Collection[str] | None = None) -> Results:
    """The tables below `folder`, or those of them in `names`; raises UserError where there is none.

    Of a fleet those of its drives, too. A table that no file is there of is empty.
    """
    roots = [root for one in homes(folder) if (root := one / "tables").is_dir()]
    if not roots:
        raise UserError(f"{folder}: holds no tables; name a study's results folder with --results")
    files: dict[str, list[str]] = {name: [] for name in SCHEMAS if names is None or name in names}
    outdated = 0
    for path in (path for root in roots for path in sorted(root.rglob("*.parquet"))):
        if path.stem in files and not path.name.startswith("."):
            if _version(path) == VERSION:
                files[path.stem].append(str(path))
            else:
                outdated += 1
    return Results({name: _dataset(name, paths) for name, paths in files.items()}, outdated)


def query(results: Results, sql: str, most_bytes: int | None = None) -> pa.Table:
    """The answer to one statement that only reads; raises UserError for any other and for what SQL makes no sense.

    What is computed, and the answer, take `most_bytes` of memory each, half of the machine's together if it is None;
    what takes more is refused. Raises KeyboardInterrupt when a signal's handler did so meanwhile.
    """
    limit_bytes = most_bytes or int(_SHARE_OF_MEMORY / 2 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with duckdb.connect(":memory:", config={**_CONFIG, "memory_limit": f"{limit_bytes}B"}) as connection:
        try:
            statements = duckdb.extract_statements(sql)
        except duckdb.Error as error:
            raise UserError(f"the query is no SQL: {_first_line(error)}; correct it") from None
        if len(statements) != 1:
            raise UserError(f"the query has {len(statements)} statements; give one")
        if _executes(sql):
            raise UserError(
                "EXPLAIN ANALYZE is not allowed, it carries out what it explains; use EXPLAIN without ANALYZE"
            )
        if statements[0].type not in _ALLOWED:
            raise UserError(
                f"{_named(statements[0], sql)} is not allowed, tables are read only; use SELECT, EXPLAIN, DESCRIBE, "
                "SHOW or SUMMARIZE"
            )
        for name, dataset in results.datasets.items():
            connection.register(name, dataset)
        try:
            return _interruptible(connection, lambda: _answer(connection, sql, limit_bytes))
        except (duckdb.OutOfMemoryException, MemoryError):
            raise UserError(
                f"the query takes more memory than the {limit_bytes / 2**20:.0f} MiB that it may; ask for less, for "
                "instance with WHERE or LIMIT"
            ) from None
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


def _interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], pa.Table]) -> pa.Table:
    """What `work` returns or raises. DuckDB heeds no signal while it hands out batches: so the work has a thread of its
    own, and this one is free to be interrupted."""
    future: Future[pa.Table] = Future()

    def carry_out() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=carry_out, daemon=True)
    try:
        thread.start()
        return future.result()
    except BaseException:
        while thread.is_alive():  # again, as it is lost where the query is only about to begin
            connection.interrupt()
            thread.join(_INTERRUPT_AGAIN_S)
        raise


def _answer(connection: duckdb.DuckDBPyConnection, sql: str, most_bytes: int) -> pa.Table:
    """All rows; MemoryError as soon as they take more, as DuckDB's own limit is not for what it hands out."""
    reader = connection.sql(sql).to_arrow_reader(_BATCH_ROWS)
    batches, taken_bytes = [], 0
    for batch in reader:
        taken_bytes += batch.nbytes
        if taken_bytes > most_bytes:
            raise MemoryError
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


def _named(statement: duckdb.Statement, sql: str) -> str:
    """What a statement is called: INSTALL and LOAD are one to DuckDB."""
    if statement.type != duckdb.StatementType.LOAD:
        return str(statement.type.name)
    return _COMMENTS.sub(" ", sql).split()[0].upper()


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
