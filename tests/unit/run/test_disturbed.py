"""Cells that heat or load of others disturbed are marked, and measured again within bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from made_recordings import without_checksums
from stages import lines, plan_of, run_stages

from drivelab.campaign.budget import written_in
from drivelab.collect.collect import collect
from drivelab.core.programs import Timing
from drivelab.criteria.taint import Limits
from drivelab.plan.plan import Plan
from drivelab.run import clock_device, fio_cell
from drivelab.run.measure import measure
from drivelab.telemetry.sampler import NAME, Source, read_samples
from drivelab.watch.recording_view import sentence

LOOP = """{protocol: pts-iops, scale: demo, set: {loop: {runtime: 50ms,
    cells: {read_share: [100, 0], block_size: [4KiB]},
    until: {steady_state: {track: [{read_share: 0, block_size: 4KiB, metric: iops}]}}}}}"""
SOAK = "{protocol: pts-write-saturation, scale: demo, set: {soak: {slice: 100ms, until: {time: 500ms}}}}"
REPLAY = "{protocol: PROTOCOL, scale: demo, trace: sqlite}"
TRACE = "traces: {sqlite: {shipped: sqlite-inserts}}\n"


class Sensor:
    """Temperature of a drive that warns from 70 °C; it is hot during the cells with the numbers in `hot`."""

    def __init__(self, *hot: int) -> None:
        self.hot, self.is_hot = hot, False

    def begin(self, cell: int) -> None:
        self.is_hot = cell in self.hot

    def read(self) -> dict[str, float]:
        return {"temperature_c": 75.0 if self.is_hot else 40.0, "temperature_limit_c": 70.0}


class Host:
    """A host with one CPU, which others use during the cells with the numbers `during`, or longer if it `stays`."""

    def __init__(self, *during: int, stays: bool = False) -> None:
        self.during, self.stays, self.cell, self.looked = during, stays, 0, 0
        self.total_s = self.busy_s = 0.0
        self.is_loaded = False

    def begin(self, cell: int) -> None:
        self.cell = cell
        self.is_loaded = cell in self.during

    def read(self) -> dict[str, float]:
        self.total_s += 1.0
        self.busy_s += 0.6 * self.is_loaded
        return {"cpu_total_s": self.total_s, "cpu_busy_s": self.busy_s, "own_cpu_s": 0.0}

    def wait(self, seconds: float) -> None:
        self.looked += 1
        self.is_loaded = self.is_loaded and self.stays


@pytest.fixture
def on(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Sensor | Host], None]:
    """Make the virtual clock's drive look like one in real time, with a sensor or on a host."""

    def prepare(source: Sensor | Host) -> None:
        cells = 0

        def timed(act: Callable[..., Any]) -> Callable[..., Any]:
            def run(*arguments: Any) -> Any:
                nonlocal cells
                if arguments[2].parent.name != "cells":
                    return act(*arguments)
                cells += 1
                source.begin(cells)
                started_s = time.monotonic()
                act(*arguments)
                return Timing(started_s, time.monotonic())

            return run

        sources = [Source("made up", source.read, period_s=None, prompt=True)]
        for name in ("run", "replay"):
            monkeypatch.setattr(clock_device.ClockDevice, name, timed(getattr(clock_device.ClockDevice, name)))
        monkeypatch.setattr(clock_device.ClockDevice, "telemetry_sources", lambda device: sources)
        if isinstance(source, Host):
            monkeypatch.setattr(fio_cell, "REMEASURE", 2)
            monkeypatch.setattr(fio_cell, "sleep", source.wait)
            monkeypatch.setattr(fio_cell, "LOOK_S", 0.0)

    return prepare


def quick(rounds: int = 3, shares: str = "0", more: str = "") -> Plan:
    cells = f"[{{pattern: random, read_share: {shares}, block_size: 4KiB, queue_depth: 1}}]"
    fields = f"runtime: 50ms, cells: {cells}, until: {{rounds: {rounds}}}"
    return plan_of(f"{{protocol: quick, scale: demo, set: {{loop: {{{fields}}}}}}}", more)


def measured(plan: Plan) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the journal's lines of attempts that others followed, and of cells that count."""
    run_stages(plan)
    return lines(plan, "tainted"), lines(plan, "cell")


def cells_of(plan: Plan, **options: Any) -> pd.DataFrame:
    return collect(plan.recording_path, reduced=False, **options)["cells"]


