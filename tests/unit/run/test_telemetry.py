"""Telemetry of a measurement: times in the journal, and repeated cells."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_recordings import without_checksums
from stages import run_stages

from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.core.programs import Timing
from drivelab.criteria.taint import Limits
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run import clock_device
from drivelab.telemetry.sampler import NAME, Source, read_samples

LOOP = """
  - protocol: pts-iops
    scale: demo
    set:
      loop:
        runtime: 50ms
        cells: {read_share: [100, 0], block_size: [4KiB]}
        until: {steady_state: {track: [{read_share: 0, block_size: 4KiB, metric: iops}]}}
"""
SOAK = """
  - protocol: pts-write-saturation
    scale: demo
    set: {soak: {slice: 100ms, until: {time: 500ms}}}
"""


class Sensor:
    """Temperature of a drive that warns from 70 °C; it is hot during the cells with the numbers in `hot`."""

    def __init__(self, *hot: int) -> None:
        self.hot, self.cell = hot, 0

    def read(self) -> dict[str, float]:
        return {"temperature_c": 75.0 if self.cell in self.hot else 40.0, "temperature_limit_c": 70.0}


@pytest.fixture
def on_wall_clock(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Sensor], None]:
    """Make the virtual clock's drive look like one in real time, with a sensor."""

    def prepare(sensor: Sensor) -> None:
        original = clock_device.ClockDevice.run

        def run(device: Any, cell: Any, directory: Path, seed: int, on_tick: Any, until: Any = None) -> Timing | None:
            if directory.parent.name != "cells":
                return original(device, cell, directory, seed, on_tick, until)
            sensor.cell += 1
            started_s = time.monotonic()
            original(device, cell, directory, seed, on_tick, until)
            return Timing(started_s, time.monotonic())

        sources = [Source("temperature", sensor.read, period_s=None, prompt=True)]
        monkeypatch.setattr(clock_device.ClockDevice, "run", run)
        monkeypatch.setattr(clock_device.ClockDevice, "telemetry_sources", lambda device: sources)

    return prepare


def plan_of(measurement: str, taint: str = "{}") -> Plan:
    Path("config/one.yaml").write_text(
        f"name: one\nresults: results\nclock: virtual\ndrives: [op7]\ntaint: {taint}\nmeasurements:{measurement}"
    )
    return Campaign.load("config/one.yaml").plans[0].plan


def measured(plan: Plan) -> list[dict[str, Any]]:
    run_stages(plan)
    return list(read_journal(plan.recording_path))


def of(journal: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [line for line in journal if line["event"] == event]


def test_a_cell_that_was_too_hot_is_flagged(on_wall_clock: Callable[[Sensor], None]) -> None:
    on_wall_clock(Sensor(3))
    plan = plan_of(LOOP)
    journal = measured(plan)
    assert not of(journal, "tainted")
    cells = collect(plan.recording_path, reduced=False)["cells"]
    assert cells["temperature_max_c"].tolist()[1:5] == [40.0, 75.0, 75.0, 40.0], "the edge belongs to both neighbours"
    assert cells["taint_reason"][2] == "throttled: the drive reached 75 °C, it warns from 70 °C"
    assert cells["tainted"].tolist() == cells["throttled"].tolist()
    assert cells["load_pct"].isna().all()


def test_samples_and_cells_are_joined_by_time(on_wall_clock: Callable[[Sensor], None]) -> None:
    on_wall_clock(Sensor())
    plan = plan_of(LOOP)
    journal = measured(plan)
    at_s = [sample["at_s"] for sample in read_samples(plan.recording_path)]
    ended_s = 0.0
    for cell in of(journal, "cell"):
        assert any(ended_s < at <= cell["started_s"] for at in at_s), "a sample between two cells"
        ended_s = cell["ended_s"]
        assert cell["started_s"] < ended_s
    assert at_s[-1] >= ended_s
    table = collect(plan.recording_path, reduced=False)["telemetry"]
    assert len(table) == len(at_s)
    assert set(table["temperature_limit_c"]) == {70.0}


def test_a_tainted_cell_is_repeated_and_kept(on_wall_clock: Callable[[Sensor], None]) -> None:
    on_wall_clock(Sensor(3, 4))
    plan = plan_of(LOOP, "{remeasure: 3}")
    journal = measured(plan)
    cells, tainted = of(journal, "cell"), of(journal, "tainted")
    rounds = of(journal, "loop")[0]["rounds"]
    assert [(line["round"], line["cell"]) for line in cells] == [(r, c) for r in range(1, rounds + 1) for c in (0, 1)]
    again = [line["directory"] for line in tainted]
    assert again[:2] == ["cells/0-round02-cell00", "cells/0-round02-cell00-again1"]
    assert cells[2]["directory"] in ("cells/0-round02-cell00-again2", "cells/0-round02-cell00-again3")
    assert all("throttled: the drive reached 75 °C" in line["reasons"][0] for line in tainted)
    assert all((plan.recording_path / line["directory"] / "fio.json").exists() for line in tainted)
    table = collect(plan.recording_path, reduced=False)["cells"]
    assert len(table) == len(cells)
    assert not table["tainted"].any()
    written = {line["directory"] for line in tainted if line["workload"]["read_share"] < 100}
    assert (table["bytes_written_total"].iloc[-1] > table["bytes_written"].sum()) == bool(written)


def test_each_slice_of_a_soak_has_its_own_telemetry(on_wall_clock: Callable[[Sensor], None]) -> None:
    on_wall_clock(Sensor(1))
    plan = plan_of(SOAK)
    measured(plan)
    cells = collect(plan.recording_path, reduced=False)["cells"]
    assert set(cells["kind"]) == {"soak"}
    assert cells["tainted"].any()
    assert cells["temperature_max_c"].notna().all()


def test_on_the_virtual_clock_there_is_no_telemetry_and_no_taint(project: Path) -> None:
    plan = plan_of(LOOP, "{remeasure: 2}")
    journal = measured(plan)
    assert not (plan.recording_path / NAME).exists()
    assert not any("started_s" in line for line in of(journal, "cell"))
    tables = collect(plan.recording_path, reduced=False, limits=Limits(0.0, 0.0))
    assert not tables["cells"]["tainted"].any()
    assert tables["cells"]["throttled"].isna().all()
    assert tables["telemetry"].empty


def test_steal_time_in_an_old_journal_still_taints(project: Path) -> None:
    plan = plan_of(LOOP)
    measured(plan)
    without_checksums(plan.recording_path)
    path = plan.recording_path / "journal.jsonl"
    path.write_text(path.read_text().replace('"event":"cell",', '"event":"cell","steal_pct":17.2,', 1))
    cells = collect(plan.recording_path, reduced=False)["cells"]
    assert cells["taint_reason"].tolist()[0] == "steal: 17 % of the CPU time was stolen by the hypervisor"
    assert cells["tainted"].sum() == 1
