"""Evidence of a fio run besides its output."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from drivelab.core.errors import CellFailed
from drivelab.fio import job_run
from drivelab.fio.job import job_text
from drivelab.fio.job_run import COMMAND, run_fio
from drivelab.plan.cell import Cell

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

JOB = "[global]\nioengine=null\nlat_percentiles=1\nsize=1m\nbs=4k\nrw=read\n[one]\n"


def test_the_recorded_command_repeats_the_job(tmp_path: Path) -> None:
    run_fio(None, JOB, tmp_path, slice_s=2.0)
    before = (tmp_path / "fio.json").stat()
    command = shlex.split((tmp_path / COMMAND).read_text())
    assert "--status-interval=2" in command
    done = subprocess.run(command, cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == int((tmp_path / "exit_code").read_text()) == 0
    assert (tmp_path / "fio.json").stat().st_mtime_ns > before.st_mtime_ns


@pytest.fixture
def impostor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """A program called fio that ends with status 0 and leaves a file as its output."""

    def install(output: Path) -> None:
        program = tmp_path / "bin/fio"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\ncp {shlex.quote(str(output))} fio.json\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return install


def ran(folder: Path, **changes: str) -> Path:
    """Real fio's output of JOB with other options."""
    job = JOB
    for name, value in changes.items():
        job = re.sub(rf"^{name}=.*$", f"{name}={value}", job, flags=re.MULTILINE)
    folder.mkdir()
    run_fio(None, job, folder)
    return folder / "fio.json"


@pytest.mark.parametrize(("name", "value"), [("size", "2m"), ("bs", "8k"), ("rw", "randread")])
def test_json_of_another_job_is_refused(
    tmp_path: Path, impostor: Callable[[Path], None], name: str, value: str
) -> None:
    impostor(ran(tmp_path / "other", **{name: value}))
    (tmp_path / "own").mkdir()
    with pytest.raises(
        CellFailed, match=f"^fio's JSON is from another job: fio ran with {name}={value}, but job.fio has "
    ):
        run_fio(None, JOB, tmp_path / "own")


def test_json_that_does_not_repeat_its_job_is_refused(tmp_path: Path, impostor: Callable[[Path], None]) -> None:
    output = ran(tmp_path / "other")
    document = json.loads(output.read_text())
    del document["global options"]["bs"]
    output.write_text(json.dumps(document))
    impostor(output)
    (tmp_path / "own").mkdir()
    with pytest.raises(CellFailed, match=r"^fio's JSON is from another job: it does not repeat bs=4k"):
        run_fio(None, JOB, tmp_path / "own")


def test_json_of_an_earlier_run_of_the_same_job_is_refused(tmp_path: Path, impostor: Callable[[Path], None]) -> None:
    output = ran(tmp_path / "other")
    document = json.loads(output.read_text())
    document["timestamp_ms"] -= 60_000
    output.write_text(json.dumps(document))
    impostor(output)
    (tmp_path / "own").mkdir()
    with pytest.raises(CellFailed, match=r"^fio's JSON is from another run: fio printed it at .*, but started at "):
        run_fio(None, JOB, tmp_path / "own")


@pytest.mark.parametrize(
    "more",
    [{}, {"read_share": 65}, {"read_share": 0, "entropy": 0.5}, {"pattern": "sequential", "threads": 2},
     {"block_sizes": [{"block_size_bytes": 4096, "share": 0.5}, {"block_size_bytes": 8192, "share": 0.5}]},
     {"beside": {"pattern": "random", "read_share": 0, "block_size_bytes": 8192, "threads": 1, "queue_depth": 1}}],
)  # fmt: skip
def test_json_of_the_same_job_is_accepted(tmp_path: Path, more: dict[str, Any]) -> None:
    file = tmp_path / "a:file"
    file.write_bytes(bytes(1 << 24))
    cell = Cell(**{"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 2, "queue_depth": 1,
                   "runtime_s": 0.2, **more})  # fmt: skip
    job = job_text(cell, str(file).replace(":", "\\:"), "libaio", 1 << 24, 512, 7).replace("direct=1", "direct=0")
    run_fio(None, job, tmp_path)
    assert (tmp_path / "exit_code").read_text() == "0\n"


def test_unreadable_output_is_reported_by_its_reader(tmp_path: Path, impostor: Callable[[Path], None]) -> None:
    (tmp_path / "text").write_text("fio: no such thing\n")
    impostor(tmp_path / "text")
    (tmp_path / "own").mkdir()
    run_fio(None, JOB, tmp_path / "own")


@pytest.mark.parametrize(
    ("runtime_s", "progress_until_s", "outstanding", "words"),
    [
        (100.0, 20, True, "the drive completed nothing for 60 s; drivelab killed fio"),
        (100.0, 20, False, "fio issued nothing for 60 s; drivelab killed fio"),
        (3.0, 1000, True, "fio ran 60 s longer than its runtime; drivelab killed it"),
        # The last completion was seen too late for the drive's own limit.
        (3.0, 10, True, "fio ran 60 s longer than its runtime, and the drive completed nothing in the last 54 s; "
         "drivelab killed it"),
    ],
)  # fmt: skip
def test_a_fio_that_must_end_is_told_by_its_cause(
    monkeypatch: pytest.MonkeyPatch, runtime_s: float, progress_until_s: int, outstanding: bool, words: str
) -> None:
    counters = chain(range(1, progress_until_s + 1), repeat(progress_until_s))
    monkeypatch.setattr(job_run, "_completed", lambda name: str(next(counters)))
    monkeypatch.setattr(job_run, "_outstanding", lambda name: outstanding)
    watchdog = job_run._Watchdog("sda", runtime_s, idles=False)

    def watch() -> None:
        for now_s in range(1, 1000):
            watchdog.check(float(now_s))

    with pytest.raises(CellFailed) as failed:
        watch()
    assert str(failed.value) == words


@pytest.mark.parametrize("name", ["iops", "total_ios", "bw", "runtime"])
def test_a_negative_number_of_fio_ends_the_cell(tmp_path: Path, impostor: Callable[[Path], None], name: str) -> None:
    """Stop rules compute with it: the stage ended with a traceback, "a bug in drivelab"."""
    output = ran(tmp_path / "other")
    document = json.loads(output.read_text())
    document["jobs"][0]["write"][name] = -5
    output.write_text(json.dumps(document))
    impostor(output)
    (tmp_path / "own").mkdir()
    with pytest.raises(CellFailed, match=rf"own/fio\.json has -5 as {name}, which cannot be negative; check which fio"):
        run_fio(None, JOB, tmp_path / "own")
