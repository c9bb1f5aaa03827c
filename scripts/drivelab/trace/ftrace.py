"""Capture with ftrace's `blk` tracer, which works in kernels whose lockdown refuses blktrace."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import BinaryIO, TextIO

from drivelab.errors import UserError

TRACING = Path("/sys/kernel/tracing")
RUN = Path("/run/drivelab")
BUFFER_KIB = 16 * 1024
"""Per CPU: at 64 bytes an event, a quarter of a million events between two polls."""
TOTAL_BUFFER_KIB = 256 * 1024
DRAIN_BYTES = 4 * 1024 * 1024
"""Nothing is read before a CPU's ring holds that much: a reader at work costs more than the tracing itself."""
OPTIONS = {"bin": "1", "context-info": "0", "annotate": "0", "markers": "0", "overwrite": "0"}
"""Binary records and nothing else: annotations and messages would put text between them. Without `overwrite` a
full ring drops new events and counts them, where it would else lose old ones."""


def possible(tracing: Path = TRACING) -> str | None:
    """Why the `blk` tracer cannot be used by this process; None if it can."""
    if os.geteuid() != 0:
        return "tracing needs root"
    try:
        tracers = (tracing / "available_tracers").read_text().split()
    except OSError:
        return f"there is no tracefs at {tracing}; mount it with 'mount -t tracefs tracefs {tracing}'"
    return None if "blk" in tracers else "this kernel has no blk tracer (CONFIG_BLK_DEV_IO_TRACE)"


