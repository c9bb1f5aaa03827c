"""A prepared fio: held before it opens its target, released at once, and gone with its parent."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from drivelab.core import programs
from drivelab.fio import prepared
from drivelab.fio.job import job_text
from drivelab.fio.job_run import prepare, run_fio
from drivelab.fio.prepared import Prepared, can_prepare
from drivelab.fio.result import read_result
from drivelab.plan.cell import Cell

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

SIZE = 1 << 20
CELL = Cell("random", 0, 4096, threads=2, queue_depth=4, runtime_s=1.0)
LIMIT_S = 600.0
"""A fio that is being prepared runs only when the CPUs have nothing else to do."""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target"
    path.write_bytes(bytes(SIZE))
    return path


@pytest.fixture
def job(target: Path) -> str:
    """Writes to the target as if it were a device: each thread opens it itself."""
    return job_text(CELL, str(target), "libaio", SIZE, 512, 7).replace("direct=1\n", "direct=0\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "cell"
    path.mkdir()
    return path


def has_open(pid: int, path: Path) -> bool:
    links = Path(f"/proc/{pid}/fd")
    return any(link.readlink() == path for link in links.iterdir())


def threads(pid: int) -> list[int]:
    return [int(thread.name) for thread in Path(f"/proc/{pid}/task").iterdir()]


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def until(condition: Callable[[], bool]) -> bool:
    deadline_s = time.monotonic() + LIMIT_S
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.02)
    return condition()


def test_a_prepared_fio_has_started_its_threads_and_opened_nothing(target: Path, job: str, folder: Path) -> None:
    fio = prepare(job, folder, str(target))
    try:
        assert fio.is_held(LIMIT_S)
        assert len(threads(fio.pid)) >= 1 + CELL.threads
        assert not has_open(fio.pid, target)
    finally:
        fio.discard()
    assert ended(fio.pid)
    assert target.read_bytes() == bytes(SIZE)


def test_a_released_fio_leaves_the_evidence_of_a_usual_one(target: Path, job: str, folder: Path) -> None:
    fio = prepare(job, folder, str(target))
    assert fio.is_held(LIMIT_S)
    timing = run_fio(None, job, folder, runtime_s=CELL.runtime_s, prepared=fio)
    result = read_result(folder, CELL)
    assert result.write.ios > 0
    assert timing.ended_s - timing.started_s >= result.runtime_s
    # fio says so if any loop device of this machine leaves while it looks for the disk of its file.
    assert (folder / "stderr").read_text().replace("stat: No such file or directory\n", "") == ""
    usual = folder.parent / "usual"
    usual.mkdir()
    run_fio(None, job, usual, runtime_s=CELL.runtime_s)
    assert {path.name for path in folder.iterdir()} == {path.name for path in usual.iterdir()}
    assert (folder / "command").read_text() == (usual / "command").read_text()


def test_a_fio_released_before_it_is_ready_runs_too(target: Path, job: str, folder: Path) -> None:
    run_fio(None, job, folder, runtime_s=CELL.runtime_s, prepared=prepare(job, folder, str(target)))
    assert read_result(folder, CELL).write.ios > 0


def test_the_folder_of_a_prepared_fio_may_be_renamed(target: Path, job: str, folder: Path) -> None:
    fio = prepare(job, folder, str(target))
    final = folder.rename(folder.with_name("final"))
    run_fio(None, job, final, runtime_s=CELL.runtime_s, prepared=fio)
    assert read_result(final, CELL).write.ios > 0


def test_all_threads_are_idle_until_the_release_only(
    target: Path, job: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not programs.has(programs.SYS_NICE):
        pytest.skip("this process may not change scheduling back")
    fio = prepare(job, folder, str(target))
    try:
        assert fio.is_held(LIMIT_S)
        tasks = threads(fio.pid)
        assert {os.sched_getscheduler(thread) for thread in tasks} == {os.SCHED_IDLE}
        monkeypatch.setattr(fio, "_own", type("Silent", (), {"send": lambda self, _: 0, "close": lambda self: None})())
        fio.release()  # its byte is not sent, so the threads wait on
        assert {os.sched_getscheduler(thread) for thread in tasks} == {os.sched_getscheduler(0)}
    finally:
        fio.discard()


def test_a_fio_that_fails_before_the_barrier_leaves_its_evidence(target: Path, folder: Path) -> None:
    run_fio(None, "[cell]\nrw=nonsense\n", folder, prepared=prepare("[cell]\nrw=nonsense\n", folder, str(target)))
    assert (folder / "exit_code").read_text() == "1\n"


_PARENT = f"""
import sys, time
from pathlib import Path
from drivelab.fio.job_run import prepare
fio = prepare(Path(sys.argv[1]).read_text(), Path(sys.argv[2]), sys.argv[3])
assert fio.is_held({LIMIT_S})
print(fio.pid, flush=True)
time.sleep({LIMIT_S})
"""


def test_a_killed_parent_leaves_no_prepared_fio_and_no_write(target: Path, job: str, folder: Path) -> None:
    text = folder.parent / "text"
    text.write_text(job)
    command = [sys.executable, "-c", _PARENT, str(text), str(folder), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not ended(pid)
        parent.send_signal(signal.SIGKILL)
    assert until(lambda: ended(pid))
    assert target.read_bytes() == bytes(SIZE)


def test_a_closed_barrier_ends_fio_without_a_write(target: Path, job: str, folder: Path) -> None:
    fio = prepare(job, folder, str(target))
    assert fio.is_held(LIMIT_S)
    fio._own.close()  # as the kernel does for a killed parent, perhaps before it kills fio
    assert fio._process.wait(LIMIT_S) == 1
    assert target.read_bytes() == bytes(SIZE)


def test_nothing_is_prepared_if_the_barrier_does_not_hold_fio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert can_prepare()
    can_prepare.cache_clear()
    monkeypatch.setattr(prepared, "built_barrier_path", lambda: tmp_path / "missing.so")
    try:
        assert not can_prepare()
    finally:
        can_prepare.cache_clear()


def test_a_prepared_program_gets_only_the_barrier_and_what_it_inherits(target: Path, job: str, folder: Path) -> None:
    with target.open("rb") as file:
        (folder / "job.fio").write_text(job)
        fio = Prepared(["fio", "--output=fio.json", "job.fio"], folder, str(target), [file.fileno()])
        try:
            assert fio.is_held(LIMIT_S)
            assert has_open(fio.pid, target)
        finally:
            fio.discard()
