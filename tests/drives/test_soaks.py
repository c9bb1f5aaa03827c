"""Soaks in real time: drivelab ends fio cleanly, slices have no pause, a measuring process is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from leftovers import processes
from made_plans import made_plan
from stages import conditioned
from waits import wait_until

from drivelab.fio.document import documents, from_document
from drivelab.fio.early_end import ended_early, without_farewell
from drivelab.fio.job import job_text
from drivelab.fio.job_run import run_fio
from drivelab.fio.result import read_result, read_slices
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure
from drivelab.run.soak import SteadySlices
from drivelab.virtual import manage

pytestmark = pytest.mark.device

SIZE_BYTES = 32 << 20
SLICE_S = 1.0  # fio's minimum
ANY = {"every_s": SLICE_S, "window": 3, "data_excursion": 5.0, "slope_excursion": 5.0, "metric": "iops"}
"""Criteria that every drive meets, so that tests do not depend on other load: the excursion of n values is below n."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file for I/O with all blocks written."""
    path = tmp_path / "target"
    path.write_bytes(bytes(SIZE_BYTES))
    return path


def random_writes(**more: Any) -> Cell:
    return Cell("random", 0, 4096, 1, 8, **more)


def job(cell: Cell, file: Path) -> str:
    return job_text(cell, str(file), "libaio", SIZE_BYTES, 4096, 1)


def test_an_early_end_leaves_complete_evidence(file: Path, tmp_path: Path) -> None:
    """fio ends within the slice, no issued I/O is missing, and no I/O counts twice."""
    (folder := tmp_path / "evidence").mkdir()
    cell = random_writes(runtime_s=3600.0, slice_s=SLICE_S)
    rule = SteadySlices(ANY, SLICE_S)
    run_fio(None, job(cell, file), folder, runtime_s=cell.runtime_s, slice_s=SLICE_S, until=rule)
    assert ended_early(folder) == "steady state"
    assert (folder / "exit_code").read_text() == "128\n"
    *_, last = documents(without_farewell((folder / "fio.json").read_text()))
    whole = from_document(last)
    assert whole.write.latencies == whole.ios == sum(whole.write.bins.values())
    slices = read_slices(folder, cell)
    assert sum(result.ios for result in slices) == whole.ios
    assert sum(result.runtime_s for result in slices) == pytest.approx(whole.runtime_s)
    last = max(rule.window)
    assert list(rule.window) == [last - 2, last - 1, last], "the last slices at that time; a stall adds some before"
    assert last <= len(slices)
    assert read_result(folder).ios == whole.ios


def completions_s(folder: Path) -> list[float]:
    """Return the Unix time of every completion, in milliseconds; fio writes one log per thread."""
    lines = (folder / "series_lat.1.log").read_text().splitlines()
    return sorted(int(line.partition(",")[0]) / 1000 for line in lines)


def logged(cell: Cell, file: Path, folder: Path) -> list[float]:
    """Run a cell with a log line for every I/O; return the completion times."""
    folder.mkdir()
    text = job(cell, file).replace("log_avg_msec=1000\n", "log_unix_epoch=1\n")
    run_fio(None, text, folder, runtime_s=cell.runtime_s, slice_s=cell.slice_s)
    return completions_s(folder)


def test_there_is_no_pause_between_slices(file: Path, tmp_path: Path) -> None:
    """Gaps at the ends of slices are no longer than elsewhere, and far shorter than between processes."""
    done_s = logged(random_writes(runtime_s=5.0, slice_s=SLICE_S), file, tmp_path / "slices")
    again_s = logged(random_writes(runtime_s=1.0), file, tmp_path / "again")
    printed = [document["timestamp_ms"] / 1000 for document in documents((tmp_path / "slices/fio.json").read_text())]
    ends_s = [end_s for end_s in printed[:-1] if done_s[0] < end_s < done_s[-1]]
    near: dict[float, float] = dict.fromkeys(ends_s, 0.0)
    elsewhere = 0.0
    for before_s, after_s in pairwise(done_s):
        at = [end_s for end_s in ends_s if before_s - 0.05 < end_s < after_s + 0.05]
        near |= {end_s: max(near[end_s], after_s - before_s) for end_s in at}
        elsewhere = elsewhere if at else max(elsewhere, after_s - before_s)
    between_processes_s = again_s[0] - done_s[-1]
    print(
        f"longest time without a completion: {[round(1000 * gap_s) for gap_s in near.values()]} ms at the ends of "
        f"slices, {1000 * elsewhere:.0f} ms elsewhere, {1000 * between_processes_s:.0f} ms between two processes "
        "that log every I/O"
    )
    assert len(ends_s) >= 2
    assert min(near.values()) > 0
    # fio would pause at every end; the host does not stall at every one.
    assert min(near.values()) <= max(elsewhere, between_processes_s / 5)


def steady_soak(folder: Path) -> Plan:
    cell = {"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "threads": 1, "queue_depth": 8}
    soak = {"cell": {**cell, "slice_s": SLICE_S}, "until": {"time_s": 600.0, "steady_state": {**ANY, "window": 4}}}
    return made_plan(folder, [{"soak": soak}], {"purge": "auto", "rest_s": 0.1}, clock="wall")


NEVER_STEADY = """
import sys
from drivelab.cli.main import main
from drivelab.run.soak import SteadySlices
SteadySlices.__call__ = lambda *_: None
sys.exit(main())
"""
"""The drivelab command; its soaks never become steady."""


def test_a_killed_soak_is_judged_by_later_slices(run_directory: Path, tmp_path: Path) -> None:
    plan = steady_soak(tmp_path)
    seal = conditioned(plan, tmp_path)
    (tmp_path / "plan.json").write_text(plan.to_json())
    command = [sys.executable, "-c", NEVER_STEADY]
    running = subprocess.Popen([*command, "measure", str(tmp_path / "plan.json"), "--after", str(seal)])
    status = plan.recording_path.with_name(plan.recording_path.name + ".part") / "cells/0-soak-part1/fio.json"
    wait_until(lambda: status.exists() and status.read_text().count("\n}\n") >= 3, running)
    running.send_signal(signal.SIGKILL)
    running.wait()
    # fio does not outlive the process that started it.
    wait_until(lambda: not processes("fio"))
    measure(plan, seal)
    first, second = (line for line in read_journal(plan.recording_path) if line["event"] == "soak")
    assert not first["finished"]
    assert first["slices"] >= 3
    assert second["ended_by"] == "steady state"
    assert second["window"][0]["slice"] >= second["first_slice"] == first["slices"] + 1
    assert len(second["window"]) == 4
    assert second["slices"] >= 4


def test_a_rest_flushes_the_drive(run_directory: Path, tmp_path: Path) -> None:
    plan = steady_soak(tmp_path)
    purge(plan, tmp_path / "purged.json")
    device = manage.status()[0].device
    before = flushes(device)
    precondition(plan, tmp_path / "purged.json", tmp_path / "conditioned.json")
    assert flushes(device) > before


def flushes(device: str) -> int:
    """Return the number of flushes completed according to the kernel (Documentation/block/stat.rst)."""
    return int(Path(f"/sys/class/block/{Path(device).name}/stat").read_text().split()[15])