class Ftrace:
    """One capture of one block device. The tracer is the kernel's only one, so a lock keeps others out.

    What is changed is written to a journal first. Whoever gets the lock while there is a journal restores from it,
    since its writer must have been killed.
    """

    name = "ftrace"

    def __init__(self, device_trace: Path, output: Path, tracing: Path = TRACING, run: Path = RUN) -> None:
        """`device_trace` is /sys/class/block/NAME/trace, `output` the base name of the files to write."""
        self._device_trace = device_trace
        self._output = output
        self._tracing = tracing
        self._run = run
        self._lock: TextIO | None = None
        self._readers: list[tuple[Path, int, BinaryIO]] = []
        self._processes: dict[int, str] = {}

    def start(self) -> None:
        """Begin to trace; raises UserError, with nothing changed, when someone else traces."""
        self._lock = lock(self._run)
        try:
            recover(self._run, self._tracing)
            self._refuse_foreign()
            _write_journal(self._run, self._state(), self._device_trace)
            self._set_up()
        except BaseException:
            self.abandon()
            raise

    def poll(self) -> None:
        """Read what has come together; call several times a second."""
        for cpu, reader, file in self._readers:
            if _stats(cpu)["bytes"] > DRAIN_BYTES:
                _drain(reader, file)

    def stop(self) -> Counter[str]:
        """End the tracing, read the rest and restore; returns losses by kind."""
        try:
            (self._device_trace / "enable").write_text("0")
            for _, reader, file in self._readers:
                _drain(reader, file)
            lost = self._losses()
            self._processes = _saved_processes(self._tracing)
            return lost
        finally:
            self.abandon()

    def processes(self) -> dict[int, str]:
        """Names of the processes by PID, as far as the kernel kept them; after `stop`."""
        return self._processes

    def abandon(self) -> None:
        """Restore the tracer's state and let go of everything; harmless when there is nothing to restore."""
        for _, reader, file in self._readers:
            os.close(reader)
            file.close()
        self._readers.clear()
        if self._lock is not None:
            recover(self._run, self._tracing)
            self._lock.close()
            self._lock = None

    def _refuse_foreign(self) -> None:
        tracer = (self._tracing / "current_tracer").read_text().strip()
        if tracer != "nop":
            raise UserError(
                f"the kernel's tracer '{tracer}' is in use by someone else; end that trace "
                f"(echo nop > {self._tracing}/current_tracer) and try again"
            )
        if events := (self._tracing / "set_event").read_text().split():
            raise UserError(f"kernel trace events are in use by someone else ({events[0]}, …); end that trace first")
        if (self._device_trace / "enable").read_text().strip() != "0":
            raise UserError(f"{self._device_trace.parent.name} is being traced by someone else; end that trace first")

    def _state(self) -> dict[str, str]:
        """Content of every file that `_set_up` writes, relative to the tracing directory, in the order to restore."""
        names = ["current_tracer", *(f"options/{name}" for name in OPTIONS), "trace_clock"]
        names += [f"per_cpu/{cpu.name}/buffer_size_kb" for cpu in _cpus(self._tracing)]
        return {name: _value(self._tracing / name) for name in [*names, "tracing_on"]}

    def _set_up(self) -> None:
        def put(name: str, value: str) -> None:
            (self._tracing / name).write_text(value)

        cpus = _cpus(self._tracing)
        put("tracing_on", "0")
        put("trace_clock", "mono")
        for cpu in cpus:
            put(f"per_cpu/{cpu.name}/buffer_size_kb", str(min(BUFFER_KIB, TOTAL_BUFFER_KIB // len(cpus))))
        put("current_tracer", "blk")
        for name, value in OPTIONS.items():
            put(f"options/{name}", value)
        for cpu in cpus:
            try:
                reader = os.open(cpu / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                raise UserError(f"{cpu}/trace_pipe is being read by someone else; end that reader first") from None
            number = cpu.name.removeprefix("cpu")
            file = self._output.with_name(f"{self._output.name}.blktrace.{number}").open("wb")
            self._readers.append((cpu, reader, file))
        (self._device_trace / "enable").write_text("1")
        put("tracing_on", "1")

    def _losses(self) -> Counter[str]:
        """Only the statistics of the ring tell: the records' sequence numbers are always 0 here."""
        lost: Counter[str] = Counter()
        for cpu, _, _ in self._readers:
            stats = _stats(cpu)
            for kind in ("overrun", "commit overrun", "dropped events", "entries"):
                lost[kind.replace(" ", "_")] += stats[kind]
        return lost


def recover(run: Path = RUN, tracing: Path = TRACING) -> bool:
    """Put the tracer back to how a killed capture found it; the caller holds the lock. True if there was anything."""
    journal = run / "ftrace.json"
    try:
        body = json.loads(journal.read_text())
    except FileNotFoundError:
        return False
    if body["boot_id"] == _boot_id():
        enable = Path(body["device_trace"]) / "enable"
        if enable.exists() and enable.read_text().strip() != "0":
            enable.write_text("0")
        (tracing / "tracing_on").write_text("0")
        for name, value in body["state"].items():
            (tracing / name).write_text(value)
    journal.unlink()
    return True


def lock(run: Path = RUN) -> TextIO:
    """The lock on the tracer, held until closed; raises UserError when another drivelab traces."""
    run.mkdir(parents=True, exist_ok=True)
    file = (run / "ftrace.lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UserError("another drivelab captures a trace; the kernel has one tracer only, wait for it") from None
    return file


def _write_journal(run: Path, state: dict[str, str], device_trace: Path) -> None:
    part = run / "ftrace.json.part"
    with part.open("w") as file:
        json.dump({"boot_id": _boot_id(), "device_trace": str(device_trace), "state": state}, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(run / "ftrace.json")


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _cpus(tracing: Path) -> list[Path]:
    return sorted((tracing / "per_cpu").glob("cpu*"), key=lambda path: int(path.name.removeprefix("cpu")))


def _value(path: Path) -> str:
    """What to write to get back to the present state: the choice in brackets, the size after the first use."""
    text = path.read_text().strip()
    chosen = re.search(r"\[(\S+)\]|expanded: (\d+)", text)
    return (chosen[1] or chosen[2]) if chosen else text


def _stats(cpu: Path) -> dict[str, int]:
    pairs = (line.split(": ") for line in (cpu / "stats").read_text().splitlines())
    return {name: int(value) for name, value in pairs if "ts" not in name.split()}


def _drain(reader: int, file: BinaryIO) -> None:
    """Whole records only come out of a read, as the buffer is larger than what the kernel gives at once."""
    while True:
        try:
            data = os.read(reader, 1 << 20)
        except BlockingIOError:
            return
        if not data:
            return
        file.write(data)


def _saved_processes(tracing: Path) -> dict[int, str]:
    lines = (line.split(maxsplit=1) for line in (tracing / "saved_cmdlines").read_text().splitlines())
    return {int(fields[0]): fields[1] for fields in lines if len(fields) == 2}
