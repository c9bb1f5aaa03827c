"""Telemetry in simulated time: exact sample times, identical bytes, and no effect on the measurement."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from drivelab.plan.cell import Cell
from drivelab.telemetry.sampler import NAME, read_lines, read_samples
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock import cells
from drivelab.virtual_clock.cells import VirtualClockDrive
from drivelab.virtual_clock.workload import closed_loop

MakeModel = Callable[..., DriveModel]
THROTTLE = {"ambient_c": 30, "limit_c": 70, "resume_c": 60, "heat_c_per_mib": 3, "cooling_s": 40, "slowdown": 4}
DISTURB = {"every_s": 20, "for_s": 4, "stolen_pct": 40}
READS = Cell("random", 100, 4096, threads=1, queue_depth=2, runtime_s=3.5)
EPOCH_S = 946684800


def measured(model: DriveModel, folder: Path, processes: int = 1) -> Path:
    """Make a recording of three cells with idle time between them, by one process or several in turn."""
    recording = folder / "recording"
    recording.mkdir(parents=True)
    drive = VirtualClockDrive(model, folder / "state")
    for number in range(3):
        if number < processes:
            drive = VirtualClockDrive(model, folder / "state")
        with drive.telling(recording):
            directory = recording / f"{number}"
            directory.mkdir()
            drive.run(READS, directory)
            drive.idle(2.0)
    return recording


def test_a_sample_each_second_and_between_cells(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(throttle=THROTTLE), tmp_path / "state")
    drive.idle(5.25)
    with drive.telling(tmp_path):
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            drive.run(READS, tmp_path / name)
    at_s = [sample["at_s"] - EPOCH_S for sample in read_samples(tmp_path)]
    every = [5.25 + second for second in range(8)]
    assert [time_s for time_s in at_s if time_s in every] == every[: len(at_s) - 2]
    assert sorted(set(at_s) - set(every)) == pytest.approx([5.25 + 3.5, 5.25 + 7.0], abs=0.01)
    assert at_s == sorted(set(at_s))
    assert [line["event"] for line in read_lines(tmp_path) if "event" in line] == ["begin", "end"]


def test_telemetry_shows_the_models_temperature(small: MakeModel, tmp_path: Path) -> None:
    """An idle drive cools according to its model, regardless of its history."""
    drive = VirtualClockDrive(small(throttle=THROTTLE), tmp_path / "state")
    (tmp_path / "cell").mkdir()
    with drive.telling(tmp_path):
        drive.run(READS, tmp_path / "cell")
        drive.idle(30)
    samples = [sample for sample in read_samples(tmp_path) if sample["at_s"] > EPOCH_S + 4]
    assert samples[0]["temperature_c"] > 55
    for before, after in pairwise(samples):
        left = math.exp((before["at_s"] - after["at_s"]) / 40)
        assert after["temperature_c"] - 30 == pytest.approx(left * (before["temperature_c"] - 30), abs=2e-3)


@pytest.mark.parametrize("processes", [1, 3])
def test_equal_measurements_give_equal_bytes(processes: int, small: MakeModel, tmp_path: Path) -> None:
    model = small(throttle=THROTTLE, disturb=DISTURB)
    first, second = (measured(model, tmp_path / name, processes) / NAME for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert sum(1 for _ in read_samples(first.parent)) > 15


def test_telemetry_does_not_change_the_measurement(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(throttle=THROTTLE, disturb=DISTURB), tmp_path / "state")
    for number in range(3):
        (tmp_path / f"{number}").mkdir()
        drive.run(READS, tmp_path / f"{number}")
        drive.idle(2.0)
    recording = measured(drive.model, tmp_path / "with_telemetry")
    assert (tmp_path / "with_telemetry/state").read_bytes() == (tmp_path / "state").read_bytes()
    for number in range(3):
        assert (recording / f"{number}/fio.json").read_bytes() == (tmp_path / f"{number}/fio.json").read_bytes()


@pytest.mark.parametrize("effects", [{}, {"housekeeping": {"every_s": 2, "for_s": 0.5}},
                                     {"throttle": THROTTLE, "enabled": False}])  # fmt: skip
def test_a_drive_without_reporting_effects_has_no_telemetry(
    effects: dict[str, Any], small: MakeModel, tmp_path: Path
) -> None:
    drive = VirtualClockDrive(small(**effects), tmp_path / "state")
    (tmp_path / "cell").mkdir()
    with drive.telling(tmp_path):
        drive.run(replace(READS, runtime_s=None, volume_bytes=1 << 20), tmp_path / "cell")
    assert not (tmp_path / NAME).exists()


def test_a_repeated_cell_has_telemetry_once(small: MakeModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(throttle=THROTTLE)

    def broken(*arguments: Any) -> Iterator[Any]:
        for number, completion in enumerate(closed_loop(*arguments)):
            if number == 3000:
                raise KeyboardInterrupt
            yield completion

    monkeypatch.setattr(cells, "closed_loop", broken)
    (tmp_path / "cell").mkdir()
    drive = VirtualClockDrive(model, tmp_path / "state")
    with pytest.raises(KeyboardInterrupt), drive.telling(tmp_path):
        drive.run(READS, tmp_path / "cell")
    monkeypatch.undo()
    again = VirtualClockDrive(model, tmp_path / "state")
    with again.telling(tmp_path):
        again.run(READS, tmp_path / "cell")
    times_s = [line["at_s"] - EPOCH_S for line in read_samples(tmp_path)]
    assert [time_s for time_s in times_s if time_s == int(time_s)] == [0, 1, 2, 3]
    lines = [json.loads(line) for line in (tmp_path / NAME).read_text().splitlines()]
    assert [line["event"] for line in lines if "event" in line] == ["begin", "end", "begin", "end"]
