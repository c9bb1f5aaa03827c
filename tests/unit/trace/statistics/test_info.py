"""`drivelab trace info`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from whole_traces import write_trace

from drivelab.cli.traces import trace_info
from drivelab.tables import io
from drivelab.tables.schemas import TRACE_TABLES


def info(*arguments: str) -> int:
    top = argparse.ArgumentParser()
    trace_info.add_actions(top.add_subparsers())
    options = top.parse_args(["info", *arguments])
    return int(options.handler(options))


def write(model: ModuleType, path: Path, rows: list[dict[str, Any]], **provenance: Any) -> str:
    write_trace(model.table(rows), provenance, path)
    return str(path)


def test_a_shipped_trace_on_one_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert info("sqlite-inserts") == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") <= 24
    for phrase in ("sqlite-inserts: SQLite", "drive of 64 MiB", "13.3 MiB", "nothing in flight", "SEQ 4KiB W"):
        assert phrase in " ".join(printed.split())
    for operation in ("read ", "write ", "flush "):
        assert f"\n{operation}" in printed


def test_json_has_all_tables(model: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [model.row(1000 * n, "write", 4096 * n, complete_ns=1000 * n + 70) for n in range(9)]
    rows += [model.row(10_000, "discard", 0, 1 << 20)]
    path = write(model, tmp_path / "t.parquet", rows, backend="ftrace", lost={"overrun": 2})
    assert info(path, "--json") == 0
    body = json.loads(capsys.readouterr().out)
    assert body["provenance"]["lost"] == {"overrun": 2}
    assert set(body["tables"]) == set(TRACE_TABLES)
    assert body["tables"]["trace_overview"][0]["marks"] == ["lossy"]
    assert (body["writes"], body["discards"], body["write_bytes"], body["lossy"]) == (9, 1, 9 * 4096, True)


def test_tables_and_figures(model: ModuleType, tmp_path: Path) -> None:
    path = write(model, tmp_path / "t.parquet", [model.row(n, "read", 4096 * n) for n in range(9)])
    assert info(path, "--tables", str(tmp_path / "a"), "--figures", str(tmp_path / "b")) == 0
    for name in TRACE_TABLES:
        assert isinstance(io.read(tmp_path / "a" / f"{name}.parquet", name), pd.DataFrame)
    assert len(list((tmp_path / "b").glob("trace_*.svg"))) == len(list((tmp_path / "b").glob("trace_*.png"))) == 7


def test_marks_are_printed(model: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(
        model,
        tmp_path / "t.parquet",
        [model.row(n // 5 * 10**9, "read", 4096 * n, error=5 if n == 3 else 0) for n in range(50)],
        lost={"overrun": 2},
        derived=[{"step": "cut"}],
        format_imported="tencent",
        source="[bold]x.csv",
        time_resolution_ns=10**9,
    )
    assert info(path) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for phrase in (
        "LOSSY 2 events were lost",
        "DERIVED derived by: cut",
        "IMPORTED imported from [bold]x.csv (tencent)",
        "times are multiples of 1 s",
        "50 requests without completion",
        "queue depth unknown",
        "long gaps between arrivals",
        "errno 5: 1",
        "merges unknown",
    ):
        assert phrase in printed


@pytest.mark.parametrize("operation", ["read", "flush"])
def test_a_nearly_empty_trace(
    model: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], operation: str
) -> None:
    length = 0 if operation == "flush" else 512
    assert info(write(model, tmp_path / "t.parquet", [model.row(0, operation, 0, length)])) == 0
    assert "1 in" in capsys.readouterr().out
