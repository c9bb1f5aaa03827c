"""Capture with ftrace's `blk` tracer, where kernel lockdown refuses blktrace.

The ring is read rarely, as raw pages (trace_pipe_raw), and converted to blktrace's records after the capture. Reading
records from trace_pipe would cost ten times the CPU time while the command runs.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from drivelab.core.errors import UserError
from drivelab.trace.capturing import tracer
from drivelab.trace.capturing.capture_report import Cost
from drivelab.trace.capturing.disk import Disk
from drivelab.trace.capturing.tracer import OPTIONS

LEAST_KIB, MOST_KIB = 1024, 128 * 1024
"""Limits of a CPU's ring: 128 MiB hold two and a half million events."""
MEMORY_SHARE = 1 / 8
"""Share of the available memory for the rings of all CPUs."""
DRAIN_AT = 1 / 2
"""Fill share at which a ring is read. Reading costs CPU time; a large ring does not."""
FASTEST_BYTES_S = 200e6
"""No CPU fills its ring faster."""


@dataclass
class _Ring:
    """The ring of one CPU, open for reading."""

    cpu: Path
    reader: int
    exclusion: int
    """trace_pipe, open but never read: it has one reader, so no other process can take events from it."""
    file: BinaryIO
    pages: Path


class Ftrace:
    """One capture of one block device, under a lock: the kernel has one tracer."""

    name = "ftrace"

    def __init__(self, disk: Disk, output: Path) -> None:
        """`output` is the base name of the files to write."""
        self._disk = disk
        self._output = output
        self._lock: TextIO | None = None
        self._rings: list[_Ring] = []
        self._ours: dict[str, str] = {}
        self._cpu_s, self._drains, self._fill, self._size = 0.0, 0, 0.0, 0
        self._page = bytearray()
        self._number = 0
        self.remarks: list[str] = []
        """What is wrong with the capture, in sentences."""
        self.processes: dict[int, str] = {}
        """Process names by PID that the kernel kept, after `stop`."""

    @property
    def interval_s(self) -> float:
        """Interval between calls of `poll`; no CPU fills the rest of its ring in it."""
        return max(0.02, (1 - DRAIN_AT) * self._size / FASTEST_BYTES_S)

    def start(self) -> None:
        """Start tracing; raise UserError, changing nothing, if another tracer is active."""
        self._lock = tracer.lock()
        try:
            tracer.recover()
            tracer.mount()
            tracer.refuse_foreign(self._disk.trace)
            tracer.write_journal(self._disk.trace)
            self._set_up()
            self._ours = self._now()
        except BaseException:
            self.abandon()
            raise

    def poll(self) -> None:
        """Empty rings that are half full; raise UserError if writing fails."""
        begun_s = time.thread_time()
        for ring in self._rings:
            used = tracer.ring_counts(ring.cpu)["bytes"]
            self._fill = max(self._fill, used / self._size)
            if used > DRAIN_AT * self._size:
                self._drain(ring, used // len(self._page))
                self._drains += 1
        self._cpu_s += time.thread_time() - begun_s

    def stop(self) -> Counter[str]:
        """Stop, read the rest, restore, write the files; return losses by kind."""
        try:
            device, gone = f"{self._disk.trace}/", not self._disk.trace.exists()
            for name, now in self._now().items():
                if now != self._ours[name] and not (gone and name.startswith(device)):
                    self.remarks.append(f"{name} changed from '{self._ours[name]}' to '{now}' during the capture")
            for ring in self._rings:
                self._fill = max(self._fill, tracer.ring_counts(ring.cpu)["bytes"] / self._size)
            if self._disk.trace.exists():
                (self._disk.trace / "enable").write_text("0")
            for ring in self._rings:
                self._drain(ring, None)
            rings = list(self._rings)
            # Only the ring shows losses: the records' sequence numbers are always 0 here.
            counts = {ring.pages: tracer.ring_counts(ring.cpu) for ring in rings}
            lost = Counter({
                kind.replace(" ", "_"): sum(of_ring[kind] for of_ring in counts.values())
                for kind in ("overrun", "commit overrun", "dropped events", "entries")
            })  # fmt: skip
            self.processes = tracer.saved_processes()
        finally:
            self.abandon()
        lost["tracer_changed"] += len(self.remarks)
        self._convert(rings, {pages: of_ring["read events"] for pages, of_ring in counts.items()}, lost)
        for ring in rings:
            ring.pages.unlink()
        return lost

    def cost(self) -> Cost:
        """Return the cost of reading while the command ran."""
        return Cost(self._cpu_s, self._drains, self._fill, self._size)

    def abandon(self) -> None:
        """Restore the tracer and release all resources; does nothing if done before."""
        for ring in self._rings:
            os.close(ring.reader)
            os.close(ring.exclusion)
            ring.file.close()
        self._rings = []
        if self._lock is not None:
            try:
                tracer.recover()
            finally:
                self._lock.close()
                self._lock = None

    def _set_up(self) -> None:
        from drivelab.trace.capturing import ring  # imports numpy, which nothing else here needs

        self._number = self._disk.number  # read now: the device may be gone at the end
        self._page = bytearray(ring.page_bytes((tracer.TRACING / "events/header_page").read_text()))
        cpus = tracer.cpus()
        self._put("tracing_on", "0")
        self._put("trace_clock", "mono")
        self._put("tracing_cpumask", _mask([int(cpu.name.removeprefix("cpu")) for cpu in cpus]))
        self._put("saved_cmdlines_size", str(tracer.SAVED_PROCESSES))
        self._size = self._enlarge(cpus) * 1024
        try:
            self._put("current_tracer", "blk")
        except OSError:  # EBUSY: a trace_pipe is open
            raise UserError(
                f"another process reads the kernel's tracer (a trace_pipe in {tracer.TRACING} is open); end it first"
            ) from None
        for name, value in OPTIONS.items():
            self._put(f"options/{name}", value)
        for cpu in cpus:
            self._rings.append(self._open(cpu))
        try:
            (self._disk.trace / "enable").write_text("1")
        except OSError as error:
            raise UserError(f"{self._disk.device} cannot be traced ({error.strerror}); see what else uses it") from None
        self._put("tracing_on", "1")

    def _enlarge(self, cpus: list[Path]) -> int:
        """Make the rings as large as memory allows; return KiB per CPU."""
        size = ring_kib(_available_kib(), len(cpus))
        while True:
            try:
                for cpu in cpus:
                    self._put(f"per_cpu/{cpu.name}/buffer_size_kb", str(size))
                return size
            except OSError as error:
                if error.errno != errno.ENOMEM or size <= LEAST_KIB:
                    raise UserError(f"a tracer ring of {size} KiB failed: {error.strerror}; free some memory") from None
                size //= 2

    def _open(self, cpu: Path) -> _Ring:
        number = cpu.name.removeprefix("cpu")
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            exclusion = os.open(cpu / "trace_pipe", flags)
        except OSError:
            raise UserError(f"{cpu}/trace_pipe is read by another process; end it first") from None
        try:
            reader = os.open(cpu / "trace_pipe_raw", flags)
        except OSError as error:
            os.close(exclusion)
            raise UserError(f"{cpu}/trace_pipe_raw cannot be opened ({error.strerror})") from None
        pages = self._output.with_name(f"{self._output.name}.ring.{number}")
        return _Ring(cpu, reader, exclusion, pages.open("wb", buffering=1 << 20), pages)

    def _put(self, name: str, value: str) -> None:
        (tracer.TRACING / name).write_text(value)

    def _now(self) -> dict[str, str]:
        """Return the present values of all settings that decide what is traced."""
        state = {name: tracer.text(tracer.TRACING / name) for name in [*tracer.state(), "set_event"]}
        names = ("enable", "act_mask", "start_lba", "end_lba", "pid")
        files = [self._disk.trace / name for name in names]
        return state | {str(file): tracer.text(file) for file in files}

    def _drain(self, ring: _Ring, pages: int | None) -> None:
        """Read `pages` pages, or all if None."""
        while pages is None or pages > 0:
            try:
                if not os.readv(ring.reader, [self._page]):
                    return
            except BlockingIOError:
                return
            try:
                ring.file.write(self._page)
            except OSError as error:
                raise UserError(f"{ring.pages}: cannot be written ({error.strerror}); free some space") from None
            pages = None if pages is None else pages - 1

    def _convert(self, rings: list[_Ring], read: dict[Path, int], lost: Counter[str]) -> None:
        """Write the device's records, and note in `lost` what the rings lack."""
        from drivelab.trace.capturing import ring as ring_format

        for ring in rings:
            number = ring.cpu.name.removeprefix("cpu")
            try:
                with self._output.with_name(f"{self._output.name}.blktrace.{number}").open("wb") as out:
                    entries, missed = ring_format.convert(ring.pages, len(self._page), self._number, out)
            except ring_format.DamagedError as error:
                raise UserError(f"{ring.pages}: {error}; the kernel's ring format is unknown; use blktrace") from None
            except OSError as error:
                raise UserError(f"{self._output}: cannot be written ({error.strerror}); free some space") from None
            lost["missed"] += missed
            lost["read_by_others"] += abs(read[ring.pages] - entries)


def ring_kib(available_kib: int, cpus: int) -> int:
    """Return KiB of each CPU's ring, from the memory available to all rings."""
    return max(LEAST_KIB, min(MOST_KIB, int(available_kib * MEMORY_SHARE) // max(cpus, 1)))


def _available_kib() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    return 0


def _mask(cpus: list[int]) -> str:
    """Return a CPU mask as the kernel writes it: groups of 32 bits, highest first."""
    bits = sum(1 << cpu for cpu in cpus)
    groups = [f"{bits >> shift & 0xFFFFFFFF:08x}" for shift in range(0, max(cpus, default=0) + 1, 32)]
    return ",".join(reversed(groups))
