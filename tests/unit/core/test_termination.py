"""A command ends cleanly on a signal, at any point."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivelab.core.termination import end_in_thread

PATIENCE_S = 600.0
"""Time limit, reached only by a failed test."""
COMMAND = """
import os, signal, sys, time
from pathlib import Path
from drivelab.core.termination import deferred, end_in_order
end_in_order()
me = os.getpid()
try:
    {body}
    print("not interrupted")
except KeyboardInterrupt:
    os.kill(me, signal.SIGHUP)
    os.kill(me, signal.SIGTERM)
    print("cleaned up", flush=True)
    Path(sys.argv[1]).write_text("cleaned up")
"""


@pytest.fixture
def own_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_handlers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_handler_does_not_deadlock_with_the_main_thread(number: signal.Signals) -> None:
    """With the handler in the main thread, this test would hang."""
    lock, ended = threading.Lock(), threading.Event()

    def end(*_: object) -> None:
        with lock:
            ended.set()

    signal.signal(signal.SIGTERM, end)
    end_in_thread()
    with lock:
        os.kill(os.getpid(), number)
        assert not ended.wait(0.0)
    assert ended.wait(PATIENCE_S)


@pytest.mark.usefixtures("own_handlers")
def test_missing_handler_is_an_error() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with pytest.raises(RuntimeError, match="SIGTERM has no handler"):
        end_in_thread()


def run(tmp_path: Path, body: str, *before: str) -> str:
    command = [*before, sys.executable, "-c", COMMAND.format(body=body), str(tmp_path / "done")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_each_signal_ends_a_command_once_and_cleanly(tmp_path: Path, name: str) -> None:
    """Two more signals arrive during the clean-up, as from a shell whose terminal is closed."""
    assert run(tmp_path, f"os.kill(me, signal.{name})") == "cleaned up"


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT"])
def test_an_ignored_signal_stays_ignored(tmp_path: Path, name: str) -> None:
    """As under nohup, and in the background of a shell without job control."""
    ignoring = ["env", f"--ignore-signal={name.removeprefix('SIG')}"]
    assert run(tmp_path, f"os.kill(me, signal.{name})", *ignoring) == "not interrupted"


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_deferred_block_is_finished_first(tmp_path: Path, name: str) -> None:
    body = f"with deferred(), deferred(): os.kill(me, signal.{name}); print('all of it', flush=True)"
    assert run(tmp_path, body) == "all of it\ncleaned up"


def test_closed_terminal_does_not_stop_the_clean_up(tmp_path: Path) -> None:
    """Printing fails (EIO), and the kernel sends SIGHUP."""
    pid, terminal = pty.fork()
    if pid == 0:
        body = "print('begun', flush=True); time.sleep(600)"
        os.execv(sys.executable, [sys.executable, "-c", COMMAND.format(body=body), str(tmp_path / "done")])
    seen = b""
    while b"begun" not in seen:
        seen += os.read(terminal, 100)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert (tmp_path / "done").read_text() == "cleaned up"
