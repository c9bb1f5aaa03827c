"""SQL over the tables of a results folder; nothing can be changed, and no other file read."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import re
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from drivelab.errors import UserError
from drivelab.forks import end_with
from drivelab.recording.places import homes
from drivelab.tables.io import METADATA_KEY
from drivelab.tables.schemas import SCHEMAS, VERSION
from drivelab.termination import deferred
from drivelab.units import format_duration

_ALLOWED = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
"""DESCRIBE, SHOW and SUMMARIZE are SELECT to DuckDB."""
_PIVOTING = ("PIVOT", "PIVOT_WIDER", "SELECT", "FROM", "WITH", "DESCRIBE", "SUMMARIZE", "(")
"""First words of a PIVOT that only reads. Without an IN list, PIVOT is two statements to DuckDB (MULTI):
it makes a type of the values that it finds, in its own memory, and selects with it."""
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
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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


def query(results: Results, sql: str, most_bytes: int | None = None, time_limit_s: float = 300) -> pa.Table:
    """Return the answer to one statement that only reads.

    What is computed, and the answer, take `most_bytes` of memory each, half of the machine's together if it is None.
    Raises UserError for a statement that writes or is no SQL, and for one that takes more memory or time; raises
    KeyboardInterrupt when a signal's handler did so meanwhile.
    """
    limit_bytes = most_bytes or int(_SHARE_OF_MEMORY / 2 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    _require_reading(sql)
    # DuckDB heeds an interrupt only between the rows of a chunk: one call of levenshtein() may take hours. A process
    # can always be ended.
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_carry_out, args=(results, sql, limit_bytes, theirs, os.getpid()), daemon=True)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until each process has its own handlers
    try:
        with (
            deferred()
        ):  # the mask is of one thread, and a signal may reach any: then Python still runs the handler here
            process.start()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        schema, *batches = _received(ours, limit_bytes, time_limit_s)
        return pa.Table.from_batches(batches, schema)
    except EOFError:
        process.join()
        raise UserError(
            f"the query's process was ended from outside (status {process.exitcode}), perhaps as memory ran out; ask "
            "for less, for instance with WHERE or LIMIT"
        ) from None
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
            process.close()
        ours.close()


def _require_reading(sql: str) -> None:
    """Raise UserError unless the text is one statement that only reads."""
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise UserError(f"the query is no SQL: {_first_line(error)}; correct it") from None
    if len(statements) != 1:
        raise UserError(f"the query has {len(statements)} statements; give one")
    words = _words(sql)
    if words[0] == "EXPLAIN" and {"ANALYZE", "ANALYSE"} & set(words):
        raise UserError("EXPLAIN ANALYZE is not allowed, it carries out what it explains; use EXPLAIN without ANALYZE")
    kind = statements[0].type
    if kind == duckdb.StatementType.MULTI and words[0] == "EXPLAIN":
        raise UserError(
            "EXPLAIN of a PIVOT needs a list of values, because DuckDB would read the tables for it; "
            "name the values with IN (…)"
        )
    if kind not in _ALLOWED and not (kind == duckdb.StatementType.MULTI and words[0] in _PIVOTING):
        # INSTALL and LOAD are one to DuckDB, and whatever has a PIVOT in it.
        is_vague = kind in (duckdb.StatementType.LOAD, duckdb.StatementType.MULTI)
        raise UserError(
            f"{words[0] if is_vague else kind.name} is not allowed, tables are read only; use SELECT, PIVOT, EXPLAIN, "
            "DESCRIBE, SHOW or SUMMARIZE"
        )


def _words(sql: str) -> list[str]:
    """Return the words and signs of a statement in capitals, without comments."""
    tokens = duckdb.tokenize(sql)
    ends = [place for place, _ in tokens[1:]] + [len(sql.encode())]
    text = sql.encode()  # places are in bytes
    return [
        text[place:end].decode(errors="replace").strip().upper()
        for (place, kind), end in zip(tokens, ends, strict=True)
        if kind != duckdb.token_type.comment
    ]


def _received(connection: Connection, most_bytes: int, time_limit_s: float) -> Iterator[Any]:
    """Yield schema and batches as the other process sends them; raise UserError for what it complains of."""
    deadline_s, taken_bytes = time.monotonic() + time_limit_s, 0
    while connection.poll(max(deadline_s - time.monotonic(), 0)):
        message = connection.recv()
        if message is None:
            return
        if isinstance(message, UserError):
            raise message
        taken_bytes += message.nbytes if isinstance(message, pa.RecordBatch) else 0
        if taken_bytes > most_bytes:
            raise _too_large(most_bytes)
        yield message
    raise UserError(
        f"the query took longer than its limit of {format_duration(time_limit_s)}; ask for less, for instance with "
        "WHERE or LIMIT, or allow more time with --time-limit"
    )


def _carry_out(results: Results, sql: str, most_bytes: int, connection: Connection, parent: int) -> None:
    """Send schema, batches and None, or the UserError that says why there is no answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits, which ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    end_with(parent)
    try:
        with duckdb.connect(":memory:", config={**_CONFIG, "memory_limit": f"{most_bytes}B"}) as database:
            for name, dataset in results.datasets.items():
                database.register(name, dataset)
            for message in _answer(database, sql):
                connection.send(message)
            connection.send(None)
    except (duckdb.OutOfMemoryException, MemoryError):
        connection.send(_too_large(most_bytes))
    except duckdb.Error as error:
        connection.send(UserError(f"the query cannot be answered: {_first_line(error)}; 'drivelab query' alone lists "
                                  "all tables and columns"))  # fmt: skip


def _answer(database: duckdb.DuckDBPyConnection, sql: str) -> Iterator[pa.Schema | pa.RecordBatch]:
    reader = database.sql(sql).to_arrow_reader(_BATCH_ROWS)
    yield reader.schema
    yield from reader


def _too_large(most_bytes: int) -> UserError:
    return UserError(
        f"the query takes more memory than its limit of {most_bytes / 2**20:.0f} MiB; ask for less, for instance with "
        "WHERE or LIMIT"
    )


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
