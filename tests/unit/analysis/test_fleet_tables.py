"""The tables of a fleet match those of a single study, however it is divided into parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from made_fleet import made_fleet

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.fleet_parts import fleet_tables, write_deltas
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS

TERMS: dict[str, Any] = {"margin_pct": 1.0, "confidence_pct": 95.0, "unintended": "show"}
COUNT = 8


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("fleet")
    return [*made_fleet(folder, COUNT, cells=2), failed(folder)]


def failed(folder: Path) -> dict[str, Any]:
    return {"drive": "d9", "subjects": ["d9"], "state": "failed", "reasons": ["it hangs"], "recordings": 1,
            "planned": 30, "results": str(folder / "drives/d9")}  # fmt: skip


def test_deltas_equal_those_of_all_drives_together(outcomes: list[dict[str, Any]], tmp_path: Path) -> None:
    write_deltas(outcomes, "d1", tmp_path / "deltas", TERMS, None)
    measured = [outcome for outcome in outcomes if outcome["state"] == "measured"]
    parts = [Path(outcome["results"]) / "tables/summary.parquet" for outcome in measured]
    together = deltas_table(io.read(parts, "summary"), "d1", **TERMS)
    written = [tmp_path / f"deltas/d{number}/deltas.parquet" for number in range(2, COUNT + 1)]
    key = ["comparison", "measurement", "cell_label", "metric"]
    joined, expected = (table.sort_values(key, ignore_index=True) for table in (io.read(written, "deltas"), together))
    lists = ["doubts", "remarks"]
    pd.testing.assert_frame_equal(joined.drop(columns=lists), expected.drop(columns=lists), check_dtype=False)
    for name in lists:
        assert list(map(list, joined[name])) == list(map(list, expected[name]))
    single = deltas_table(io.read([parts[0], parts[3]], "summary"), "d1", **TERMS)
    of_d4 = joined[joined["comparison"] == "d4"].reset_index(drop=True)
    assert not of_d4["p_adjusted"].equals(single.sort_values(key, ignore_index=True)["p_adjusted"])  # it does matter


def test_differences_from_the_basis_are_written_with_the_deltas(outcomes: list[dict[str, Any]], tmp_path: Path) -> None:
    write_deltas(outcomes, "d1", tmp_path, TERMS, None)
    differences = io.read(tmp_path / "d2/differences.parquet", "differences")
    assert set(differences["facet"]) == {"serial", "host"}
    assert differences.set_index("facet").loc["host", "intended"].tolist() == [False] * 10


def test_without_the_basis_there_are_no_deltas(outcomes: list[dict[str, Any]], tmp_path: Path) -> None:
    write_deltas(outcomes, "d9", tmp_path / "deltas", TERMS, None)
    assert list((tmp_path / "deltas").iterdir()) == []


def test_every_drive_has_a_row_even_if_it_failed(outcomes: list[dict[str, Any]], tmp_path: Path) -> None:
    tables = fleet_tables(outcomes, 5.0)
    for name, table in tables.items():
        io.write(table, tmp_path / f"{name}.parquet", name)
    drives = tables["fleet_drives"].set_index("drive")
    assert list(drives.index) == [f"d{number}" for number in range(1, 10)]
    assert drives.loc["d9", ["state", "reason", "recordings", "planned", "values"]].tolist() == [
        "failed", "it hangs", 1, 30, 0
    ]  # fmt: skip
    assert drives.loc["d7", "place"] == COUNT
    assert drives.loc["d7", "outlying"] == drives.loc["d7", "values"] == 60
    assert drives["outlying"].sum() == 60
    assert drives.loc["d2", ["hosts", "model", "firmware"]].tolist() == ["host-2", "Made 1", "F1"]
    assert (tables["fleet_spread"]["drives"] == COUNT).all()


def test_tables_of_a_failed_part_are_ignored(outcomes: list[dict[str, Any]]) -> None:
    changed = [{**outcome, "state": "failed"} if outcome["drive"] == "d7" else outcome for outcome in outcomes]
    tables = fleet_tables(changed, 5.0)
    assert "d7" not in set(tables["fleet_deviations"]["drive"])
    assert tables["fleet_drives"]["outlying"].sum() == 0


def test_a_fleet_of_failures_has_tables_too(outcomes: list[dict[str, Any]], tmp_path: Path) -> None:
    tables = fleet_tables([{**outcome, "state": "failed"} for outcome in outcomes], 5.0)
    for name, table in tables.items():
        io.write(table, tmp_path / f"{name}.parquet", name)
    assert {name: len(table) for name, table in tables.items()} == {
        "fleet_drives": 9, "fleet_spread": 0, "fleet_deviations": 0, "fleet_hosts": 0
    }  # fmt: skip


def test_key_values_follow_the_order_of_the_tracked_variables(tmp_path: Path) -> None:
    outcomes = made_fleet(tmp_path, 2, cells=2)
    for part in (Path(outcome["results"]) for outcome in outcomes):
        path = part / "tables/summary.parquet"
        summary = io.read(path, "summary")
        summary["verdict"] = summary["verdict"].mask(summary["metric"] == "iops", "steady")
        io.write(summary, path, "summary")
    variables = ("RND 8KiB 0/100", "RND 4KiB 0/100")
    window = {**dict.fromkeys(SCHEMAS["steady_state"].names, 1), "protocol": "pts-iops", "measurement": "pts-iops",
              "drive": "d1", "serial": "Sd1", "metric": "iops", "unit": "IOPS", "clock": "wall", "values": [1.0],
              "reduced": False, "virtual": False, "reached": True}  # fmt: skip
    recording = str(
        io.read(Path(outcomes[0]["results"]) / "tables/summary.parquet", "summary")["recordings"].iloc[0][0]
    )
    rows = pd.DataFrame([{**window, "recording": recording, "variable": variable} for variable in variables])
    io.write(rows, Path(outcomes[0]["results"]) / f"tables/{recording}/steady_state.parquet", "steady_state")
    spread = fleet_tables(outcomes, 5.0)["fleet_spread"]
    keys = spread[spread["is_key"]].set_index("measurement")["cell_label"]
    assert keys["pts-iops"] == "RND 8KiB 0/100"
    assert keys["pts-throughput"] == "RND 4KiB 0/100"  # without such a table, the first row
