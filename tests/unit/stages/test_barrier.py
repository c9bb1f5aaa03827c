"""The start barrier between real processes: together or not at all, however one of them ends."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drivelab.errors import UserError
from drivelab.stages.barrier import Barrier, Release, conduct, pair

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
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whatever the tests before have made of it
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
    made = Parties()
    yield made
    for name, pid in made.pids.items():
        if name not in made.statuses:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    for connection in made.connections.values():
        connection.close()


def test_nobody_passes_a_point_before_all_are_there(parties: Parties, tmp_path: Path) -> None:
    """Each notes its coming and going in one file, in the order in which they happen."""
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


def test_all_learn_who_the_others_are_and_how_far_apart_they_began() -> None:
    """In threads, so that what they learn can be looked at."""
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
    assert conduct({name: one for name, (one, _) in ends.items()}, lambda name: True, pytest.fail) is None
    for thread in threads:
        thread.join()
    for ours, _ in ends.values():
        ours.close()
    assert [one.skew_s for one in learned["a"]] == [None, 0.75, None]
    assert [one.others for one in learned["b"]] == [("a", "c")] * 3


def test_one_that_raises_releases_those_that_wait(parties: Parties, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(barrier: Barrier) -> None:
        barrier.wait("0")
        raise UserError("the drive is on fire")

    parties.add("waiting", lambda barrier: (barrier.wait("0"), barrier.wait("1"), None)[-1])
    parties.add("failing", fail)
    assert parties.conduct() == "failing"
    assert parties.statuses["failing"] == 2
    assert parties.statuses["waiting"] in (2, -signal.SIGTERM), "released, or ended on its way to the barrier"
    assert "the drive is on fire" in capfd.readouterr().err


def test_one_that_is_killed_is_named_to_one_that_waits_already(
    parties: Parties, capfd: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()

    def wait(barrier: Barrier) -> None:
        barrier.wait("0")

    def die(barrier: Barrier) -> None:
        os.read(read, 1)
        os.kill(os.getpid(), signal.SIGKILL)

    parties.add("waiting", wait)
    parties.add("dying", die)

    class Telling:
        """Lets the dying one go once the message of the waiting one has been read."""

        def __init__(self, connection: socket.socket) -> None:
            self._connection = connection

        def recv(self, size: int) -> bytes:
            message = self._connection.recv(size)
            if message:
                os.write(write, b".")
            return message

        def __getattr__(self, name: str) -> object:
            return getattr(self._connection, name)

    parties.connections["waiting"] = Telling(parties.connections["waiting"])  # type: ignore[assignment]
    assert parties.conduct() == "dying"
    assert parties.statuses == {"dying": -signal.SIGKILL, "waiting": 2}
    assert "the measurement of drive 'dying' ended early" in capfd.readouterr().err
    assert parties.ended == [], "one that waits is told, not ended"
    os.close(read)
    os.close(write)


def test_one_under_way_is_ended_when_another_fails(parties: Parties) -> None:
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


def test_one_that_leaves_before_the_others_is_a_fault_however_orderly(parties: Parties) -> None:
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
