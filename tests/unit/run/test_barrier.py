"""The start barrier between real processes: all start together or none does, whatever ends a process."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.run.together import Barrier, Release, conduct, pair

Work = Callable[[Barrier], None]


class Parties:
    """Forked processes, each with its end of the barrier."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self.connections: dict[str, socket.socket] = {}
        self.statuses: dict[str, int] = {}
        self.ended: list[str] = []

    def add(self, name: str, work: Work) -> None:
        ours, theirs = pair()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # earlier tests may have changed it
            status = 1
            try:
                for other in [ours, *self.connections.values()]:
                    other.close()
                work(Barrier(theirs))
                status = 0
            except UserError as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                status = 2
            finally:
                os._exit(status)
        theirs.close()
        self.pids[name], self.connections[name] = pid, ours

    def done(self, name: str) -> bool:
        if name not in self.statuses:
            self.statuses[name] = os.waitstatus_to_exitcode(os.waitpid(self.pids[name], 0)[1])
        return self.statuses[name] == 0

    def end(self, name: str) -> None:
        self.ended.append(name)
        os.kill(self.pids[name], signal.SIGTERM)

    def conduct(self) -> str | None:
        failed = conduct(self.connections, self.done, self.end)
        for name in self.pids:
            self.done(name)
        return failed


@pytest.fixture
def parties() -> Iterator[Parties]:
    group = Parties()
    yield group
    for name, pid in group.pids.items():
        if name not in group.statuses:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    for connection in group.connections.values():
        connection.close()


def test_no_party_passes_a_point_before_all_arrive(parties: Parties, tmp_path: Path) -> None:
    """Each party logs its arrival and departure in one file, in the order of the events."""
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def work(barrier: Barrier) -> None:
        for point in range(50):
            os.write(log, f"come {point}\n".encode())
            barrier.wait(str(point))
            os.write(log, f"go {point}\n".encode())

    for name in ("a", "b", "c"):
        parties.add(name, work)
    assert parties.conduct() is None
    os.close(log)
    lines = (tmp_path / "log").read_text().split("\n")
    for point in range(50):
        assert lines.index(f"go {point}") > max(i for i, line in enumerate(lines) if line == f"come {point}")
    assert parties.ended == []


def test_all_parties_learn_the_others_and_the_skew() -> None:
    """The parties run in threads, so that the test can inspect what they receive."""
    ends = {name: pair() for name in ("a", "b", "c")}
    learned: dict[str, list[Release]] = {name: [] for name in ends}

    def take(name: str, starts_s: list[float | None]) -> None:
        barrier = Barrier(ends[name][1])
        learned[name] += [barrier.wait(str(number), start_s) for number, start_s in enumerate(starts_s)]
        ends[name][1].close()

    starts = {"a": [None, 10.0, None], "b": [None, 10.5, 3.0], "c": [None, 9.75, None]}
    threads = [threading.Thread(target=take, args=(name, starts[name])) for name in ends]
    for thread in threads:
        thread.start()
    assert conduct({name: end for name, (end, _) in ends.items()}, lambda name: True, pytest.fail) is None
    for thread in threads:
        thread.join()
    for ours, _ in ends.values():
        ours.close()
    assert [release.skew_s for release in learned["a"]] == [None, 0.75, None]
    assert [release.others for release in learned["b"]] == [("a", "c")] * 3


def test_a_party_that_raises_releases_waiting_parties(parties: Parties, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(barrier: Barrier) -> None:
        barrier.wait("0")
        raise UserError("the drive is on fire")

    parties.add("waiting", lambda barrier: (barrier.wait("0"), barrier.wait("1"), None)[-1])
    parties.add("failing", fail)
    assert parties.conduct() == "failing"
    assert parties.statuses["failing"] == 2
    assert parties.statuses["waiting"] in (2, -signal.SIGTERM), "released, or ended before the barrier"
    assert "the drive is on fire" in capfd.readouterr().err


def test_a_killed_party_is_named_to_a_waiting_party(parties: Parties, capfd: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()

    def wait(barrier: Barrier) -> None:
        barrier.wait("0")

    def die(barrier: Barrier) -> None:
        os.read(read, 1)
        os.kill(os.getpid(), signal.SIGKILL)

    parties.add("waiting", wait)
    parties.add("dying", die)

    class ReleasingConnection:
        """Releases the dying party after the message of the waiting party was read."""

        def __init__(self, connection: socket.socket) -> None:
            self._connection = connection

        def recv(self, size: int) -> bytes:
            message = self._connection.recv(size)
            if message:
                os.write(write, b".")
            return message

        def __getattr__(self, name: str) -> object:
            return getattr(self._connection, name)

    parties.connections["waiting"] = ReleasingConnection(parties.connections["waiting"])  # type: ignore[assignment]
    assert parties.conduct() == "dying"
    assert parties.statuses == {"dying": -signal.SIGKILL, "waiting": 2}
    assert "the measurement of drive 'dying' ended early" in capfd.readouterr().err
    assert parties.ended == [], "a waiting party gets a message, and is not ended"
    os.close(read)
    os.close(write)


def test_a_running_party_is_ended_when_another_fails(parties: Parties) -> None:
    def fail(barrier: Barrier) -> None:
        barrier.wait("0")
        raise UserError("no")

    def work(barrier: Barrier) -> None:
        barrier.wait("0")
        signal.pause()

    parties.add("failing", fail)
    parties.add("working", work)
    assert parties.conduct() == "failing"
    assert parties.ended == ["working"]
    assert parties.statuses["working"] == -signal.SIGTERM


def test_a_party_that_leaves_early_fails_all(parties: Parties) -> None:
    parties.add("early", lambda barrier: None)
    parties.add("waiting", lambda barrier: (barrier.wait("0"), None)[-1])
    assert parties.conduct() == "early"
    assert parties.statuses == {"early": 0, "waiting": 2}


def test_a_party_whose_conductor_is_gone_does_not_wait_for_ever() -> None:
    ours, theirs = pair()
    ours.close()
    with pytest.raises(UserError, match="has ended; run again"):
        Barrier(theirs).wait("0")
    theirs.close()