def loop_of(plan: Plan) -> pd.DataFrame:
    cells = cells_of(plan)
    return cells[cells["kind"] == "loop"]


def test_a_cell_that_was_too_hot_is_flagged(on: Callable[[Sensor], None]) -> None:
    on(Sensor(3))
    plan = plan_of(LOOP)
    tainted, _ = measured(plan)
    assert not tainted
    cells = cells_of(plan)
    assert cells["temperature_max_c"].tolist()[1:5] == [40.0, 75.0, 75.0, 40.0], "the edge belongs to both neighbours"
    assert cells["taint_reason"][2] == "throttled: the drive reached 75 °C, it warns from 70 °C"
    assert cells["tainted"].tolist() == cells["throttled"].tolist()
    assert cells["load_pct"].isna().all()


def test_samples_and_cells_are_joined_by_time(on: Callable[[Sensor], None]) -> None:
    on(Sensor())
    plan = plan_of(LOOP)
    _, cells = measured(plan)
    at_s = [sample["at_s"] for sample in read_samples(plan.recording_path)]
    ended_s = 0.0
    for cell in cells:
        assert any(ended_s < at <= cell["started_s"] for at in at_s), "a sample between two cells"
        ended_s = cell["ended_s"]
        assert cell["started_s"] < ended_s
    assert at_s[-1] >= ended_s
    table = collect(plan.recording_path, reduced=False)["telemetry"]
    assert len(table) == len(at_s)
    assert set(table["temperature_limit_c"]) == {70.0}


def test_a_cell_that_was_too_hot_is_repeated_and_kept(on: Callable[[Sensor], None]) -> None:
    on(Sensor(3, 4))
    plan = plan_of(LOOP, "taint: {remeasure: 3}\n")
    tainted, cells = measured(plan)
    rounds = lines(plan, "loop")[0]["rounds"]
    assert [(line["round"], line["cell"]) for line in cells] == [(r, c) for r in range(1, rounds + 1) for c in (0, 1)]
    again = [line["directory"] for line in tainted]
    assert again[:2] == ["cells/0-round02-cell00", "cells/0-round02-cell00-again1"]
    assert cells[2]["directory"] in ("cells/0-round02-cell00-again2", "cells/0-round02-cell00-again3")
    assert all("throttled: the drive reached 75 °C" in line["reasons"][0] for line in tainted)
    assert all((plan.recording_path / line["directory"] / "fio.json").exists() for line in tainted)
    table = cells_of(plan)
    assert len(table) == len(cells)
    assert not table["tainted"].any()
    written = {line["directory"] for line in tainted if line["workload"]["read_share"] < 100}
    assert (table["bytes_written_total"].iloc[-1] > table["bytes_written"].sum()) == bool(written)


def test_each_slice_of_a_soak_has_its_own_telemetry(on: Callable[[Sensor], None]) -> None:
    on(Sensor(1))
    plan = plan_of(SOAK)
    measured(plan)
    cells = cells_of(plan)
    assert set(cells["kind"]) == {"soak"}
    assert cells["tainted"].any()
    assert cells["temperature_max_c"].notna().all()


def test_on_the_virtual_clock_there_is_no_telemetry_and_no_taint(project: Path) -> None:
    plan = plan_of(LOOP, "taint: {remeasure: 2}\n")
    _, cells = measured(plan)
    assert not (plan.recording_path / NAME).exists()
    assert not any("started_s" in line for line in cells)
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
    cells = cells_of(plan)
    assert cells["taint_reason"].tolist()[0] == "steal: 17 % of the CPU time was stolen by the hypervisor"
    assert cells["tainted"].sum() == 1


def test_a_disturbed_cell_is_measured_again(on: Callable[[Host], None]) -> None:
    on(Host(2))
    plan = quick()
    tainted, cells = measured(plan)
    assert [line["reasons"] for line in tainted] == [["load: others used 60 % of the host's CPU time"]]
    assert "waited_s" in tainted[0]
    assert cells[1]["directory"] == f"{tainted[0]['directory']}-again1"
    assert (plan.recording_path / tainted[0]["directory"] / "fio.json").exists()
    assert loop_of(plan)["tainted"].tolist() == [False] * len(cells)


def test_it_does_not_wait_for_load_that_stays(on: Callable[[Host], None]) -> None:
    host = Host(2, stays=True)
    on(host)
    plan = quick()
    tainted, cells = measured(plan)
    assert (tainted, host.looked) == ([], 1)
    assert loop_of(plan)["tainted"].tolist() == [number == 1 for number in range(len(cells))]


