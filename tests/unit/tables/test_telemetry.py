"""The table of telemetry samples, and the telemetry columns of cells and replays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from drivelab.collect.telemetry_table import cell_columns, telemetry_table
from drivelab.criteria.taint import DEFAULT
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS
from drivelab.telemetry.sampler import NAME

AT_S = 1_700_000_000.0
ROW_KEY: dict[str, Any] = {
    "recording": "a/b/c-run1", "drive": "a", "serial": "S", "protocol": "b", "measurement": "b", "run": 1,
    "reduced": False, "virtual": False, "clock": "wall",
}  # fmt: skip


def sample(second: float, **more: float) -> dict[str, float]:
    return {"at_s": AT_S + second, "cpu_total_s": 2 * second, "cpu_busy_s": second, "own_cpu_s": 0.5 * second,
            "interrupts": 100 * second, "processor_energy_j": 30 * second, **more}  # fmt: skip


def written(folder: Path, *lines: dict[str, Any]) -> pd.DataFrame:
    (folder / NAME).write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = telemetry_table(folder, ROW_KEY)
    io.write(table, folder / "t.parquet", "telemetry")
    return io.read(folder / "t.parquet", "telemetry")


def test_samples_are_rows_with_rates_since_the_previous_sample(tmp_path: Path) -> None:
    table = written(
        tmp_path,
        {"at_s": AT_S, "event": "begin", "sources": []},
        sample(10.0, sectors_written=8.0, temperature_c=41.0),
        sample(10.1),
        {"at_s": AT_S + 10.5, "smart_bytes_written": 512e3, "thermal_1_s": 3.0, "power_state": 2.0},
        sample(12.0, meter_power_w=5.5),
        {"at_s": AT_S + 12.5, "event": "end"},
    )
    assert [round(time.timestamp() - AT_S, 4) for time in table["time"]] == [10, 10.1, 10.5, 12]
    assert table["bytes_written"][0] == 4096
    assert table["load_pct"].isna().tolist() == [True, True, True, False], "shares need half a second"
    last = table.iloc[-1]
    assert (last["cpu_pct"], last["load_pct"], last["interrupts_per_s"], last["processor_power_w"]) == (50, 25, 100, 30)
    assert (table["smart_bytes_written"][2], table["thermal_1_s"][2], table["power_state"][2]) == (512_000, 3, 2.0)
    assert set(table["drive"]) == {"a"}


def test_rates_do_not_span_an_interruption(tmp_path: Path) -> None:
    table = written(tmp_path, sample(10.0), {"at_s": AT_S + 99, "event": "begin"}, sample(100.0), sample(101.0))
    assert table["load_pct"].isna().tolist() == [True, True, False]


def test_columns_of_a_cell() -> None:
    known = cell_columns({"load_pct": 43.0, "temperature_max_c": 50.0, "temperature_limit_c": 70.0}, DEFAULT)
    assert (known["load_pct"], known["temperature_max_c"], known["power_w"]) == (43.0, 50.0, None)
    assert (known["tainted"], known["throttled"]) == (True, False)
    assert known["taint_reason"] == "load: others used 43 % of the host's CPU time"
    unknown = cell_columns({}, DEFAULT)
    assert unknown.pop("tainted") is False
    assert set(unknown.values()) == {None}


@pytest.mark.parametrize("name", ["cells", "replays"])
def test_cells_and_replays_have_the_same_columns(name: str) -> None:
    assert set(cell_columns({}, DEFAULT)) <= set(SCHEMAS[name].names)
