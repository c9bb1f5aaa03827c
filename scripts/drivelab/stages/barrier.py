"""A start barrier between processes: each reports ready, then all are released at the same moment.

Each process (a party) has one end of a socket pair; the conducting process has all the other ends. There is no
timeout: a process that ends in any way closes its socket, which shows that the process is gone.
"""

from __future__ import annotations

import json
import selectors
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from drivelab.errors import UserError

_LONGEST_MESSAGE = 65536
Connections = Mapping[str, socket.socket]


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected ends: the conductor's and the party's. Messages arrive whole; a closed end is detected."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@dataclass(frozen=True)
class Release:
    """What each party receives when all parties are ready."""

    others: tuple[str, ...]
    """The other parties."""
    skew_s: float | None
    """Time between the first and the last start of the step before, seconds; None where no real time passed."""


class Barrier:
    """A party's end of the connection; `conduct` has the other end."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.set_inheritable(False)  # child processes must not keep the connection open

    def wait(self, point: str, started_s: float | None = None) -> Release:
        """Wait until all parties are at the same point.

        `started_s` is when this party began the previous step. Raises UserError when another party or the conductor is
        gone.
        """
        sent = _send(self._connection, {"point": point, "started_s": started_s})
        answer = _receive(self._connection) if sent else None
        if answer is None:
            raise UserError("the process that starts all drives at the same time has ended; run again")
        if "gone" in answer:
            raise UserError(
                f"the measurement of drive '{answer['gone']}' ended early, so the drives that are measured at the "
                "same time stop too; fix the cause and run again"
            )
        return Release(tuple(answer["others"]), answer["skew_s"])


def conduct(connections: Connections, done: Callable[[str], bool], end: Callable[[str], None]) -> str | None:
    """Release the parties together at each point until all have closed their connections.

    `done` returns whether a party that closed its connection has completed its work. If it has not, `end` is called for
    each running party; parties that wait, now or later, receive the name of the failed party. Returns that name, or
    None if all parties completed.
    """
    waiting: dict[str, dict[str, Any]] = {}
    present, failed = set(connections), None
    with selectors.DefaultSelector() as selector:
        for name, connection in connections.items():
            selector.register(connection, selectors.EVENT_READ, name)
        while present:
            for key, _ in selector.select():
                message = _receive(connections[key.data])
                if message is not None:
                    waiting[key.data] = message
                    continue
                selector.unregister(connections[key.data])
                present.remove(key.data)
                waiting.pop(key.data, None)
                if failed is None and not done(key.data):
                    failed = key.data
                    for name in present - waiting.keys():
                        end(name)
            if waiting.keys() == connections.keys():
                _let_go(connections, waiting)
                waiting.clear()
            elif waiting and len(present) < len(connections):
                failed = failed or next(name for name in connections if name not in present)
                for name in waiting:
                    _send(connections[name], {"gone": failed})
                waiting.clear()
    return failed


def _let_go(connections: Connections, waiting: Mapping[str, Mapping[str, Any]]) -> None:
    points = {message["point"] for message in waiting.values()}
    assert len(points) == 1, f"the parties are at different points: {points}"  # they have the same steps
    skew_s = _skew_s(message["started_s"] for message in waiting.values())
    for name, connection in connections.items():
        _send(connection, {"others": [other for other in connections if other != name], "skew_s": skew_s})


def _skew_s(starts_s: Iterable[float | None]) -> float | None:
    known = [start_s for start_s in starts_s if start_s is not None]
    return max(known) - min(known) if len(known) > 1 else None


def _send(connection: socket.socket, message: Mapping[str, Any]) -> bool:
    """Send a message; return False if the other end is closed, which the next read reports."""
    try:
        connection.send(json.dumps(message).encode())
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _receive(connection: socket.socket) -> dict[str, Any] | None:
    """Return the next message; None when the other end is closed, even if it left a message unread."""
    try:
        message = connection.recv(_LONGEST_MESSAGE)
    except ConnectionResetError:
        return None
    return dict(json.loads(message)) if message else None
