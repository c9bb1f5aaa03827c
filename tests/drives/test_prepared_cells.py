"""Cells of a loop on a virtual drive in real time, each prepared while its predecessor runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_plans import made_plan

from drivelab.core.errors import UserError
from drivelab.fio.job import job_text
from drivelab.fio.job_run import choose_engine, prepare, run_fio
from drivelab.fio.result import read_result
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure

pytestmark = pytest.mark.device

CELL: dict[str, Any] = {"pattern": "random", "read_share": 50, "block_size_bytes": 4096, "threads": 1, "queue_depth": 2,
        "runtime_s": 1.6}  # fmt: skip
LIMIT_S = 600.0
"""A fio that is being prepared runs only when the CPUs have nothing else to do."""
LONG_S = 5.0
"""Runtime of a cell that still runs at its first tick, which prepares the next cell."""
SIZE = 1 << 24


def plan_of(folder: Path, until: dict[str, Any], runtime_s: float = CELL["runtime_s"]) -> Plan:
    cells = [{**CELL, "runtime_s": runtime_s, "read_share": read_share} for read_share in (50, 100)]
    return made_plan(folder, [{"loop": {"cells": cells, "until": until}}], {"settle_s": 0.0}, clock="wall")


def conditioned(plan: Plan, folder: Path) -> Path:
    purge(plan, folder / "purged.json")
    precondition(plan, folder / "purged.json", folder / "conditioned.json")
    return folder / "conditioned.json"


def cells(plan: Plan) -> list[dict[str, Any]]:
    return [line for line in read_journal(plan.recording_path) if line["event"] == "cell"]


def fio_below(folder: Path) -> list[tuple[int, Path]]:
    """Return id and working directory of each fio in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            place = (process / "cwd").readlink()
            if (process / "comm").read_text() == "fio\n" and folder in place.parents:
                found.append((int(process.name), place))
        except OSError:
            continue
    return found


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[str]:
    """A loop device over a file of the test."""
    file = tmp_path / "backing"
    file.write_bytes(bytes(SIZE))
    done = subprocess.run(["losetup", "--find", "--show", str(file)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device: {done.stderr.strip()}")
    yield done.stdout.strip()
    subprocess.run(["losetup", "--detach", done.stdout.strip()], check=True)


@pytest.mark.parametrize("more", [{}, {"registered": True, "batch": 4}])
def test_a_held_fio_does_not_touch_its_loop_device(tmp_path: Path, loop_device: str, more: dict[str, Any]) -> None:
    cell = Cell("random", 0, 4096, threads=2, queue_depth=8, runtime_s=0.3, **more)
    folder = tmp_path / "cell"
    folder.mkdir()
    statistics = Path("/sys/class/block", Path(loop_device).name, "stat")
    job = job_text(cell, loop_device, choose_engine(loop_device, loop_device), SIZE, 512, 7)
    before = statistics.read_text()
    fio = prepare(job, folder, loop_device)
    try:
        assert fio.is_held(LIMIT_S)
        links = [link.readlink() for link in Path(f"/proc/{fio.pid}/fd").iterdir()]
        assert Path(loop_device) not in links
        assert statistics.read_text() == before
        run_fio(Path(loop_device).name, job, folder, runtime_s=cell.runtime_s, prepared=fio)
    finally:
        fio.discard()
    assert read_result(folder, cell).write.ios > 0
    assert statistics.read_text() != before


@pytest.mark.usefixtures("run_directory")
def test_all_cells_but_the_first_are_prepared(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"rounds": 2}, LONG_S)
    measure(plan, conditioned(plan, tmp_path))
    assert [line.get("prepared", False) for line in cells(plan)] == [False, True, True, True]
    for line in cells(plan):
        folder = plan.recording_path / line["directory"]
        assert (folder / "exit_code").read_text() == "0\n"
        assert (folder / "stderr").read_text() == ""
    assert fio_below(tmp_path) == []


@pytest.mark.usefixtures("run_directory")
def test_a_cell_prepared_in_vain_leaves_no_trace(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"metric": "iops", "threshold": 10.0})
    measure(plan, conditioned(plan, tmp_path))
    lines = cells(plan)
    assert len(lines) == 6  # they agree after three rounds, and a fourth was prepared
    folders = {path.parent for path in plan.recording_path.rglob("job.fio")}
    assert folders == {plan.recording_path / line["directory"] for line in lines}
    assert not any(path.name.startswith(".") for path in plan.recording_path.iterdir())
    assert fio_below(tmp_path) == []


@pytest.mark.usefixtures("run_directory")
def test_a_killed_measurement_leaves_no_prepared_fio_and_resumes(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"rounds": 2})
    seal = conditioned(plan, tmp_path)
    (tmp_path / "plan.json").write_text(plan.to_json())
    code = "import sys; from drivelab.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "measure", str(tmp_path / "plan.json"), "--after", str(seal)]
    with subprocess.Popen(command) as process:
        deadline_s = time.monotonic() + LIMIT_S
        while not any(place.name == ".prepared" for _, place in fio_below(tmp_path)):
            assert process.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    deadline_s = time.monotonic() + LIMIT_S
    while fio_below(tmp_path) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert fio_below(tmp_path) == []
    measure(plan, seal)
    assert len(cells(plan)) == 4
    assert not any(path.name.startswith(".") for path in plan.recording_path.iterdir())


@pytest.mark.usefixtures("run_directory")
def test_prepared_cells_may_register_buffers_and_submit_batches(tmp_path: Path) -> None:
    cell = {**CELL, "runtime_s": LONG_S, "queue_depth": 8, "registered": True, "batch": 4}
    loop = {"loop": {"cells": [cell], "until": {"rounds": 2}}}
    plan = made_plan(tmp_path, [loop], {"settle_s": 0.0}, clock="wall")
    measure(plan, conditioned(plan, tmp_path))
    assert [line.get("prepared", False) for line in cells(plan)] == [False, True]
    assert all(line["metrics"]["iops"] > 0 for line in cells(plan))
    host = json.loads((plan.recording_path / "host.json").read_text())
    assert host["placement"] == "left to the scheduler: the device is not at one place of the host"


@pytest.mark.usefixtures("run_directory")
def test_a_drive_without_poll_queues_is_not_polled(tmp_path: Path) -> None:
    loop = {"loop": {"cells": [{**CELL, "polled": True}], "until": {"rounds": 1}}}
    plan = made_plan(tmp_path, [loop], {"settle_s": 0.0}, clock="wall")
    with pytest.raises(
        UserError, match=r"^drive 'mine' has no poll queues, but cell RND 4KiB 50/50, polled T1Q2 polls"
    ):
        measure(plan, conditioned(plan, tmp_path))
