"""Cells of a loop on a virtual drive in real time, each prepared while its predecessor runs."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from leftovers import processes
from loops import image, looped
from made_plans import made_plan
from stages import conditioned, run_stages
from waits import DRIVELAB, wait_until

from drivelab.core.errors import UserError
from drivelab.fio.job import job_text
from drivelab.fio.job_run import choose_engine, prepare, run_fio
from drivelab.fio.result import read_result
from drivelab.plan.cell import Cell
from drivelab.plan.plan import Plan
from drivelab.recording.writer import read_journal
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


def cells(plan: Plan) -> list[dict[str, Any]]:
    return [line for line in read_journal(plan.recording_path) if line["event"] == "cell"]


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[str]:
    """A loop device over a file of the test."""
    with looped(image(tmp_path / "backing", SIZE >> 20)) as device:
        yield device


@pytest.mark.parametrize("more", [{}, {"registered": True, "batch": 4}])
def test_a_held_fio_does_not_touch_its_loop_device(tmp_path: Path, loop_device: str, more: dict[str, Any]) -> None:
    cell = Cell("random", 0, 4096, threads=2, queue_depth=8, runtime_s=0.3, **more)
    folder = tmp_path / "cell"
    folder.mkdir()
    statistics = Path("/sys/class/block", Path(loop_device).name, "stat")

    def written() -> list[str]:
        """Return what the kernel counts of writes and discards; programs of the machine read each new device."""
        fields = statistics.read_text().split()
        return [*fields[4:7], *fields[11:14]]

    job = job_text(cell, loop_device, choose_engine(loop_device, loop_device), SIZE, 512, 7)
    before = written()
    fio = prepare(job, folder, loop_device)
    try:
        assert fio.is_held(LIMIT_S)
        links = [link.readlink() for link in Path(f"/proc/{fio.pid}/fd").iterdir()]
        assert Path(loop_device) not in links
        assert written() == before
        run_fio(Path(loop_device).name, job, folder, runtime_s=cell.runtime_s, prepared=fio)
    finally:
        fio.discard()
    assert read_result(folder, cell).write.ios > 0
    assert written() != before


@pytest.mark.usefixtures("run_directory")
def test_all_cells_but_the_first_are_prepared(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"rounds": 2}, LONG_S)
    run_stages(plan, tmp_path)
    assert [line.get("prepared", False) for line in cells(plan)] == [False, True, True, True]
    for line in cells(plan):
        folder = plan.recording_path / line["directory"]
        assert (folder / "exit_code").read_text() == "0\n"
        assert (folder / "stderr").read_text() == ""
    assert processes("fio") == []


@pytest.mark.usefixtures("run_directory")
def test_a_cell_prepared_in_vain_leaves_no_trace(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"metric": "iops", "threshold": 10.0})
    run_stages(plan, tmp_path)
    lines = cells(plan)
    assert len(lines) == 6  # they agree after three rounds, and a fourth was prepared
    folders = {path.parent for path in plan.recording_path.rglob("job.fio")}
    assert folders == {plan.recording_path / line["directory"] for line in lines}
    assert not any(path.name.startswith(".") for path in plan.recording_path.iterdir())
    assert processes("fio") == []


def a_cell_is_prepared() -> bool:
    with suppress(OSError):  # a process may just have ended
        return any(Path(f"/proc/{pid}/cwd").readlink().name == ".prepared" for pid in processes("fio"))
    return False


@pytest.mark.usefixtures("run_directory")
def test_a_killed_measurement_leaves_no_prepared_fio_and_resumes(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {"rounds": 2})
    seal = conditioned(plan, tmp_path)
    (tmp_path / "plan.json").write_text(plan.to_json())
    with subprocess.Popen([*DRIVELAB, "measure", str(tmp_path / "plan.json"), "--after", str(seal)]) as process:
        wait_until(a_cell_is_prepared, process)
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: not processes("fio"))
    measure(plan, seal)
    assert len(cells(plan)) == 4
    assert not any(path.name.startswith(".") for path in plan.recording_path.iterdir())


@pytest.mark.usefixtures("run_directory")
def test_prepared_cells_may_register_buffers_and_submit_batches(tmp_path: Path) -> None:
    cell = {**CELL, "runtime_s": LONG_S, "queue_depth": 8, "registered": True, "batch": 4}
    loop = {"loop": {"cells": [cell], "until": {"rounds": 2}}}
    plan = made_plan(tmp_path, [loop], {"settle_s": 0.0}, clock="wall")
    run_stages(plan, tmp_path)
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
        run_stages(plan, tmp_path)
