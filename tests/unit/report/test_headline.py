from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drivelab.report.headline import first_headlines
from drivelab.tables import io


@pytest.fixture
def paths(tmp_path: Path, tables: Any) -> dict[str, Path]:
    found = {name: tmp_path / f"{name}.parquet" for name in ("summary", "deltas", "steady_state", "replays")}
    for name, path in found.items():
        io.write(tables[name], path, name)
    return found


def test_one_line_for_each_measurement(paths: dict[str, Path]) -> None:
    lines = first_headlines(paths, "op7")
    names = ["pts-iops", "pts-write-saturation", "trace-replay"]
    assert [line.split(":")[0] for line in lines] == [f"{name} (reduced, virtual drives)" for name in names]
    assert "RND 4KiB 0/100" in lines[0]
    assert len(first_headlines(paths, "op7", most=1)) == 1


def test_of_one_drive_the_first_variable_that_the_protocol_tracks(paths: dict[str, Path]) -> None:
    windows = io.read(paths["steady_state"], "steady_state")
    summary = io.read(paths["summary"], "summary")
    alone = summary[summary["drive"] == "op7"].sort_values("cell_label", ascending=False)
    io.write(alone, paths["summary"], "summary")
    io.write(io.read(paths["deltas"], "deltas").iloc[:0], paths["deltas"], "deltas")
    for order in (windows, windows.iloc[::-1]):
        io.write(order, paths["steady_state"], "steady_state")
        first = order[order["measurement"] == "pts-iops"].iloc[0]
        (line,) = [line for line in first_headlines(paths, "op7") if line.startswith("pts-iops ")]
        assert f": {first['variable']} {first['metric']}: " in line
    assert len({*windows[windows["measurement"] == "pts-iops"]["variable"]}) > 1
