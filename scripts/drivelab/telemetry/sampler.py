"""Sample telemetry sources during a measurement, and keep samples and remarks in `telemetry.jsonl`."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from drivelab.recording.writer import drop_half_line

NAME = "telemetry.jsonl"


class Log:
    """Append lines, each in one write. Failed writes are ignored: telemetry must not end a measurement."""

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        try:
            drop_half_line(path)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError:
            pass

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a line; write nothing after a failure, which may leave a partial line."""
        if self._descriptor is None:
            return
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            written = os.write(self._descriptor, data)
        except OSError:
            written = 0
        if written < len(data):
            self.close()

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def read_samples(recording: Path) -> Iterator[dict[str, float]]:
    """Yield the samples of a recording, finished or not, oldest first.

    The result is none without telemetry. `at_s` is Unix time. A sample has only the fields that were read.
    """
    for line in read_lines(recording):
        if "event" not in line:
            yield line


def read_lines(recording: Path) -> Iterator[dict[str, Any]]:
    """Yield samples and remarks, without an incomplete last line."""
    try:
        file = (recording / NAME).open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


FAST_S = 1.0
SLOW_S = 10.0
"""Period of sources that start a program or send the drive a command that delays others."""


@dataclass(frozen=True)
class Source:
    """A source that is read repeatedly during a measurement."""

    name: str
    read: Callable[[], dict[str, float]]
    """Return values by field, with units in the field names; fields without a value are left out.

    Raises any exception on failure.
    """
    period_s: float | None = FAST_S
    """Seconds between readings; None: only at the start and end of a measurement."""
    prompt: bool = False
    """Whether it answers from the kernel's memory within microseconds, independent of the drive; such sources are also
    read at the edges of every cell."""


def number_in(path: Path) -> float:
    """Return the number in a small file; raises OSError or ValueError."""
    return float(path.read_text())


_PATIENCE = 3
"""A source is dropped after this many consecutive failures."""
_END_S = 5.0
"""Maximum wait at the end of a measurement for a source that does not answer."""
_STUCK_S = 2.0
"""Maximum wait at an edge for a reading in progress."""
_FRESH_S = 0.01
"""An edge sample of this age is also the start of the next cell: reading it again would lengthen the gap."""
_KEPT_S = 60.0
"""Time before a cell for which samples stay in memory."""

Sample = dict[str, float]


@dataclass
class _Slot:
    """A source, one reading at a time."""

    source: Source
    lock: threading.Lock = field(default_factory=threading.Lock)
    failures: int = 0


class Sampler:
    """Sample within a `with` block.

    Never raise into the measurement, and never wait for a hanging source. One thread reads the prompt sources once a
    second. Each other source has its own thread, so that a drive that does not answer delays nothing else. Readings
    follow a fixed grid: a late reading does not delay the next, and missed readings are skipped.
    """

    def __init__(self, sources: Iterable[Source], recording: Path) -> None:
        """Write to the folder `recording`."""
        slots = [_Slot(source) for source in sources]
        self._prompt = [slot for slot in slots if slot.source.prompt]
        self._others = [slot for slot in slots if not slot.source.prompt]
        self._recording, self._keep = recording, False
        self._samples: list[Sample] = []
        self._latest_s = 0.0
        self._put_lock = threading.Lock()
        self._ending = threading.Event()
        self._threads: list[threading.Thread] = []
        self._log: Log | None = None
        self._offset_s = time.time() - time.monotonic()

    def unix_s(self, monotonic_s: float) -> float:
        """Convert a monotonic time to Unix time by the offset at the sampler's creation.

        A step of the host's clock during a measurement therefore moves neither samples nor cells.
        """
        return round(self._offset_s + monotonic_s, 6)

    def __enter__(self) -> Sampler:
        if not (self._prompt or self._others):
            return self
        self._log = Log(self._recording / NAME)
        names = [slot.source.name for slot in (*self._prompt, *self._others)]
        self._log.append({"at_s": self.now_s(), "event": "begin", "sources": names})
        self.edge(thorough=True)
        if self._prompt:
            self._start("prompt", self._prompt, FAST_S)
        for slot in self._others:
            if slot.source.period_s is not None:
                self._start(slot.source.name, [slot], slot.source.period_s)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        deadline_s = time.monotonic() + _END_S
        for thread in self._threads:
            thread.join(max(deadline_s - time.monotonic(), 0.0))
        if self._log is not None:
            self.edge(thorough=kind is None)
            with self._put_lock:
                self._log.append({"at_s": self.now_s(), "event": "end"})
                self._log.close()

    def edge(self, thorough: bool = False) -> None:
        """Sample the prompt sources at the start or end of a cell. With `thorough`, all sources that answer."""
        self._take(self._prompt)
        self._latest_s = self.now_s()
        for slot in self._others if thorough else ():
            self._take([slot], wait_s=_STUCK_S)

    def begin_cell(self, thorough: bool = False, *, keep: bool = False) -> None:
        """Sample an edge unless the last is fresh. With `keep`, hold the samples from now on in memory for `kept`.

        Samples that are too old for any further cell are dropped.
        """
        with self._put_lock:
            thorough |= keep and not self._keep
            self._keep = keep
            first_s = self.now_s() - _KEPT_S
            self._samples = [sample for sample in self._samples if sample["at_s"] >= first_s]
        if thorough or self.now_s() - self._latest_s > _FRESH_S:
            self.edge(thorough)

    def kept(self) -> list[Sample]:
        """Return the samples in memory, oldest first."""
        with self._put_lock:
            return sorted(self._samples, key=lambda sample: sample["at_s"])

    def now_s(self) -> float:
        """Return the current time on the scale of `unix_s`."""
        return self.unix_s(time.monotonic())

    def _start(self, name: str, slots: list[_Slot], period_s: float) -> None:
        thread = threading.Thread(target=self._beat, args=(slots, period_s), name=f"telemetry-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _beat(self, slots: list[_Slot], period_s: float) -> None:
        first_s = next_s = time.monotonic()
        while not self._ending.wait(max(next_s + period_s - time.monotonic(), 0.0)):
            self._take(slots)
            next_s = first_s + (time.monotonic() - first_s) // period_s * period_s
            if all(slot.failures >= _PATIENCE for slot in slots):
                return

    def _take(self, slots: list[_Slot], wait_s: float = -1.0) -> None:
        """Take one sample; `wait_s` limits the wait for another thread's reading."""
        at_s = self.now_s()
        values: Sample = {}
        for slot in slots:
            if slot.failures < _PATIENCE and slot.lock.acquire(timeout=wait_s):
                try:
                    values |= self._read(slot)
                finally:
                    slot.lock.release()
        if values:
            self._put({"at_s": at_s, **values})

    def _read(self, slot: _Slot) -> Sample:
        try:
            values = slot.source.read()
        except Exception as error:
            slot.failures += 1
            if slot.failures in (1, _PATIENCE):
                event = "failed" if slot.failures == 1 else "dropped"
                self._remark(event, slot.source.name, f"{type(error).__name__}: {error}")
            return {}
        slot.failures = 0
        return values

    def _put(self, sample: Sample) -> None:
        with self._put_lock:
            if self._keep:
                self._samples.append(sample)
            if self._log is not None:
                self._log.append(sample)

    def _remark(self, event: str, source: str, reason: str) -> None:
        with self._put_lock:
            if self._log is not None:
                self._log.append({"at_s": self.now_s(), "event": event, "source": source, "reason": reason})
