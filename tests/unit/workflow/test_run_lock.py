"""One process runs a study at a time, and the next one knows how the last one ended."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.recording.folders import RUN_LOCK
from drivelab.workflow.locks import hold

LOCK = """\
import os, sys, pathlib
from drivelab.workflow.locks import hold
lock = hold(pathlib.Path(sys.argv[1]), 'mine')
"""
HOLD = f"{LOCK}print(lock)"


def test_a_second_run_is_refused_and_says_who_runs(tmp_path: Path) -> None:
    lock = hold(tmp_path / "results", "mine")
    assert lock is not None
    with pytest.raises(UserError, match=rf"study 'mine' is being run .* by process {os.getpid()} on .*, since 20"):
        hold(tmp_path / "results", "mine")
    lock.ended_in_order()
    again = hold(tmp_path / "results", "mine")
    assert again is not None
    assert not again.interrupted


def test_a_snakemake_of_drivelab_run_shares_its_lock(tmp_path: Path) -> None:
    lock = hold(tmp_path, "mine")
    done = subprocess.run([sys.executable, "-c", HOLD, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"
    between = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', *sys.argv[1:]]).returncode)"
    command = [sys.executable, "-c", between, HOLD, str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "is being run" in refused.stderr
    assert lock is not None


@pytest.mark.parametrize("in_order", [True, False])
def test_an_interrupted_run_is_known(tmp_path: Path, in_order: bool) -> None:
    end = "lock.ended_in_order()" if in_order else "os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", LOCK + end, str(tmp_path)], check=in_order)
    assert ((tmp_path / RUN_LOCK).read_text() == "") is in_order
    lock = hold(tmp_path, "mine")
    assert lock is not None
    assert lock.interrupted is not in_order


def test_a_run_that_never_began_keeps_the_trace_of_the_one_before(tmp_path: Path) -> None:
    (tmp_path / RUN_LOCK).write_text("process 1 on a, since then")
    for _ in range(2):
        lock = hold(tmp_path, "mine")
        assert lock is not None
        assert lock.interrupted
        lock.ended_in_order(began=False)


def test_studies_have_separate_locks(tmp_path: Path) -> None:
    locks = [hold(tmp_path / name, name) for name in ("one", "one-more", "one/other-study")]
    assert None not in locks


def test_the_command_does_not_import_snakemake() -> None:
    code = "import sys, drivelab.cli.main, drivelab.cli.measure.runner; sys.exit('snakemake' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
