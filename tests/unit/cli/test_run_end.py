"""What `drivelab run` says in the end: of evidence that is in no result, and of what failed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from drivelab.cli.runner import explain, left_out_words
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS


def exclusions(folder: Path, *faults: str) -> Path:
    empty = dict.fromkeys(SCHEMAS["exclusions"].names, "")
    path = folder / "results/tables/exclusions.parquet"
    rows = [{**empty, "fault": fault} for fault in faults]
    io.write(pd.DataFrame(rows, columns=SCHEMAS["exclusions"].names), path, "exclusions")
    return path


def test_nothing_was_left_out(tmp_path: Path) -> None:
    assert left_out_words(exclusions(tmp_path)) == "Nothing was left out of the results."


def test_how_many_were_left_out_why_and_where_to_read_it(tmp_path: Path) -> None:
    said = left_out_words(exclusions(tmp_path, "no I/O", "missing round", "no I/O"))
    assert said.startswith("3 things were left out of the results (no I/O 2, missing round 1): ")
    assert said.endswith(f'drivelab query "FROM exclusions" --results {tmp_path / "results"}')
    assert left_out_words(exclusions(tmp_path, "no I/O")).startswith("1 thing was left out")


def test_recordings_that_are_left_out_as_a_whole_are_named(tmp_path: Path) -> None:
    path = exclusions(tmp_path, *["duplicated run"] * 5)
    table = io.read(path, "exclusions").assign(place="recording", recording=list("aabcd"))
    io.write(table, path, "exclusions")
    said = left_out_words(path)
    assert said.startswith("5 things were left out of the results (duplicated run 5), among them all of a, b, c and 1 ")


@pytest.mark.parametrize(("failed", "said"), [(3, 3), (20, 20), (1000, 21)])
def test_of_a_thousand_that_failed_alike_a_few_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], failed: int, said: int
) -> None:
    told = [
        f"Error in rule drive:\n    jobid: {number}\n    log: {tmp_path}/{number}.log (check)\n"
        for number in range(failed)
    ]
    (tmp_path / "snakemake.log").write_text("".join(told))
    for number in range(failed):
        (tmp_path / f"{number}.log").write_text(f"drivelab: drive 'd{number}': the study was changed\n")
    explain(tmp_path, 1)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == said + 1
    if failed > said:
        assert lines[-2] == f"drivelab: and {failed - 20} more like these in the log"
    assert lines[-1].startswith("drivelab: the study is not complete")
