"""`drivelab query`: run SQL on the tables of a study."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.core.errors import UserError, suggestion
from drivelab.core.terminal import print_json, print_table, unescaped, visible
from drivelab.core.units import parse_duration

if TYPE_CHECKING:
    import pyarrow as pa

    from drivelab.explore.query import Results


_MOST_ROWS = 1000
"""Rows shown on the terminal: laying out a hundred thousand takes minutes."""

_LONGEST_S = 7 * 86400
"""poll(2) counts milliseconds in 31 bits."""


def add_parser(commands: Any) -> None:
    """Register `query`."""
    parser = commands.add_parser(
        "query",
        help="query the tables of a study in SQL",
        description="Runs one SQL statement (DuckDB) on the tables of a results folder. Each table spans all "
        "recordings. A query cannot change data. Without a statement, lists the filled tables and ten ready questions; "
        "their numbers answer them, and the name of a table lists its columns.",
    )
    parser.add_argument(
        "sql", nargs="?", metavar="SQL", help='such as "SELECT drive, value FROM summary"; or a table, or a number'
    )
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="results folder of a study"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", dest="form", action="store_const", const="csv", help="print all rows as CSV")
    form.add_argument("--json", dest="form", action="store_const", const="json", help="print all rows as JSON")
    parser.add_argument(
        "--time-limit", default="5min", metavar="TIME", help="longest time for the query (default: 5min)"
    )
    parser.set_defaults(handler=_query, form="table")


def _query(options: argparse.Namespace) -> int:
    from drivelab.explore.query import named_in, open_results, query

    time_limit_s = parse_duration(options.time_limit)
    if time_limit_s > _LONGEST_S:
        raise UserError(f"--time-limit {options.time_limit} is too long; give at most 7d")
    sql = _statement(options.sql)
    results = open_results(options.results, None if sql is None else named_in(sql))
    if results.outdated:
        print(
            f"drivelab: {results.outdated} files of another version are left out; run 'drivelab run' to rebuild them",
            file=sys.stderr,
        )
    if sql is None:
        _list(results, options.form)
    else:
        if sql != options.sql and options.form == "table":
            print(f"{sql}\n")
        _show(query(results, sql, time_limit_s=time_limit_s), options.form)
    return 0


def _statement(text: str | None) -> str | None:
    """Return the SQL that the user means: a statement, the number of a ready question, or a table to describe."""
    from drivelab.explore.query import QUESTIONS
    from drivelab.tables.schemas import SCHEMAS

    if text is not None and text.isdecimal():
        if not 1 <= int(text) <= len(QUESTIONS):
            raise UserError(f"there is no question {text}; choose one of 1 to {len(QUESTIONS)}")
        return QUESTIONS[int(text) - 1].sql
    if text is not None and text.isidentifier() and text not in SCHEMAS:
        raise UserError(f"there is no table '{text}'; {suggestion(text, SCHEMAS)}")
    return f"DESCRIBE {text}" if text in SCHEMAS else text


def _list(results: Results, form: str) -> None:
    import pyarrow as pa

    from drivelab.explore.query import QUESTIONS, columns

    tables = columns(results)
    if form != "table":
        entries = [(name, column, kind) for name, _, fields in tables for column, kind in fields]
        _show(pa.table(dict(zip(("table", "column", "type"), zip(*entries, strict=True), strict=True))), form)
        return
    filled = {name: rows for name, rows, _ in tables if rows}
    print("Tables with rows; 'drivelab query TABLE' lists the columns of one:")
    print_table(
        ("", "", ""), [(f"  {name}", f"{rows:>10,}", "row" if rows == 1 else "rows") for name, rows in filled.items()]
    )
    print(f"The other {len(tables) - len(filled)} are empty.")
    print("\nReady questions; 'drivelab query NUMBER' answers one, and prints its SQL:")
    for number, question in enumerate(QUESTIONS, start=1):
        print(f"  {number:>2}  {question.words}{'' if question.table in filled else ' (no rows)'}")


def _show(table: pa.Table, form: str) -> None:
    from pyarrow.types import is_floating, is_integer

    from drivelab.explore.query import records

    if form == "json":
        print_json(records(table))
    elif form == "csv":
        # A program that reads the output gets every character unescaped.
        output = sys.stdout if sys.stdout.isatty() else unescaped(sys.stdout)
        csv.writer(output, lineterminator="\n").writerows([table.column_names, *_rows(table)])
    else:
        names = [visible(name) for name in table.column_names]
        kinds = zip(names, table.schema.types, strict=True)
        right = {name for name, kind in kinds if is_floating(kind) or is_integer(kind)}
        print_table(
            names, ([visible(_text(value)) for value in row] for row in _rows(table.slice(0, _MOST_ROWS))), right
        )
        note = f", the first {_MOST_ROWS:,} shown; --csv prints all" if table.num_rows > _MOST_ROWS else ""
        print(f"({table.num_rows:,} row{'' if table.num_rows == 1 else 's'}{note})")


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.7g}"
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)
