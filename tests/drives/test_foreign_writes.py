"""Writes by other programs during a measurement, in the kernel's counters of a virtual drive's loop device."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from stages import planned, run_stages

from drivelab.collect.collect import collect
from drivelab.criteria.taint import foreign_writes
from drivelab.recording.writer import read_journal
from drivelab.run.fio_cell import Bench
from drivelab.virtual import manage

pytestmark = [pytest.mark.device, pytest.mark.single]
FOREIGN_BYTES = 8 << 20

LOOP = """\
  - protocol: pts-iops
    scale: demo
    set:
      fill: {capacity_multiple: 0.2}
      loop: {runtime: 200ms, until: {rounds: ROUNDS}, threads: 2, queue_depth: 8,
             cells: {read_share: [100, 65, 0], block_size: [4KiB, 64KiB]}}
"""
SOAK = """\
  - protocol: pts-write-saturation
    scale: demo
    set: {soak: [{slice: 1s, until: {time: 3s}}, {slice: 1s, until: {time: 1s}}]}
"""
REPLAY = """\
  - {protocol: trace-replay, scale: demo, trace: sqlite, set: {replay: {until: {passes: 1}}}}
"""


def attack_during(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let dd write to the drive's node during the step with this number, counted from 0."""
    original, calls = Bench.run, iter(range(10**6))

    def run(bench: Bench, name: str, act: object, **options: Any) -> object:
        if next(calls) != number:
            return original(bench, name, act, **options)  # type: ignore[arg-type]

        def attacked(folder: Path) -> object:
            (drive,) = [drive for drive in manage.status() if drive.serial == bench.device.identified.serial]
            command = ["dd", "if=/dev/urandom", f"of={drive.device}", "bs=1M", "count=8", "oflag=direct"]
            attacker = threading.Thread(target=subprocess.run, args=(command,), kwargs={"check": True})
            attacker.start()
            timing = act(folder)  # type: ignore[operator]
            attacker.join()
            return timing

        return original(bench, name, attacked, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Bench, "run", run)


@pytest.mark.usefixtures("project", "run_directory")
def test_a_cell_with_foreign_writes_is_tainted(monkeypatch: pytest.MonkeyPatch) -> None:
    (plan,) = planned(LOOP.replace("ROUNDS", "1"))
    attack_during(monkeypatch, 2)
    run_stages(plan)
    cells = collect(plan.recording_path, reduced=True)["cells"]
    reasons = [str(reason) for reason in cells["taint_reason"]]
    assert ["foreign: others wrote 8 MiB" in reason for reason in reasons] == [False, False, True, False, False, False]
    assert cells["tainted"].iloc[2]
    assert not any("foreign" in reason for place, reason in enumerate(reasons) if place != 2)


@pytest.mark.usefixtures("project", "run_directory")
def test_all_slices_of_a_soak_with_foreign_writes_are_tainted(monkeypatch: pytest.MonkeyPatch) -> None:
    (plan,) = planned(SOAK)
    attack_during(monkeypatch, 0)
    run_stages(plan)
    cells = collect(plan.recording_path, reduced=True)["cells"]
    attacked = cells["step"] == 0
    assert attacked.sum() >= 2
    assert cells.loc[attacked, "taint_reason"].str.contains("foreign: others wrote 8 MiB").all()
    assert not cells.loc[~attacked, "taint_reason"].fillna("").str.contains("foreign").any()


@pytest.mark.usefixtures("project", "run_directory")
def test_a_replay_with_foreign_writes_is_tainted(monkeypatch: pytest.MonkeyPatch) -> None:
    (plan,) = planned(REPLAY)
    attack_during(monkeypatch, 0)
    run_stages(plan)
    (line, *others) = [line for line in read_journal(plan.recording_path) if line["event"] == "replay"]
    assert foreign_writes(line) == {"foreign_written_bytes": FOREIGN_BYTES, "foreign_discarded_bytes": 0}
    assert all(not any(foreign_writes(other).values()) for other in others)
    replays = collect(plan.recording_path, reduced=True)["replays"]
    assert "foreign: others wrote 8 MiB" in replays["taint_reason"].iloc[0]


@pytest.mark.parametrize("measurement", [LOOP.replace("ROUNDS", "4"), SOAK, REPLAY])
@pytest.mark.usefixtures("project", "run_directory")
def test_without_foreign_writes_the_counts_are_equal(measurement: str) -> None:
    (plan,) = planned(measurement)
    run_stages(plan)
    lines = [line for line in read_journal(plan.recording_path) if line["event"] in ("cell", "soak", "replay")]
    assert lines
    for line in lines:
        assert foreign_writes(line) == {"foreign_written_bytes": 0, "foreign_discarded_bytes": 0}, line
