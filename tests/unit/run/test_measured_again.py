"""What load of others disturbed is measured again after the load has passed, within bounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from stages import run_stages

from drivelab.campaign.budget import written_in
from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.core.programs import Timing
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run import clock_device, fio_cell
from drivelab.run.measure import measure
from drivelab.telemetry.sampler import Source
from drivelab.watch.recording_view import sentence

STUDY = """\
name: one
results: results
clock: virtual
drives: [op7]
{more}measurements:
  - protocol: {protocol}
    scale: demo
    set:
      loop:
        runtime: 50ms
        cells: [{{pattern: random, read_share: {shares}, block_size: 4KiB, queue_depth: 1}}]
        until: {until}
"""
ROUNDS = "{rounds: 3}"


class Host:
    """A host with one CPU, which others use during the cells with the numbers `during`, or longer if it `stays`."""

    def __init__(self, *during: int, stays: bool = False) -> None:
        self.during, self.stays, self.cell, self.looked = during, stays, 0, 0
        self.total_s = self.busy_s = 0.0
        self.is_loaded = False

    def read(self) -> dict[str, float]:
        self.total_s += 1.0
        self.busy_s += 0.6 * self.is_loaded
        return {"cpu_total_s": self.total_s, "cpu_busy_s": self.busy_s, "own_cpu_s": 0.0}

    def wait(self, seconds: float) -> None:
        self.looked += 1
        self.is_loaded = self.is_loaded and self.stays


@pytest.fixture
def on(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Host], None]:
    """Make the virtual clock's drive look like one in real time, on a host."""

    def prepare(host: Host) -> None:
        def timed(act: Callable[..., Any], place: int) -> Callable[..., Any]:
            def run(*arguments: Any) -> Any:
                if arguments[place].parent.name != "cells":
                    return act(*arguments)
                host.cell += 1
                host.is_loaded = host.cell in host.during
                started_s = time.monotonic()
                act(*arguments)
                return Timing(started_s, time.monotonic())

            return run

        sources = [Source("host", host.read, period_s=None, prompt=True)]
        for name in ("run", "replay"):
            monkeypatch.setattr(clock_device.ClockDevice, name, timed(getattr(clock_device.ClockDevice, name), 2))
        monkeypatch.setattr(clock_device.ClockDevice, "telemetry_sources", lambda device: sources)
        monkeypatch.setattr(fio_cell, "REMEASURE", 2)
        monkeypatch.setattr(fio_cell, "sleep", host.wait)
        monkeypatch.setattr(fio_cell, "LOOK_S", 0.0)

    return prepare


def plan_of(until: str = ROUNDS, shares: str = "0", more: str = "", protocol: str = "quick") -> Plan:
    study = STUDY.format(until=until, shares=shares, more=more, protocol=protocol)
    Path("config/one.yaml").write_text(study)
    return Campaign.load("config/one.yaml").plans[0].plan


def measured(plan: Plan) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the journal's lines of attempts that others followed, and of cells that count."""
    run_stages(plan)
    journal = list(read_journal(plan.recording_path))
    return [[line for line in journal if line["event"] == event] for event in ("tainted", "cell")]  # type: ignore[return-value]


def loop_of(plan: Plan) -> pd.DataFrame:
    cells = collect(plan.recording_path, reduced=False)["cells"]
    return cells[cells["kind"] == "loop"]


def test_a_disturbed_cell_is_measured_again(on: Callable[[Host], None]) -> None:
    on(Host(2))
    plan = plan_of()
    tainted, cells = measured(plan)
    assert [line["reasons"] for line in tainted] == [["load: others used 60 % of the host's CPU time"]]
    assert "waited_s" in tainted[0]
    assert cells[1]["directory"] == f"{tainted[0]['directory']}-again1"
    assert (plan.recording_path / tainted[0]["directory"] / "fio.json").exists()
    assert loop_of(plan)["tainted"].tolist() == [False] * len(cells)


