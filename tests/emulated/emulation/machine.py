"""One emulated machine: its QEMU process, the commands run in it, its kernel log, its end."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulation import host
from emulation.kernel import Kernel
from emulation.qmp import Monitor

BOOT_S = 300.0
COMMAND_S = 180.0
MONITOR_S = 30.0
_SLACK_S = 20.0
"""Extra time for the guest beyond a command's own time before the machine counts as hung."""
_PATIENCE = 5
"""Factor of all limits: they end what hangs. Beside other tests, an emulated processor is several times slower."""
_MEMORY_MIB = 1024


class GuestError(Exception):
    """A command failed in the guest, or the guest does not answer; the message has the output."""


@dataclass(frozen=True)
class Result:
    """The result of a command in the guest."""

    status: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        return json.loads(self.stdout)


@dataclass
class Machine:
    """An emulated machine; it starts when created. Call `wait_until_ready` before the first command.

    All its files are in `directory`.
    """

    directory: Path
    kernel: Kernel
    image: Path
    devices: Sequence[str]
    """QEMU arguments."""
    parameters: Sequence[str] = ()
    """Parameters of the kernel and, as MODULE.NAME=VALUE, of its modules."""
    _process: subprocess.Popen[bytes] = field(init=False, repr=False)
    _commands: socket.socket | None = field(init=False, default=None, repr=False)
    _monitor: Monitor | None = field(init=False, default=None, repr=False)
    _is_lost: bool = field(init=False, default=False, repr=False)
    """Whether an answer did not come; other tests of the machine then need not wait for theirs."""

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        qemu = host.which(host.QEMU)
        command_line = " ".join(
            ("console=ttyS0", "quiet", "loglevel=6", "mitigations=off", "panic=-1", *self.parameters)
        )
        command = [
            "setpriv", "--pdeathsig", "KILL", "--", str(qemu), "-accel", "tcg,thread=multi", "-machine", "pc",
            "-cpu", "max", "-smp", "2", "-m", f"{_MEMORY_MIB}M", "-display", "none", "-no-reboot", "-nodefaults",
            "-serial", f"file:{self._path('kernel.log')}",
            "-serial", f"unix:{self._path('commands')},server=on,wait=off",
            "-qmp", f"unix:{self._path('monitor')},server=on,wait=off",
            "-kernel", str(self.kernel.image), "-initrd", str(self.image), "-append", command_line, *self.devices,
        ]  # fmt: skip
        with self._path("qemu.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_until_ready(self) -> None:
        """Wait until the guest is ready; raises GuestError with the end of the kernel log."""
        deadline_s = time.monotonic() + _PATIENCE * BOOT_S
        self._commands = self._connect(deadline_s)
        self._commands.settimeout(max(0.1, deadline_s - time.monotonic()))
        if (line := self._line()) != "ready":
            raise GuestError(f"the guest sent {line!r} instead of ready")

    def run(self, command: str, timeout_s: float = COMMAND_S, *, check: bool = True) -> Result:
        """Run a shell command; raises GuestError if it fails (with `check`) or if the machine hangs."""
        status, output, errors = self._execute(command, timeout_s)
        result = Result(status, output.decode(errors="replace"), errors.decode(errors="replace"))
        if check and status != 0:
            raise GuestError(f"{command}\nended with status {status}\n{result.stdout}\n{result.stderr}")
        return result

    def read(self, path: str) -> bytes:
        """Return the content of a file in the guest; raises GuestError if there is no such file."""
        status, content, errors = self._execute(f"cat {path}", COMMAND_S)
        if status != 0:
            raise GuestError(errors.decode(errors="replace"))
        return content

    def start(self, name: str, command: str) -> None:
        """Start a shell command under a name, without waiting; `finish` returns its result."""
        self.run(f"({command} >/tmp/{name}.out 2>/tmp/{name}.err; echo $? >/tmp/{name}.status) >/dev/null 2>&1 &")

    def finish(self, name: str, timeout_s: float = COMMAND_S) -> Result:
        """Wait for a started command; return its result."""
        self.run(f"until [ -s /tmp/{name}.status ]; do sleep 0.1; done", timeout_s)
        status, output, errors = (self.read(f"/tmp/{name}.{kind}").decode() for kind in ("status", "out", "err"))
        return Result(int(status), output, errors)

    @property
    def monitor(self) -> Monitor:
        if self._monitor is None:
            self._monitor = Monitor(self._path("monitor"), _PATIENCE * MONITOR_S)
        return self._monitor

    def unplug(self, device: str) -> None:
        """Remove a device, and wait until the guest gives it up; raises GuestError if it does not."""
        self.monitor.execute("device_del", id=device)
        try:
            self.monitor.wait_for("DEVICE_DELETED")
        except TimeoutError:
            raise GuestError(f"the guest does not give up {device}; its log:\n{self._log_end()}") from None

    def kernel_log(self) -> str:
        return self._path("kernel.log").read_text(errors="replace")

    def wait_for_log(self, pattern: str, timeout_s: float, begin: int = 0) -> str:
        """Wait until a line of the kernel log, from character `begin` on, matches; return this line.

        Raises GuestError if no line matches in time.
        """
        deadline_s = time.monotonic() + _PATIENCE * timeout_s
        while time.monotonic() < deadline_s:
            if match := re.search(f"^.*(?:{pattern}).*$", self.kernel_log()[begin:], re.MULTILINE):
                return match[0]
            time.sleep(0.05)
        raise GuestError(f"no '{pattern}' in the kernel log within {timeout_s:.0f} s:\n{self._log_end()}")

    def kill(self) -> None:
        """Kill QEMU without waiting, because it ends only after its I/O; see `reap`."""
        self._process.kill()

    def reap(self) -> None:
        """Wait for a killed QEMU."""
        self._process.wait(timeout=120)
        if self._commands is not None:
            self._commands.close()
        if self._monitor is not None:
            self._monitor.close()

    def _path(self, name: str) -> Path:
        return self.directory / name

    def _execute(self, command: str, timeout_s: float) -> tuple[int, bytes, bytes]:
        """Run a shell command; return exit status, output and errors; raises GuestError without an answer."""
        assert self._commands is not None
        assert "\n" not in command
        if self._is_lost:
            raise GuestError("the guest did not answer before")
        timeout_s *= _PATIENCE
        self._commands.settimeout(timeout_s + _SLACK_S)
        self._is_lost = True
        self._commands.sendall(f"{timeout_s:.0f} {command}\n".encode())
        status, output, errors = map(int, self._line().split())
        answer = status, self._bytes(output), self._bytes(errors)
        self._is_lost = False
        return answer

    def _connect(self, deadline_s: float) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(str(self._path("commands")))
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    raise GuestError(f"QEMU did not start: {self._path('qemu.log').read_text()}") from None
                time.sleep(0.05)

    def _line(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            line += self._bytes(1)
        return line.decode().strip()

    def _bytes(self, count: int) -> bytes:
        assert self._commands is not None
        data = b""
        while len(data) < count:
            try:
                part = self._commands.recv(count - len(data))
            except TimeoutError:
                raise GuestError(f"the guest does not answer; the end of its kernel log:\n{self._log_end()}") from None
            if not part:
                raise GuestError(
                    f"the machine has ended; {self._path('qemu.log').read_text()}\nthe end of its kernel log:\n"
                    f"{self._log_end()}"
                )
            data += part
        return data

    def _log_end(self) -> str:
        return "\n".join(self.kernel_log().splitlines()[-25:])
