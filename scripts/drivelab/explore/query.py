"""Run SQL over the tables of a results folder.

Queries cannot change anything or read other files.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import signal
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from drivelab.core.errors import UserError
from drivelab.core.termination import deferred, end_with
from drivelab.core.units import format_duration
from drivelab.tables import io
from drivelab.tables.datasets import joined
from drivelab.tables.schemas import SCHEMAS, VERSION

_ALLOWED = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
"""DuckDB parses DESCRIBE, SHOW and SUMMARIZE as SELECT."""
_CONFIG: Mapping[str, Any] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,  # a name is a table, never a Python variable
    "lock_configuration": True,
    "temp_directory": "",  # refuse what does not fit into memory, instead of writing a file
}
_SHARE_OF_MEMORY = 0.5
"""Largest share of memory for a query: the rest is for other programs, such as a measurement."""
_BATCH_ROWS = 100_000


@dataclass(frozen=True)
class Results:
    """The tables of a results folder; each combines the files of all recordings."""

    datasets: Mapping[str, ds.Dataset]
    outdated: int
    """Number of files left out because another version wrote them."""


def open_results(folder: Path, names: Collection[str] | None = None) -> Results:
    """Return the tables below `folder`, or those in `names`.

    Raises UserError if there are none, or if one was changed. A table without files is empty.
    """
    root = folder / "tables"
    if not root.is_dir():
        raise UserError(f"{folder} has no tables of a study; name a study's results folder with --results")
    files: dict[str, list[str]] = {name: [] for name in SCHEMAS if names is None or name in names}
    of_recordings = joined(folder)
    outdated = of_recordings.outdated if of_recordings else 0
    for path in of_recordings.files if of_recordings else ():
        if (name := path.parents[1].name) in files:
            with io.opened(path):  # refuses a changed file
                files[name].append(str(path))
    others = chain(root.glob("*.parquet"), root.glob("traces/*/*.parquet"))
    for path in sorted(others if of_recordings else root.rglob("*.parquet")):
        if path.stem in files and not any(part.startswith(".") for part in path.relative_to(root).parts):
            if io.version_of(path) == VERSION:
                files[path.stem].append(str(path))
            else:
                outdated += 1
    datasets = {
        name: ds.dataset(paths, schema=SCHEMAS[name], partitioning="hive")
        if paths
        else ds.dataset(SCHEMAS[name].empty_table())
        for name, paths in files.items()
    }
    return Results(datasets, outdated)


def query(results: Results, sql: str, most_bytes: int | None = None, time_limit_s: float = 300) -> pa.Table:
    """Return the result of one statement that only reads.

    The computation and the result may take `most_bytes` of memory each; None means half of the machine's memory for
    both together. Raises UserError for a statement that writes or is not valid SQL, and for one that exceeds memory or
    `time_limit_s`. Raises KeyboardInterrupt if a signal handler does.
    """
    limit_bytes = most_bytes or int(_SHARE_OF_MEMORY / 2 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    _require_reading(sql)
    # DuckDB checks for an interrupt only between the rows of a chunk, and one call of levenshtein() may take hours. A
    # process can always be killed.
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    process = fork.Process(target=_carry_out, args=(results, sql, limit_bytes, theirs, os.getpid()), daemon=True)
    try:
        with deferred():  # until the other process has its own handlers
            process.start()
        theirs.close()
        if not ours.poll(time_limit_s):
            raise UserError(
                f"the query exceeds its time limit of {format_duration(time_limit_s)}; query less, for instance with "
                "WHERE or LIMIT, or allow more time with --time-limit"
            )
        answer = ours.recv()
    except EOFError:
        process.join()
        raise UserError(
            f"the query's process was killed (status {process.exitcode}), perhaps because memory ran out; query less, "
            "for instance with WHERE or LIMIT"
        ) from None
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
            process.close()
        ours.close()
    if isinstance(answer, UserError):
        raise answer
    table: pa.Table = answer
    return table


def _require_reading(sql: str) -> None:
    """Raise UserError unless the text is one statement that only reads."""
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise UserError(f"the query is not valid SQL: {_first_line(error)}; correct it") from None
    if len(statements) != 1:
        raise UserError(f"the query has {len(statements)} statements; give one")
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN and re.search(r"\bANALY[SZ]E\b", sql, re.IGNORECASE):
        raise UserError("EXPLAIN ANALYZE is not allowed, because it runs the statement; use EXPLAIN without ANALYZE")
    if kind == duckdb.StatementType.MULTI:  # which creates a type from the values that it finds
        raise UserError("a PIVOT needs a list of its values, because tables are read-only; list them with IN (…)")
    if kind not in _ALLOWED:
        raise UserError(
            f"{kind.name} is not allowed, because tables are read-only; use SELECT, PIVOT, EXPLAIN, DESCRIBE, SHOW or "
            "SUMMARIZE"
        )


def _carry_out(results: Results, sql: str, most_bytes: int, connection: Connection, parent: int) -> None:
    """Send the result, or the UserError why there is none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the waiting process handles Ctrl-C and kills this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
    try:
        with duckdb.connect(":memory:", config={**_CONFIG, "memory_limit": f"{most_bytes}B"}) as database:
            for name, dataset in results.datasets.items():
                database.register(name, dataset)
            answer = _answer(database, sql, most_bytes)
        connection.send(answer)
    except (duckdb.OutOfMemoryException, MemoryError):
        connection.send(UserError(
            f"the query exceeds its memory limit of {most_bytes / 2**20:.0f} MiB; query less, for instance with WHERE "
            "or LIMIT"))  # fmt: skip
    except duckdb.Error as error:
        connection.send(UserError(f"the query failed: {_first_line(error)}; 'drivelab query' without arguments lists "
                                  "the tables, and with the name of one its columns"))  # fmt: skip