def test_it_does_not_wait_for_load_that_stays(on: Callable[[Host], None]) -> None:
    host = Host(2, stays=True)
    on(host)
    plan = plan_of()
    tainted, cells = measured(plan)
    assert (tainted, host.looked) == ([], 1)
    assert loop_of(plan)["tainted"].tolist() == [number == 1 for number in range(len(cells))]


def test_two_repetitions_are_the_most(on: Callable[[Host], None]) -> None:
    on(Host(2, 3, 4, 5))
    plan = plan_of()
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
    plan = plan_of()
    tainted, cells = measured(plan)
    assert not tainted
    assert cells[1]["waited_s"] >= 0.02, "after the cold one"
    assert all("waited_s" not in line for line in cells[2:])
    assert loop_of(plan)["tainted"].all()


@pytest.mark.parametrize(
    ("settings", "repeated"),
    [
        ({"until": "{rounds: 1}"}, False),
        ({"until": "{rounds: 1}", "shares": "100"}, True),
        ({"more": "taint: {remeasure: 0}\n"}, False),
        ({"more": "taint: {load: 70%}\n"}, False),
        ({"more": "taint: {remeasure: 1}\n"}, True),
    ],
    ids=str,
)
def test_only_what_finds_the_drive_as_it_was_is_repeated(
    on: Callable[[Host], None], settings: dict[str, str], repeated: bool
) -> None:
    on(Host(2))
    tainted, _ = measured(plan_of(**settings))
    assert bool(tainted) == repeated


def test_repetitions_do_not_change_the_plan(project: Path) -> None:
    digests = {plan_of(more=more).digest for more in ("", "taint: {remeasure: 0}\n", "taint: {load: 50%}\n")}
    assert len(digests) == 1
    assert plan_of(more="taint: {remeasure: 2}\n").digest not in digests


REPLAYS = """\
name: one
results: results
clock: virtual
drives: [op7]
traces: {sqlite: {shipped: sqlite-inserts}}
measurements: [{protocol: PROTOCOL, scale: demo, trace: sqlite}]
"""


def replayed(protocol: str) -> tuple[Plan, list[dict[str, Any]]]:
    Path("config/one.yaml").write_text(REPLAYS.replace("PROTOCOL", protocol))
    plan = Campaign.load("config/one.yaml").plans[0].plan
    run_stages(plan)
    return plan, list(read_journal(plan.recording_path))


def test_a_disturbed_warm_replay_is_measured_again(on: Callable[[Host], None]) -> None:
    on(Host(1, 2))
    plan, journal = replayed("trace-replay")
    tainted = [line for line in journal if line["event"] == "tainted"]
    replays = [line for line in journal if line["event"] == "replay"]
    assert [(line["repeat"], line["trace"]) for line in tainted] == [(2, "sqlite")], "the first replay is cold"
    assert [line["repeat"] for line in replays] == list(range(1, len(replays) + 1))
    assert replays[1]["directory"] == f"{tainted[0]['directory']}-again1"
    assert sentence(tainted[0]) == "replayed sqlite, replayed again: load: others used 60 % of the host's CPU time"
    assert written_in(tainted[0], lambda name: None) == tainted[0]["metrics"]["bytes"]
    table = collect(plan.recording_path, reduced=False)["replays"]
    assert table["tainted"].tolist() == [True] + [False] * (len(replays) - 1)


def test_a_pass_of_a_phase_is_not_repeated(on: Callable[[Host], None]) -> None:
    on(Host(*range(99)))
    _, journal = replayed("trace-consistency")
    assert not [line for line in journal if line["event"] == "tainted"]


@pytest.mark.parametrize("most", [2, 0], ids=["", "turned off meanwhile"])
def test_repetitions_count_across_an_interruption(
    on: Callable[[Host], None], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    host = Host(*range(99))
    on(host)
    plan = plan_of()
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
    journal = [line for line in read_journal(plan.recording_path) if line.get("round") == 2]
    assert [line["event"] for line in journal] == [*["tainted"] * (most or 1), "cell"]
    assert len({line["directory"] for line in journal}) == len(journal)
