"""Query tables on disk with SQL: correct results, and no side effects."""

from __future__ import annotations

import csv
import io as text_io
import json
import multiprocessing
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.explore.query import QUESTIONS, Results, columns, open_results, query
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write cells of two recordings, and the table of drives; no test changes them."""
    folder = tmp_path_factory.mktemp("query") / "results"
    for drive, values in (("op7", [10.0, 20.0]), ("op28", [30.0])):
        rows = [_row("cells", drive=drive, recording=f"{drive}/test/0-run1", iops=iops) for iops in values]
        io.write(pd.DataFrame(rows), folder / f"tables/{drive}/test/0-run1/cells.parquet", "cells")
    io.write(pd.DataFrame([_row("drives", drive="op7")]), folder / "tables/drives.parquet", "drives")
    for name in ("secret", "secret.csv"):
        (folder.parent / name).write_text("a,b\n1,2\n")
    return folder


@pytest.fixture(scope="module")
def opened(results: Path) -> Results:
    return open_results(results)


OPEN = "PIVOT (SELECT drive, iops FROM cells) ON drive USING max(iops)"
PIVOT = OPEN.replace("ON drive", "ON drive IN ('op7', 'op28')")


def _row(table: str, **given: object) -> dict[str, object]:
    zero = {"string": "", "bool": False, "timestamp[ms, tz=UTC]": pd.Timestamp("2026-01-02T03:04:05Z")}
    return {f.name: given.get(f.name, None if f.nullable else zero.get(str(f.type), 0)) for f in SCHEMAS[table]}


def test_files_of_all_recordings_are_one_table(opened: Results) -> None:
    answer = query(opened, "SELECT drive, sum(iops) AS s FROM cells GROUP BY drive ORDER BY drive")
    assert answer.to_pylist() == [{"drive": "op28", "s": 30.0}, {"drive": "op7", "s": 30.0}]
    joined = "SELECT count(*) AS n FROM cells JOIN drives USING (drive)"
    assert query(opened, joined).to_pylist() == [{"n": 2}]
    assert query(opened, "SELECT * FROM findings").num_rows == 0, "a table without files"


@pytest.mark.parametrize("sql", ["DESCRIBE cells", "SHOW TABLES", "SUMMARIZE cells", "EXPLAIN SELECT 1", "FROM cells"])
def test_statements_that_only_read_are_allowed(opened: Results, sql: str) -> None:
    assert query(opened, sql).num_rows > 0


REFUSED = {
    "^INSERT is not allowed": ["INSERT INTO cells VALUES (1)", f"INSERT INTO cells {PIVOT}"],
    "^CREATE is not allowed": ["CREATE TABLE x AS SELECT 1", f"CREATE TABLE z AS {PIVOT}",
                               f"/* /* */ SELECT */ CREATE TABLE z AS {PIVOT}"],
    "^DROP is not allowed": ["DROP VIEW cells"],
    "^COPY is not allowed": ["COPY (SELECT 1) TO '{folder}/made'", f"COPY ({PIVOT}) TO '{{folder}}/made'"],
    "^ATTACH is not allowed": ["ATTACH '{folder}/made'"],
    "^SET is not allowed": ["SET enable_external_access = true"],
    "^PRAGMA is not allowed": ["PRAGMA database_list"],
    "^LOAD is not allowed": ["INSTALL httpfs", "/* so */ load httpfs"],
    "^EXPLAIN ANALYZE is not allowed, .*use EXPLAIN without ANALYZE": [
        "EXPLAIN ANALYZE SELECT 1", "/* so */ EXPLAIN (ANALYZE) SELECT 1", f"EXPLAIN ANALYZE {PIVOT}",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/made'"],
    "has 2 statements": ["SELECT 1; SELECT 2", f"{PIVOT}; DROP VIEW cells"],
    "has 0 statements": [""],
    "is not valid SQL": ["SELEC 1"],
    "the query failed": ["SELECT nothing FROM cells", "SELECT * FROM nowhere", "SELECT * FROM results",
                         "SELECT * FROM read_text('{folder}/secret')", "SELECT * FROM '{folder}/secret.csv'"],
    "the query failed: Permission": [PIVOT.replace("cells", "read_csv('/etc/passwd')")],
    "^a PIVOT needs a list of its values, .* list them with IN": [
        OPEN, f"EXPLAIN {OPEN}", f"CREATE TABLE z AS {OPEN}", f"COPY ({OPEN}) TO '{{folder}}/made'"],
}  # fmt: skip


@pytest.mark.parametrize(("sql", "words"), [(sql, words) for words, of_words in REFUSED.items() for sql in of_words])
def test_other_statements_are_refused(results: Path, opened: Results, sql: str, words: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in results.parent.rglob("*")}
    with pytest.raises(UserError, match=words) as caught:
        query(opened, sql.format(folder=results.parent))
    assert "\n" not in str(caught.value)
    assert {path: path.stat().st_mtime_ns for path in results.parent.rglob("*")} == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT range, hash(range) AS h FROM range(20000000) ORDER BY h",  # too large to compute
        "SELECT range FROM range(20000000)",  # too large to return
    ],
)
def test_a_query_over_the_memory_limit_is_refused(results: Path, opened: Results, sql: str) -> None:
    before = set(results.parent.rglob("*")) | set(Path.cwd().iterdir())
    with pytest.raises(UserError, match="exceeds its memory limit of 64 MiB; query less"):
        query(opened, sql, most_bytes=2**26)
    assert set(results.parent.rglob("*")) | set(Path.cwd().iterdir()) == before, "nothing is written to disk instead"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_query_without_a_traceback(results: Path, number: signal.Signals) -> None:
    endless = "SELECT count(*) AS n FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3"
    program = (
        "import sys; from drivelab.cli.main import main; from drivelab.explore import query as module\n"
        "answer = module._answer\n"
        "def say(*arguments):\n"
        "    print('started', flush=True)\n"
        "    return answer(*arguments)\n"
        "module._answer = say\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "query", endless, "--results", str(results)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(number)
        _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.startswith("drivelab: interrupted")
    assert "Traceback" not in errors


ENDLESS = {
    "between rows": "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range * b.range % 7 = 3",
    "within a function": "SELECT levenshtein(repeat('a', 3000000), repeat('b', 3000000))",
    "recursive": "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i % 7 + 1 FROM r) SELECT count(*) FROM r",
}


@pytest.mark.parametrize("sql", ENDLESS.values(), ids=ENDLESS)
def test_a_query_over_the_time_limit_is_refused(results: Path, capsys: pytest.CaptureFixture[str], sql: str) -> None:
    assert main(["query", sql, "--results", str(results), "--time-limit", "300ms"]) == 2
    assert re.search("exceeds its time limit of .*; query less, .*--time-limit", capsys.readouterr().err)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("limit", ["0s", "soon", "5", "8d", "1e9d"])
def test_an_invalid_time_limit_is_refused(results: Path, capsys: pytest.CaptureFixture[str], limit: str) -> None:
    assert main(["query", "SELECT 1", "--results", str(results), "--time-limit", limit]) == 2
    assert capsys.readouterr().err.startswith("drivelab: ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_a_function_that_duckdb_does_not_interrupt(results: Path, number: signal.Signals) -> None:
    program = "import sys; from drivelab.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "query", ENDLESS["within a function"], "--results", str(results)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (children := _children(process.pid)):
            assert process.poll() is None
        descriptors = [os.pidfd_open(child) for child in children]
        process.send_signal(number)
        _, errors = process.communicate()
    expected = {signal.SIGINT: (130, "drivelab: interrupted; "), signal.SIGKILL: (-signal.SIGKILL, "")}
    assert (process.returncode, errors[:23]) == expected[number]
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], 60)[0], "the query's process still runs"
        os.close(descriptor)


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


@pytest.mark.parametrize("form", ["{}", "/* a */ {} -- b", "({})", "FROM ({})", "WITH p AS ({}) SELECT * FROM p",
                                  "DESCRIBE {}", "SUMMARIZE ({})"])  # fmt: skip
def test_pivot_reads(opened: Results, form: str) -> None:
    table = query(opened, form.format(PIVOT))
    names = table.column_names + [row.get("column_name") for row in table.to_pylist()]
    assert {"op7", "op28"} <= set(names)


def test_files_of_another_version_are_left_out_and_counted(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "results")
    path = tmp_path / "results/tables/op28/test/0-run1/cells.parquet"
    table = pq.read_table(path)
    mark = {io.METADATA_KEY: json.dumps({"table": "cells", "version": 1})}
    pq.write_table(table.replace_schema_metadata(mark), path)
    opened = open_results(tmp_path / "results")
    assert opened.outdated == 1
    assert query(opened, "SELECT count(*) AS n FROM cells").to_pylist() == [{"n": 2}]


def test_the_list_names_every_table_and_column(
    results: Path, opened: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    result = {name: (rows, [column for column, _ in fields]) for name, rows, fields in columns(opened)}
    assert result.keys() == SCHEMAS.keys()
    assert result["cells"] == (3, SCHEMAS["cells"].names)
    assert main(["query", "--results", str(results)]) == 0
    out = capsys.readouterr().out
    assert ["cells", "3", "rows"] in [line.split() for line in out.splitlines()]
    assert "   1  How fast is each drive at each workload? (no rows)" in out
    assert main(["query", "cells", "--results", str(results)]) == 0
    assert "queue_depth" in capsys.readouterr().out


def test_each_ready_question_has_an_answer(results: Path, opened: Results, capsys: pytest.CaptureFixture[str]) -> None:
    for question in QUESTIONS:
        assert question.table in SCHEMAS
        query(opened, question.sql)
    assert main(["query", "1", "--results", str(results)]) == 0
    assert QUESTIONS[0].sql in capsys.readouterr().out
    assert main(["query", "12", "--results", str(results)]) == 2
    assert "there is no question 12; choose one of 1 to 11" in capsys.readouterr().err


def test_the_terminal_shows_the_first_of_many_rows(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["query", "SELECT * FROM range(1500)", "--results", str(results)]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (lines[-2].strip(), lines[-1]) == ("999", "(1,500 rows, the first 1,000 shown; --csv prints all)")
    assert main([*arguments, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1499"


def test_the_command_prints_tables_csv_and_json(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT drive, iops, started, unsound, [iops, NULL] AS list FROM cells ORDER BY iops LIMIT 1"
    arguments = ["query", sql, "--results", str(results)]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "(1 row)"
    assert main([*arguments, "--csv"]) == 0
    rows = list(csv.DictReader(text_io.StringIO(capsys.readouterr().out)))
    assert (rows[0]["drive"], float(rows[0]["iops"]), rows[0]["unsound"]) == ("op7", 10.0, "")
    assert main([*arguments, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {"drive": "op7", "iops": 10.0, "started": "2026-01-02 03:04:05+00:00", "unsound": None,
                   "list": [10.0, None]}  # fmt: skip
    assert main(["query", "DROP VIEW cells", "--results", str(results)]) == 2
    assert capsys.readouterr().err.startswith("drivelab: DROP is not allowed")


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_control_characters_are_escaped_on_the_terminal(
    results: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: tuple[str, ...],
    watched: bool,
) -> None:
    monkeypatch.setenv("TERM", "dumb")  # no styles either
    monkeypatch.setattr(sys.stdout, "isatty", lambda: watched)
    sql = "SELECT chr(27) || '[31mred' || chr(155) || chr(127) AS \"a\x1b\", 'é' AS b"
    assert main(["query", sql, "--results", str(results), *([] if form == "table" else [f"--{form}"])]) == 0
    out = capsys.readouterr().out
    assert "é" in out
    if form == "csv" and not watched:
        assert "\x1b[31mred\x9b\x7f" in out, "a program that reads it needs the data"
    else:
        assert not set(out) & {"\x1b", "\x9b", "\x7f"}
        escape = r"\u001b" if form == "json" else r"\x1b"
        assert escape + r"[31mred\u009b\u007f" in out
        assert "a" + escape in out
