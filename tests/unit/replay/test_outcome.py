"""What was planned and what an engine says, joined row for row."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from replay_outcomes import PREPARED, request, requests_frame, write_planned, write_results

from drivelab.errors import UserError
from drivelab.replay import records
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
    found = write_results(folder / "results.bin", rows, **results)
    write_outcome(planned, found, folder / "outcome.parquet", {"engine": "native"})
    return folder / "outcome.parquet"


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    found = read_outcome(outcome(tmp_path, ROWS))
    assert list(found.columns) == OUTCOME.names
    wanted = requests_frame(ROWS)[OUTCOME.names]
    for name in found.columns:
        assert found[name].astype(object).where(found[name].notna(), None).tolist() == (
            wanted[name].astype(object).where(wanted[name].notna(), None).tolist()
        ), name
    assert found["operation"].cat.categories.tolist() == wanted["operation"].cat.categories.tolist()


def test_chosen_columns_only(tmp_path: Path) -> None:
    found = read_outcome(outcome(tmp_path, ROWS), ["issue_ns", "process"])
    assert found["process"].tolist() == ["sqlite3", "app", "app", "cron", "app"]
    assert found["issue_ns"].dtype == np.float64
    assert found["issue_ns"].isna().tolist() == [False, False, False, False, True]


def test_the_file_tells_what_was_prepared_and_what_the_engine_said(tmp_path: Path) -> None:
    about = outcome_about(outcome(tmp_path, ROWS, state=records.HUNG, start_monotonic_ns=77, wakeup_p99_ns=5))
    assert about["engine"] == "native"
    assert about["prepared"] == PREPARED
    assert (about["results"]["state"], about["results"]["start_monotonic_ns"]) == ("hung", 77)


def test_an_engine_that_tells_no_single_requests_leaves_nulls(tmp_path: Path) -> None:
    planned = write_planned(tmp_path / "planned.parquet", ROWS)
    write_outcome(planned, None, tmp_path / "o.parquet", {})
    found = read_outcome(tmp_path / "o.parquet")
    assert found["issue_ns"].isna().all()
    assert found["complete_ns"].isna().all()
    assert found["offset_bytes"].tolist() == [row["offset_bytes"] for row in ROWS]
    assert outcome_about(tmp_path / "o.parquet")["results"] is None


def test_a_transfer_that_is_too_short_failed(tmp_path: Path) -> None:
    rows = [request("read", 0, 1) | {"moved": 512}, request("write", 0, 1), request("discard", 0, 1)]
    assert read_outcome(outcome(tmp_path, rows))["error"].tolist() == [errno.EIO, 0, 0]


def test_an_error_of_a_request_that_never_came_back_is_none(tmp_path: Path) -> None:
    assert read_outcome(outcome(tmp_path, [request("read", 5, None, error=5)]))["error"].tolist() == [0]


def test_fewer_results_than_planned_are_requests_that_were_not_issued(tmp_path: Path) -> None:
    planned = write_planned(tmp_path / "planned.parquet", ROWS)
    results = write_results(tmp_path / "results.bin", ROWS[:2])
    write_outcome(planned, results, tmp_path / "o.parquet", {})
    assert read_outcome(tmp_path / "o.parquet")["issue_ns"].isna().tolist() == [False, False, True, True, True]


@pytest.mark.parametrize(("state", "rows"), [(records.FINISHED, 7), (records.TIME_IS_UP, 5), (records.FAILED, 7)])
def test_a_schedule_that_began_anew_is_there_as_often(tmp_path: Path, state: int, rows: int) -> None:
    planned = [request(due=None, offset=4096 * n) for n in range(4)]
    issued = [request(issue=n if n < 5 else None, complete=n + 1 if n < 5 else None) for n in range(7)]
    write_planned(tmp_path / "planned.parquet", planned)
    results = write_results(tmp_path / "results.bin", issued, state)
    write_outcome(tmp_path / "planned.parquet", results, tmp_path / "o.parquet", {})
    found = read_outcome(tmp_path / "o.parquet")
    assert found["offset_bytes"].tolist() == [4096 * (n % 4) for n in range(rows)]
    assert found["issue_ns"].notna().sum() == 5


def test_row_groups_do_not_mix_processes_up(tmp_path: Path) -> None:
    rows = [request(process=f"p{n // 3}") for n in range(11)]
    assert read_outcome(outcome(tmp_path, rows), ["process"])["process"].tolist() == [f"p{n // 3}" for n in range(11)]


def test_an_outcome_of_nothing(tmp_path: Path) -> None:
    found = read_outcome(outcome(tmp_path, []))
    assert found.empty
    assert isinstance(found["operation"].dtype, pd.CategoricalDtype)


def test_files_that_are_none_are_told_of(tmp_path: Path) -> None:
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
