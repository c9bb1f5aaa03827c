"""Events of a text in the files of blktrace, so that the decoder of captures matches them to requests."""

from __future__ import annotations

import shlex
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.trace import records
from drivelab.trace.decode import without_begin
from drivelab.trace.decoder import Decoder
from drivelab.trace.formats.common.trace_format import Tally, rows
from drivelab.trace.parquet_schema import FLAGS, ISSUE

MOST_SERIES = 256
"""Most ascending series of a volume; each is a file, and the decoder has 0.5 MB of buffers for each."""
MOST_VOLUMES = 512
_BUFFER_BYTES = 1 << 16
_BATCH_ROWS = 1 << 15
_RECORD = struct.Struct("<IIQQIIQIIHH12x")
_MAGIC = records.MAGIC | 8
_DEVICE = 1 << 20
_TIME_NOTE = records.NOTIFY | 1
_KEPT = ("process", "pid", "cpu", "error", "dispatch_id", "pieces", "requeues", *FLAGS)


class BlockEvent(NamedTuple):
    """An event of a request; `action` is a letter of blkparse and `word` the kernel's flags."""

    volume: str
    time_ns: int
    action: str
    word: int
    sector: int
    sectors: int
    cpu: int
    pid: int
    process: str
    error: int
    split_at: int = 0
    """First sector of the rest of a split request (X)."""


@dataclass(slots=True)
class _Series:
    """Events in order of time, in one file."""

    path: Path
    buffer: bytearray
    last_ns: int = 0

    def flush(self) -> None:
        with self.path.open("ab") as file:
            file.write(self.buffer)
        self.buffer.clear()


class BlockEvents:
    """The events of a text, by volume, in files of a folder.

    Text in order of time fills one file for each volume. Earlier events than the last one go to another file, as the
    output of several CPUs one after the other; the decoder merges the files.
    """

    def __init__(self, folder: Path, source: Path) -> None:
        self._folder = folder
        self._source = source
        self._volumes: dict[str, list[_Series]] = {}
        self._files = 0
        self._actions: Counter[str] = Counter()

    def add(self, event: BlockEvent) -> None:
        """Write an event; raise UserError if the text is in great disorder, or has too many volumes."""
        self._actions[event.action] += 1
        everything = self._volumes.setdefault(event.volume, [])
        series = next((series for series in everything if series.last_ns <= event.time_ns), None)
        if series is None:
            series = self._new_series(everything)
        series.last_ns = event.time_ns
        if event.action == "Q":
            series.buffer.extend(_record(event.time_ns, records.NOTIFY, pid=event.pid, payload=event.process.encode()))
        series.buffer.extend(
            _record(
                event.time_ns, event.word | records.ACTIONS.index(event.action), event.sector,
                event.sectors * records.SECTOR_BYTES, event.pid, event.cpu, event.error,
                event.split_at.to_bytes(8, "big") if event.split_at else b"",
            )
        )  # fmt: skip
        if len(series.buffer) > _BUFFER_BYTES:
            series.flush()

    def requests(self, tally: Tally) -> Iterator[pa.RecordBatch]:
        """Yield the requests of one volume after the other; raise UserError if no event begins any."""
        for series in (series for everything in self._volumes.values() for series in everything):
            series.flush()
        if reason := without_begin(self._actions):
            raise UserError(f"{self._source}: {reason}")
        if "Q" not in self._actions and "D" in self._actions:
            tally.begins = ISSUE
        for volume in self._volumes:
            yield from self._decoded(volume, tally)

    def _new_series(self, everything: list[_Series]) -> _Series:
        if len(self._volumes) > MOST_VOLUMES:
            raise UserError(f"{self._source}: has more than {MOST_VOLUMES} devices; import a text of fewer")
        if len(everything) == MOST_SERIES:
            raise UserError(
                f"{self._source}: is not in order of time, so events cannot be matched; sort its lines, uncompressed, "
                f"with: LC_ALL=C sort -s -k4,4n {shlex.quote(str(self._source))} > sorted.txt"
            )
        self._files += 1
        path = self._folder / f"{self._files}.events"
        series = _Series(path, bytearray(_record(0, _TIME_NOTE)))  # the decoder counts times from the first record
        everything.append(series)
        return series

    def _decoded(self, volume: str, tally: Tally) -> Iterator[pa.RecordBatch]:
        files = [series.path for series in self._volumes[volume]]
        opened = partial(Decoder, files, from_dispatch=tally.begins == ISSUE, batch_rows=_BATCH_ROWS)
        with opened() as decoder:
            tally.unmatched.update(decoder.finish().unmatched)
            corrections = decoder.corrections()
        with opened(corrections=corrections) as decoder:
            for batch in decoder.batches():
                yield _requests(batch, volume)


def _record(
    time_ns: int, action: int, sector: int = 0, length: int = 0, pid: int = 0, cpu: int = 0, error: int = 0,
    payload: bytes = b"",
) -> bytes:  # fmt: skip
    head = _RECORD.pack(
        _MAGIC, 0, time_ns, sector, length, pid, action, _DEVICE, cpu, -error & 0xFFFF, len(payload)
    )  # fmt: skip
    return head + payload


def _requests(batch: pa.RecordBatch, volume: str) -> pa.RecordBatch:
    """Return rows of a format; the decoder reuses the memory of its batch."""
    count = batch.num_rows
    batch = batch.take(pa.array(np.arange(count)))
    queue = batch["queue_ns"]
    return rows(
        line=np.arange(count),  # they are in order, so no message needs their lines
        time=queue.to_numpy(),
        operation=batch["operation"].indices.to_numpy(),
        response_ns=pc.subtract(batch["complete_ns"], queue),
        dispatch_delay_ns=pc.subtract(batch["dispatch_ns"], queue),
        volume=pa.array([volume] * count, pa.string()).dictionary_encode(),
        **{name: batch[name].to_numpy() for name in ("offset_bytes", "length_bytes")},
        **{name: batch[name] for name in _KEPT},
    )
