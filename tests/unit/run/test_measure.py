"""The stages on the virtual clock: seals, resumption, and what a recording keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from imports import modules_after
from stages import conditioned, lines, part_of, plan_of, run_stages

from drivelab.core.errors import CellFailed, UserError
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run import clock_device
from drivelab.run.condition import purge
from drivelab.run.measure import measure
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

LOOP = """{protocol: pts-iops, scale: demo, set: {loop: {runtime: 50ms,
    cells: {read_share: [100, 0], block_size: [4KiB]},
    until: {steady_state: {track: [{read_share: 0, block_size: 4KiB, metric: iops}]}}}}}"""
SOAK = "{protocol: pts-write-saturation, scale: demo, set: {soak: {slice: 100ms, until: {time: 500ms}}}}"
REPLAY = "{protocol: trace-replay, scale: demo, trace: sqlite}"
TRACE = "traces: {sqlite: {shipped: sqlite-inserts}}\n"


class Interrupter:
    """Wraps the device's `run` and raises after the n-th cell, without its exit code."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, error: BaseException) -> None:
        self.count = 0
        original = clock_device.ClockDevice.run

        def run(device: Any, cell: Cell, directory: Path, seed: int, on_tick: Any, until: Any = None) -> None:
            self.count += 1
            original(device, cell, directory, seed, on_tick, until)
            if self.count == at:
                (directory / "exit_code").unlink()
                raise error

        monkeypatch.setattr(clock_device.ClockDevice, "run", run)


def interrupt(monkeypatch: pytest.MonkeyPatch, plan: Plan, seal: Path, *, at: int) -> None:
    """Measure until Ctrl-C at the n-th cell."""
    with monkeypatch.context() as patch:
        Interrupter(patch, at, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            measure(plan, seal)


@pytest.mark.parametrize("measurement", [LOOP, SOAK, REPLAY], ids=["loop", "soak", "replay"])
def test_a_chain_makes_a_recording_only_once(project: Path, measurement: str) -> None:
    plan = plan_of(measurement, TRACE)
    run_stages(plan)
    assert json.loads((plan.recording_path / "recording.json").read_text())["gaps"] == []
    assert [line["intact"] for line in lines(plan, "verdict")] == [True, True]
    before = sorted((p, p.stat().st_mtime_ns) for p in plan.recording_path.rglob("*") if p.name != "recording.json")
    run_stages(plan)
    after = sorted((p, p.stat().st_mtime_ns) for p in plan.recording_path.rglob("*") if p.name != "recording.json")
    assert after == before


def test_stages_without_a_replay_import_neither_pandas_nor_pyarrow(project: Path) -> None:
    """A study starts three stages for each of its measurements, and these imports take as long as all the rest."""
    statements = ["from drivelab.cli.main import main"]
    for name, measurement in (("loop", LOOP), ("soak", SOAK)):
        Path(name).write_text(plan_of(measurement).to_json())
        for stage in ("purge --seal 1", "precondition --after 1 --seal 2", "measure --after 2"):
            statements.append(f"assert main({[*stage.split(), name]}) == 0")
    imported = modules_after(*statements)
    assert "drivelab.run.clock_device" in imported
    assert not {"pandas", "pyarrow"} & imported


def test_foreign_writes_break_the_seal_and_repeat_the_conditioning(project: Path) -> None:
    plan = plan_of(LOOP)
    seal = conditioned(plan)
    drive = VirtualClockDrive(
        DriveModel.from_mapping("op7", plan.subject["drive"]["virtual"]), Path("results/virtual/VIRTUAL-OP7.state")
    )
    Path("foreign").mkdir()
    drive.run(Cell("random", 0, 4096, 1, 1, volume_bytes=40960), Path("foreign"))
    measure(plan, seal)
    assert [line["intact"] for line in lines(plan, "verdict")] == [True, False]
    assert "other programs wrote 40KiB" in lines(plan, "verdict")[1]["reason"]
    order = [line["event"] for line in lines(plan, "verdict", "purge", "fill", "cell")]
    assert order[order.index("cell") - 2 : order.index("cell")] == ["purge", "fill"]


@pytest.mark.usefixtures("nothing_undone")
def test_a_killed_loop_resumes_after_a_gap(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(LOOP)
    seal = conditioned(plan)
    interrupt(monkeypatch, plan, seal, at=8)  # the second cell of round 4
    finished = list(part_of(plan).glob("cells/*/fio.json"))
    kept = {p.parent.name: p.stat().st_mtime_ns for p in finished}
    measure(plan, seal)
    assert len(lines(plan, "gap")) == 1
    rounds = [line["round"] for line in lines(plan, "cell")]
    assert rounds == sorted(rounds)
    assert lines(plan, "loop")[0]["rounds"] >= 9, "five rounds wholly after the gap in round 4"
    assert len(rounds) == 2 * lines(plan, "loop")[0]["rounds"], "each cell exactly once"
    for name, time in kept.items():
        if name != "0-round04-cell01":
            assert (plan.recording_path / "cells" / name / "fio.json").stat().st_mtime_ns == time
    assert (plan.recording_path / "cells/0-round04-cell01.interrupted-1/fio.json").exists()


def test_a_drive_used_by_another_measurement_restarts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, plan = plan_of(LOOP), plan_of(SOAK)
    seal = conditioned(plan)
    interrupt(monkeypatch, plan, seal, at=1)
    purge(other, Path("other.json"))
    measure(plan, seal)
    assert (len(lines(plan, "gap")), len(lines(plan, "purge"))) == (0, 1)
    aside = plan.recording_path.with_name(plan.recording_path.name + ".abandoned-1")
    assert f"used for {other.recording}" in list(read_journal(aside))[-1]["reason"]


def test_a_failed_cell_is_reported_and_repeated(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(LOOP)
    seal = conditioned(plan)
    with monkeypatch.context() as patch:
        Interrupter(patch, 3, CellFailed("fio reports error 5"))
        with pytest.raises(UserError, match=r"drive 'op7', pts-iops: RND 4KiB 100/0 .*: fio reports error 5.*kept"):
            measure(plan, seal)
    assert not (plan.recording_path / "recording.json").exists()
    measure(plan, seal)
    assert len(lines(plan, "failed")) == 1
    assert len(lines(plan, "resumed")) == 1


def test_another_kernel_restarts_the_measurement(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of(LOOP)
    seal = conditioned(plan)
    interrupt(monkeypatch, plan, seal, at=3)
    host = part_of(plan) / "host.json"
    begun = json.loads(host.read_text())
    host.write_text(json.dumps({**begun, "kernel": "1.0"}))
    measure(plan, seal)
    assert (len(lines(plan, "gap")), len(lines(plan, "purge"))) == (0, 1)
    assert f"kernel was 1.0 and is now {begun['kernel']}; restarting" in capsys.readouterr().out
    assert json.loads((plan.recording_path / "host.json").read_text())["kernel"] == begun["kernel"]


def test_a_changed_trace_is_refused_on_resuming(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(REPLAY, TRACE)
    seal = conditioned(plan)
    with monkeypatch.context() as patch:
        count = []
        original = clock_device.ClockDevice.replay

        def replay(*arguments: Any) -> None:
            count.append(1)
            if len(count) == 2:
                raise KeyboardInterrupt
            original(*arguments)

        patch.setattr(clock_device.ClockDevice, "replay", replay)
        with pytest.raises(KeyboardInterrupt):
            measure(plan, seal)
        patch.undo()
        patch.setattr("drivelab.run.schedules.sha256_of", lambda path: "another")
        with pytest.raises(UserError, match="this is not the trace that"):
            measure(plan, seal)
