"""A command that is asked to end does, wherever it is, and in order."""

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

from drivelab.termination import on_termination

PATIENCE_S = 60.0
"""Only ends a test that has failed."""
COMMAND = """
import os, signal, sys, time
from pathlib import Path
from drivelab.termination import deferred, end_in_order
end_in_order()
me = os.getpid()
try:
    {body}
    print("not interrupted")
except KeyboardInterrupt:
    os.kill(me, signal.SIGHUP)
    os.kill(me, signal.SIGTERM)
    print("cleared up", flush=True)
    Path(sys.argv[1]).write_text("cleared up")
"""


@pytest.fixture
def own_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_handlers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_main_thread_may_hold_what_the_handler_takes(number: signal.Signals) -> None:
    """Where the handler ran in the main thread, this would hang."""
    lock, ended = threading.Lock(), threading.Event()

    def end() -> None:
        with lock:
            ended.set()

    on_termination(end)
    with lock:
        os.kill(os.getpid(), number)
        assert not ended.wait(0.0)
    assert ended.wait(PATIENCE_S)


def run(tmp_path: Path, body: str, *before: str) -> str:
    words = [*before, sys.executable, "-c", COMMAND.format(body=body), str(tmp_path / "done")]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_each_signal_ends_a_command_once_and_in_order(tmp_path: Path, name: str) -> None:
    """The clearing up gets two more signals, as from a shell whose terminal is closed."""
    assert run(tmp_path, f"os.kill(me, signal.{name})") == "cleared up"


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT"])
def test_an_ignored_signal_stays_ignored(tmp_path: Path, name: str) -> None:
    """As with nohup, and in the background of a shell without job control."""
    ignoring = ["env", f"--ignore-signal={name.removeprefix('SIG')}"]
    assert run(tmp_path, f"os.kill(me, signal.{name})", *ignoring) == "not interrupted"


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_what_must_not_be_done_by_half_is_done_first(tmp_path: Path, name: str) -> None:
    body = f"with deferred(), deferred(): os.kill(me, signal.{name}); print('all of it', flush=True)"
    assert run(tmp_path, body) == "all of it\ncleared up"


def test_a_closed_terminal_does_not_stop_the_clearing_up(tmp_path: Path) -> None:
    """Printing to it fails (EIO), and the kernel sends SIGHUP."""
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
    assert (tmp_path / "done").read_text() == "cleared up"
