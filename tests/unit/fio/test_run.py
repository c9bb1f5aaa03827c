"""What a run of fio leaves beside its output."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from drivelab.fio.run import COMMAND, run_fio

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")

JOB = "[global]\nioengine=null\nsize=1m\nbs=4k\nrw=read\n[one]\n"


def test_the_command_that_is_kept_runs_the_job_again(tmp_path: Path) -> None:
    run_fio(None, JOB, tmp_path, slice_s=2.0)
    before = (tmp_path / "fio.json").stat()
    command = shlex.split((tmp_path / COMMAND).read_text())
    assert "--status-interval=2" in command
    done = subprocess.run(command, cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == int((tmp_path / "exit_code").read_text()) == 0
    assert (tmp_path / "fio.json").stat().st_mtime_ns > before.st_mtime_ns
