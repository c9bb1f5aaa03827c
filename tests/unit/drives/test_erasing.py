"""What happens to programs that use a drive when the stage that started them is killed."""

from __future__ import annotations

import fcntl
import io
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.drives import erasing, tools
from drivelab.drives.node import Node

DRIVE = "nvme9n1"
NODE = Node(-1, DRIVE, "259:9", "unknown")
START = """
import sys
from drivelab.drives import erasing, tools
run, *arguments = sys.argv[1:]
erasing.run("nvme9n1", *arguments) if run == "erasing" else tools.run(*arguments)
"""
PATIENCE_S = 600.0
"""Time limit of a failing test."""


class Program:
    """A shell script that reports its process number and ends on request."""

    def __init__(self, folder: Path, runner: str) -> None:
        self.numbers, self.gate = folder / "numbers", folder / "gate"
        os.mkfifo(self.numbers)
        os.mkfifo(self.gate)
        script = f"echo $$ >{self.numbers}; read answer <{self.gate}; echo erased"
        self.stage = subprocess.Popen([sys.executable, "-c", START, runner, "sh", "-c", script])
        self.pid = int(self.numbers.read_text())
        self.descriptor = os.pidfd_open(self.pid)

    def has_ended(self, timeout_s: float) -> bool:
        return bool(select.select([self.descriptor], [], [], timeout_s)[0])

    def finish(self) -> None:
        self.gate.write_text("continue\n")

    def kill_stage(self) -> None:
        self.stage.kill()
        self.stage.wait()

    def close(self) -> None:
        self.kill_stage()
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)
        os.close(self.descriptor)


@pytest.fixture(autouse=True)
def run_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[list[Program]]:
    started: list[Program] = []
    yield started
    for program in started:
        program.close()


def test_a_query_program_ends_with_its_stage(tmp_path: Path, programs: list[Program]) -> None:
    programs.append(Program(tmp_path, "tools"))
    programs[0].kill_stage()
    assert programs[0].has_ended(PATIENCE_S), "the program outlived its stage"


def test_an_erase_outlives_its_stage_and_the_next_command_waits(
    tmp_path: Path, programs: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", printed := io.StringIO())  # capfd loses what is written while it is read
    programs.append(program := Program(tmp_path, "erasing"))
    while not any(record.stat().st_size for record in (tmp_path / "run/erasing").iterdir()):
        assert program.stage.poll() is None, "the stage ended without a record of its program"
    program.kill_stage()
    waiting = threading.Thread(target=erasing.wait_until_ended, args=(NODE,), daemon=True)
    waiting.start()
    while not (output := printed.getvalue()).endswith("\n"):  # text and line end may arrive separately
        assert waiting.is_alive(), "the command did not wait"
    assert output.startswith(f"drive {DRIVE}: 'sh -c ")
    assert f"(process {program.pid}) is still erasing the drive. The stage that started it was killed" in output
    assert not program.has_ended(0)
    assert waiting.is_alive()
    program.finish()
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive()
    assert program.has_ended(PATIENCE_S)
    erasing.wait_until_ended(NODE)
    assert printed.getvalue() == output
    assert list((tmp_path / "run/erasing").iterdir()) == []


def test_other_drives_do_not_wait(tmp_path: Path, programs: list[Program], capfd: pytest.CaptureFixture[str]) -> None:
    programs.append(program := Program(tmp_path, "erasing"))
    program.kill_stage()
    erasing.wait_until_ended(Node(-1, "nvme8n1", "259:8", "unknown"))
    assert capfd.readouterr().out == ""


def test_the_terminal_of_the_stage_does_not_reach_an_erase(tmp_path: Path, programs: list[Program]) -> None:
    programs.append(program := Program(tmp_path, "erasing"))
    assert os.getsid(program.pid) == program.pid
    assert os.getsid(program.stage.pid) != program.pid


def test_the_output_of_an_erase_is_kept_and_its_record_is_not(tmp_path: Path) -> None:
    output = erasing.run(DRIVE, "sh", "-c", "echo out; echo complaint >&2; exit 3")
    assert output == tools.Output(3, "out\n", "complaint\n")
    assert list((tmp_path / "run/erasing").iterdir()) == []


def test_an_erase_continues_after_its_timeout(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    output = erasing.run(DRIVE, "sh", "-c", f"read answer <{gate}", timeout_s=0.01)
    assert output.status == tools.NO_ANSWER
    gate.write_text("continue\n")
    erasing.wait_until_ended(NODE)


def test_without_a_run_directory_nothing_is_erased(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(UserError, match=r"run: is not a folder\. Set DRIVELAB_RUN_DIR"):
        erasing.run(DRIVE, "touch", str(tmp_path / "erased"))
    assert not (tmp_path / "erased").exists()


def test_the_lock_file_of_the_next_erase_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another command also waited, and started its own erase before this command woke up."""
    record = tmp_path / "run/erasing" / f"{DRIVE}-unknown.json"
    record.parent.mkdir(parents=True)
    record.touch()
    lock, locks = fcntl.flock, list[int]()

    def exchange(descriptor: int, operation: int) -> None:
        lock(descriptor, operation)
        if not locks:
            record.unlink()
            record.write_text("{}")
        else:
            monkeypatch.undo()
            assert record.exists(), "the next erase's file was removed"
        locks.append(descriptor)

    monkeypatch.setattr(erasing.fcntl, "flock", exchange)
    erasing.wait_until_ended(NODE)
    assert len(locks) == 2
