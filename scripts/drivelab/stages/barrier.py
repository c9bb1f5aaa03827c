"""A start barrier between processes: each says that it is ready, and all are let go at one moment.

Each process has one end of a pair of sockets, the one that conducts them all the others. Nobody looks at a clock: a
process that ends, however it ends, closes its socket, and that is how it is known to be gone.
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
    """Two connected ends, for who conducts and for one party; a message arrives whole, and a party's end is seen."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@dataclass(frozen=True)
class Release:
    """What a party learns when all are ready."""

    others: tuple[str, ...]
    """The other parties."""
    skew_s: float | None
    """Time between the first and the last start of the step before, seconds; None where no real time passed."""


class Barrier:
    """A party's end; `conduct` has the others'."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.set_inheritable(False)  # what this process starts must not keep the connection open

    def wait(self, point: str, started_s: float | None = None) -> Release:
        """Wait until all parties are at the same point; `started_s` says when this one began what came before it.

        Raises UserError when one of the others is gone.
        """
        told = _send(self._connection, {"point": point, "started_s": started_s})
        answer = _receive(self._connection) if told else None
        if answer is None:
            raise UserError("the process that starts all drives at the same time has ended; run again")
        if "gone" in answer:
            raise UserError(
                f"drive '{answer['gone']}' is no longer measured, so those that are to be measured at the same time "
                "end too; mend the cause and run again"
            )
        return Release(tuple(answer["others"]), answer["skew_s"])


def conduct(connections: Connections, done: Callable[[str], bool], end: Callable[[str], None]) -> str | None:
    """Let the parties go from point to point together until all have closed their connections.

    `done` is asked of a party whose connection is closed: whether it did all that it had to do. When one did not,
    `end` is called for those that are under way, and those that wait, also later, are told so. Returns that party;
    None if all ended in order.
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
    known = [one for one in starts_s if one is not None]
    return max(known) - min(known) if len(known) > 1 else None


def _send(connection: socket.socket, message: Mapping[str, Any]) -> bool:
    """Whether there was somebody to take it; that a party is gone is seen when it is read from."""
    try:
        connection.send(json.dumps(message).encode())
    except (BrokenPipeError, ConnectionResetError):
        return False
    return True


def _receive(connection: socket.socket) -> dict[str, Any] | None:
    """The next message; None when the other end is closed, be it with a message unread."""
    try:
        message = connection.recv(_LONGEST_MESSAGE)
    except ConnectionResetError:
        return None
    return dict(json.loads(message)) if message else None
