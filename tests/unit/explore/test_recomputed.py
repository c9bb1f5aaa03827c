"""A published number is computed again from its recordings, whatever the tables say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from made_recordings import SOAK, change_job, copied, made_recording

from drivelab.analysis.values.summary import summary_table
from drivelab.collect.recording_tables import recording_tables
from drivelab.explore.number_evidence import as_measured, of_delta, of_value
from drivelab.explore.side import BIN_COLUMNS, SUMMARISED
from drivelab.tables import io

MIX = {"pattern": "random", "read_share": 50, "block_size_bytes": 4096, "threads": 2, "queue_depth": 2,
       "runtime_s": 0.3}  # fmt: skip
TRACK = {"pattern": "random", "read_share": 50, "block_size_bytes": 4096, "metric": "iops"}
UNTIL = {"window": 5, "max_rounds": 7, "data_excursion": 0.9, "slope_excursion": 0.9, "track": [TRACK]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a recording on the virtual clock: rounds of a mix, then a soak."""
    steps: list[dict[str, Any]] = [{"loop": {"cells": [MIX], "until": UNTIL}},
                                   {"soak": {"cell": SOAK, "until": {"time_s": 1.0}}}]  # fmt: skip
    return made_recording(tmp_path_factory.mktemp("made"), steps)


@pytest.fixture(scope="module")
def summary(made: Path) -> pd.DataFrame:
    """The table `summary` of the recording, as a study makes it from files."""
    tables, results = recording_tables(made, reduced=False), made.parents[3]
    for name in (*SUMMARISED, "latency_bins"):
        io.write(tables[name], results / f"tables/{name}.parquet", name)
    read = {name: io.read(results / f"tables/{name}.parquet", name) for name in SUMMARISED}
    bins = io.read_part([results / "tables/latency_bins.parquet"], "latency_bins", BIN_COLUMNS, ("kind", "soak"))
    return summary_table(**read, soak_bins=bins)


def test_every_number_is_found_again(made: Path, summary: pd.DataFrame) -> None:
    results = made.parents[3]
    assert {"loop", "soak"} <= set(recording_tables(made, reduced=False)["cells"]["kind"])
    for row in summary.to_dict("records"):
        facts = of_value(row, results, {})
        assert facts["recomputed"] == pytest.approx(row["value"], rel=1e-12), row["metric"]
        assert as_measured(facts)


@pytest.mark.parametrize("factor", [10, 1.0001, float("nan")])
def test_an_edited_number_is_not_confirmed(made: Path, summary: pd.DataFrame, factor: float) -> None:
    row = summary.to_dict("records")[0]
    facts = of_value({**row, "value": factor * row["value"]}, made.parents[3], {})
    assert facts["recomputed"] == pytest.approx(row["value"])
    assert not as_measured(facts)


def test_a_number_of_another_drive_is_not_confirmed(made: Path, summary: pd.DataFrame) -> None:
    """The comparison is the same recording under another name: drives were exchanged in the table."""
    row = summary.to_dict("records")[0]
    other = {**row, "drive": "other"}
    assert of_value(other, made.parents[3], {})["recomputed"] is None
    delta = {name: row[name] for name in ("measurement", "cell_label", "metric")}
    delta |= {"basis": row["drive"], "comparison": "other", "delta_pct": 0.0}
    facts = of_delta(delta, pd.DataFrame([row, other]), made.parents[3], {})
    assert facts["recomputed"] is None
    assert not as_measured(facts)


def test_evidence_that_changed_gives_another_number(made: Path, summary: pd.DataFrame, tmp_path: Path) -> None:
    recording = copied(made, tmp_path)
    row = summary[summary["metric"] == "iops"].to_dict("records")[0]
    place = row["evidence"][0].split("/", 3)[3]

    def slower(job: dict[str, Any]) -> None:
        job["write"]["iops"] /= 2

    change_job(recording / place, slower)
    facts = of_value(row, tmp_path, {})
    assert not as_measured(facts)