def test_two_repetitions_are_the_most(on: Callable[[Host], None]) -> None:
    on(Host(2, 3, 4, 5))
    plan = quick()
    tainted, cells = measured(plan)
    assert [line["directory"].rpartition("-")[2] for line in tainted[:2]] == ["cell00", "again1"]
    assert cells[1]["directory"].endswith("-again2")
    assert loop_of(plan)["tainted"].tolist() == [False, True, False, False]


def test_looks_are_few(on: Callable[[Host], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """They end with their time; then a disturbed cell keeps its taint at once."""
    monkeypatch.setattr(fio_cell, "LOOKS_S", 0.02)
    monkeypatch.setattr(fio_cell, "LOOKS_SHARE", 0.0)
    on(Host(*range(99), stays=True))
    monkeypatch.setattr(fio_cell, "LOOK_S", 0.001)
    monkeypatch.setattr(fio_cell, "sleep", lambda seconds: time.sleep(0.02))
    plan = quick()
    tainted, cells = measured(plan)
    assert not tainted
    assert cells[1]["waited_s"] >= 0.02, "after the cold one"
    assert all("waited_s" not in line for line in cells[2:])
    assert loop_of(plan)["tainted"].all()


@pytest.mark.parametrize(
    ("settings", "repeated"),
    [
        ({"rounds": 1}, False),
        ({"rounds": 1, "shares": "100"}, True),
        ({"more": "taint: {remeasure: 0}\n"}, False),
        ({"more": "taint: {load: 70%}\n"}, False),
        ({"more": "taint: {remeasure: 1}\n"}, True),
    ],
    ids=str,
)
def test_only_what_finds_the_drive_as_it_was_is_repeated(
    on: Callable[[Host], None], settings: dict[str, Any], repeated: bool
) -> None:
    on(Host(2))
    tainted, _ = measured(quick(**settings))
    assert bool(tainted) == repeated


def test_repetitions_do_not_change_the_plan(project: Path) -> None:
    digests = {quick(more=more).digest for more in ("", "taint: {remeasure: 0}\n", "taint: {load: 50%}\n")}
    assert len(digests) == 1
    assert quick(more="taint: {remeasure: 2}\n").digest not in digests


def test_a_disturbed_warm_replay_is_measured_again(on: Callable[[Host], None]) -> None:
    on(Host(1, 2))
    plan = plan_of(REPLAY.replace("PROTOCOL", "trace-replay"), TRACE)
    tainted, _ = measured(plan)
    replays = lines(plan, "replay")
    assert [(line["repeat"], line["trace"]) for line in tainted] == [(2, "sqlite")], "the first replay is cold"
    assert [line["repeat"] for line in replays] == list(range(1, len(replays) + 1))
    assert replays[1]["directory"] == f"{tainted[0]['directory']}-again1"
    assert sentence(tainted[0]) == "replayed sqlite, replayed again: load: others used 60 % of the host's CPU time"
    assert written_in(tainted[0], lambda name: None) == tainted[0]["metrics"]["bytes"]
    table = collect(plan.recording_path, reduced=False)["replays"]
    assert table["tainted"].tolist() == [True] + [False] * (len(replays) - 1)


def test_a_pass_of_a_phase_is_not_repeated(on: Callable[[Host], None]) -> None:
    on(Host(*range(99)))
    tainted, _ = measured(plan_of(REPLAY.replace("PROTOCOL", "trace-consistency"), TRACE))
    assert not tainted


@pytest.mark.parametrize("most", [2, 0], ids=["", "turned off meanwhile"])
def test_repetitions_count_across_an_interruption(
    on: Callable[[Host], None], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    host = Host(*range(99))
    on(host)
    plan = quick()
    with monkeypatch.context() as patch:
        act = clock_device.ClockDevice.run

        def run(*arguments: Any) -> Any:
            timing = act(*arguments)
            if host.cell == 4 - (most == 0):
                raise KeyboardInterrupt
            return timing

        patch.setattr(clock_device.ClockDevice, "run", run)
        with pytest.raises(KeyboardInterrupt):
            run_stages(plan)
    monkeypatch.setattr(fio_cell, "REMEASURE", most)
    measure(plan, Path("conditioned.json"))
    journal = [line for line in lines(plan) if line.get("round") == 2]
    assert [line["event"] for line in journal] == [*["tainted"] * (most or 1), "cell"]
    assert len({line["directory"] for line in journal}) == len(journal)
