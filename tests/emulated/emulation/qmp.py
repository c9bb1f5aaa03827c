"""QEMU's control socket (QEMU Machine Protocol)."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any


class Monitor:
    """A connection to a running QEMU."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout_s)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        self._events: list[str] = []
        self._lines.readline()  # the greeting
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: object) -> Any:
        """Run a command; raises RuntimeError with QEMU's message if QEMU refuses."""
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = self._read()
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise RuntimeError(f"QEMU refuses {command}: {answer['error']['desc']}")

    def wait_for(self, event: str) -> None:
        """Wait for an event, which may have come before this call; raises TimeoutError."""
        while event not in self._events:
            self._read()
        self._events.remove(event)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def _read(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            raise RuntimeError("QEMU has ended")
        answer: dict[str, Any] = json.loads(line)
        if "event" in answer:
            self._events.append(answer["event"])
        return answer
