"""Outcome files: the plan joined with an engine's results."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from replay_outcomes import PREPARED, request, requests_frame, write_planned, write_results

from drivelab.core.errors import UserError
from drivelab.replay import engine_records
from drivelab.replay.outcome import OUTCOME, outcome_about, read_outcome, write_outcome

ROWS = [
    request("write", 0, 50, due=0, offset=4096, process="sqlite3", trace_us=80, in_flight=1),
    request("flush", 55, 90, due=0, after=0, waited="dependency"),
    request("read", 70, 71, due=60, error=errno.EIO, in_flight=2),
    request("read", 90, None, due=80, waited="depth", process="cron"),
    request("discard", None, None, due=100, length=1 << 20, in_flight=0),
]


def outcome(folder: Path, rows: list[dict[str, Any]], **results: Any) -> Path:
    planned = write_planned(folder / "planned.parquet", rows)
    results_file = write_results(folder / "results.bin", rows, **results)
    write_outcome(planned, results_file, folder / "outcome.parquet", {"engine": "native"})
    return folder / "outcome.parquet"


def test_rows_survive_the_file(tmp_path: Path) -> None:
    frame = read_outcome(outcome(tmp_path, ROWS))
    assert list(frame.columns) == OUTCOME.names
    expected = requests_frame(ROWS)[OUTCOME.names]
    for name in frame.columns:
        assert frame[name].astype(object).where(frame[name].notna(), None).tolist() == (
            expected[name].astype(object).where(expected[name].notna(), None).tolist()
        ), name
    assert frame["operation"].cat.categories.tolist() == expected["operation"].cat.categories.tolist()


def test_only_chosen_columns_are_read(tmp_path: Path) -> None:
    frame = read_outcome(outcome(tmp_path, ROWS), ["issue_ns", "process"])
    assert frame["process"].tolist() == ["sqlite3", "app", "app", "cron", "app"]
    assert frame["issue_ns"].dtype == np.float64
    assert frame["issue_ns"].isna().tolist() == [False, False, False, False, True]


def test_the_file_stores_preparation_and_engine_results(tmp_path: Path) -> None:
    about = outcome_about(outcome(tmp_path, ROWS, state=engine_records.HUNG, start_monotonic_ns=77, wakeup_p99_ns=5))
    assert about["engine"] == "native"
    assert about["prepared"] == PREPARED
    assert (about["results"]["state"], about["results"]["start_monotonic_ns"]) == ("hung", 77)


def test_a_short_transfer_is_an_error(tmp_path: Path) -> None:
    rows = [request("read", 0, 1) | {"moved": 512}, request("write", 0, 1), request("discard", 0, 1)]
    assert read_outcome(outcome(tmp_path, rows))["error"].tolist() == [errno.EIO, 0, 0]


def test_a_request_that_never_completed_has_no_error(tmp_path: Path) -> None:
    assert read_outcome(outcome(tmp_path, [request("read", 5, None, error=5)]))["error"].tolist() == [0]


def test_planned_requests_without_results_are_not_issued(tmp_path: Path) -> None:
    planned = write_planned(tmp_path / "planned.parquet", ROWS)
    results = write_results(tmp_path / "results.bin", ROWS[:2])
    write_outcome(planned, results, tmp_path / "o.parquet", {})
    assert read_outcome(tmp_path / "o.parquet")["issue_ns"].isna().tolist() == [False, False, True, True, True]


def test_row_groups_keep_process_names(tmp_path: Path) -> None:
    rows = [request(process=f"p{n // 3}") for n in range(11)]
    assert read_outcome(outcome(tmp_path, rows), ["process"])["process"].tolist() == [f"p{n // 3}" for n in range(11)]


def test_an_empty_outcome(tmp_path: Path) -> None:
    frame = read_outcome(outcome(tmp_path, []))
    assert frame.empty
    assert isinstance(frame["operation"].dtype, pd.CategoricalDtype)


def test_invalid_files_are_refused(tmp_path: Path) -> None:
    path = outcome(tmp_path, ROWS)
    content = path.read_bytes()
    with pytest.raises(UserError, match=r"planned\.parquet: is of another version"):
        read_outcome(tmp_path / "planned.parquet")
    with pytest.raises(UserError, match=r"nothing\.parquet: cannot be read"):
        outcome_about(tmp_path / "nothing.parquet")
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(UserError, match="cannot be read"):
        read_outcome(path)
    path.write_bytes(content[:200] + bytes(400) + content[600:])
    with pytest.raises(UserError, match="damaged"):
        read_outcome(path)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    planned = write_planned(tmp_path / "planned.parquet", ROWS)
    results = write_results(tmp_path / "results.bin", ROWS)
    with pytest.raises(UserError, match="cannot be written"):
        write_outcome(planned, results, tmp_path / "no" / "o.parquet", {})
    results.write_bytes(results.read_bytes()[:-1])
    with pytest.raises(UserError, match="cut off"):
        write_outcome(planned, results, tmp_path / "o.parquet", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["planned.parquet", "results.bin"]