def _answer(database: duckdb.DuckDBPyConnection, sql: str, most_bytes: int) -> pa.Table:
    """Return the result; raises MemoryError if it exceeds `most_bytes`, which DuckDB's own limit does not cover."""
    reader, batches, taken_bytes = database.sql(sql).to_arrow_reader(_BATCH_ROWS), [], 0
    for batch in reader:
        batches.append(batch)
        if (taken_bytes := taken_bytes + batch.nbytes) > most_bytes:
            raise MemoryError
    return pa.Table.from_batches(batches, reader.schema)


def named_in(sql: str) -> set[str] | None:
    """Return the tables that a statement names. The result is None for SHOW, which needs all tables."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    return None if "show" in words or "information_schema" in words else words & set(SCHEMAS)


def columns(results: Results) -> list[tuple[str, int, list[tuple[str, str]]]]:
    """Return each table with its number of rows, and names and types of its columns."""
    return [
        (name, dataset.count_rows(),
         [(field.name, f"{field.type}{'' if field.nullable else ', never null'}") for field in dataset.schema])
        for name, dataset in results.datasets.items()
    ]  # fmt: skip


def records(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows for JSON: times as text, None for NaN and infinity."""
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value if value is None or isinstance(value, str | bool | int) else str(value)


def _first_line(error: duckdb.Error) -> str:
    return str(error).split("\n")[0].strip()


class Question(NamedTuple):
    """A question, the table that must have rows, and the statement that answers it."""

    words: str
    table: str
    sql: str


QUESTIONS = tuple(Question(*entry) for entry in (
    ("How fast is each drive at each workload?", "summary",
     "SELECT drive, measurement, cell_label, metric, value, unit, n, verdict FROM summary "
     "WHERE metric IN ('iops', 'bandwidth_mib_s', 'duration_s') ORDER BY measurement, cell_label, metric, drive"),
    ("Which drive is faster at what, and how sure is that?", "deltas",
     "SELECT comparison, basis, cell_label, metric, delta_pct, interval_low_pct, interval_high_pct, verdict "
     "FROM deltas ORDER BY abs(delta_pct) DESC"),
    ("Which differences have no verdict, and why?", "deltas",
     "SELECT comparison, cell_label, metric, verdict, doubts FROM deltas WHERE len(doubts) > 0"),
    ("What are the tails of the latency?", "summary",
     "SELECT drive, measurement, cell_label, metric, value AS latency_us, n FROM summary "
     "WHERE metric LIKE 'p9%_latency_us' ORDER BY measurement, cell_label, metric, drive"),
    ("Which loops reached steady state, and after how many rounds?", "steady_state",
     "SELECT drive, measurement, run, variable, metric, reached, rounds, window_start, window_end, "
     "measured_data_excursion, measured_slope_excursion FROM steady_state ORDER BY drive, measurement, run"),
    ("How large is the difference between runs of the same measurement?", "summary",
     "SELECT drive, measurement, cell_label, metric, n, rse_pct FROM summary "
     "WHERE n > 1 AND metric IN ('iops', 'bandwidth_mib_s') ORDER BY rse_pct DESC"),
    ("Which cells were disturbed, and by what?", "cells",
     "SELECT recording, cell_label, count(*) AS cells, any_value(taint_reason) AS reason FROM cells "
     "WHERE tainted GROUP BY ALL ORDER BY cells DESC"),
    ("What was left out of the results, and why?", "exclusions",
     "SELECT fault, count(*) AS places, any_value(words) AS example FROM exclusions GROUP BY fault "
     "ORDER BY places DESC"),
    ("How warm did each drive get, and did it slow down?", "telemetry",
     "SELECT drive, measurement, max(temperature_c) AS hottest_c, min(temperature_limit_c) AS limit_c, "
     "max(thermal_1_transitions) AS thermal_transitions FROM telemetry GROUP BY ALL ORDER BY hottest_c DESC"),
    ("What do the detectors say about the drives?", "findings",
     "SELECT drive, measurement, detector, words FROM findings WHERE found ORDER BY drive, measurement"),
    ("Which cells did the host limit, and how?", "cells",
     "SELECT recording, cell_label, count(*) AS cells, avg(iops) AS iops, any_value(host_limit) AS reason "
     "FROM cells WHERE host_limit IS NOT NULL GROUP BY ALL ORDER BY cells DESC"),
))  # fmt: skip
"""Ready questions in SQL, which `drivelab query NUMBER` answers."""
