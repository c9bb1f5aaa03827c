"""Around Snakemake in `drivelab run`: its environment, excluded evidence and failures."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pandas as pd
import pytest

from drivelab.cli.measure import runner
from drivelab.report.headline import left_out_words
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS
from drivelab.workflow.failures import explain


def exclusions(folder: Path, *faults: str) -> Path:
    empty = dict.fromkeys(SCHEMAS["exclusions"].names, "")
    path = folder / "results/tables/exclusions.parquet"
    rows = [{**empty, "fault": fault} for fault in faults]
    io.write(pd.DataFrame(rows, columns=SCHEMAS["exclusions"].names), path, "exclusions")
    return path


def test_exclusions_are_counted_by_fault(tmp_path: Path) -> None:
    sentence = left_out_words(exclusions(tmp_path, "no I/O", "missing round", "no I/O"))
    assert sentence.startswith("3 items were excluded from the results (no I/O 2, missing round 1): ")
    assert sentence.endswith(f'drivelab query "FROM exclusions" --results {tmp_path / "results"}')
    assert left_out_words(exclusions(tmp_path, "no I/O")).startswith("1 item was excluded")


@pytest.mark.parametrize(("failed", "shown"), [(3, 3), (20, 20), (1000, 21)])
def test_only_some_of_many_equal_failures_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], failed: int, shown: int
) -> None:
    errors = [
        f"Error in rule drive:\n    jobid: {number}\n    log: {tmp_path}/{number}.log (check)\n"
        for number in range(failed)
    ]
    (tmp_path / "snakemake.log").write_text("".join(errors))
    for number in range(failed):
        (tmp_path / f"{number}.log").write_text(f"drivelab: drive 'd{number}': the study was changed\n")
    explain(tmp_path, 1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == shown + 1
    if failed > shown:
        assert lines[-2] == f"drivelab: {failed - 20} more messages like these are in the log"
    assert lines[-1].startswith("drivelab: the study is not complete")


def test_a_user_without_a_name_can_run_snakemake(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert runner._environment()["LOGNAME"] == str(os.getuid())
