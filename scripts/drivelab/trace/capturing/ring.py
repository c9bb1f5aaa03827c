"""Pages of ftrace's ring buffer, as trace_pipe_raw gives them, to the records that blktrace writes.

A page begins with the time of its first event (u64 ns) and the length of its data with two flags (u64); then come
events of a 32-bit head each: 5 bits of type and length, 27 bits of time since the event before. Sources: events/
header_page and header_event in tracefs, include/linux/ring_buffer.h, kernel/trace/ring_buffer.c (rb_event_length,
rb_update_read_stamp). The `blk` tracer's event is a record of blktrace whose magic, sequence and time are still to be
set (kernel/trace/blktrace.c, blk_trace_synthesize_old_trace): version 7, or 8 in kernels that have blk_io_trace2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from drivelab.trace.records import FLUSH, MAGIC, NOTIFY, WRITE

PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
MAX_SHORT = 28
"""Types up to this are lengths in words; type 0 has its length in the word after the head."""
MISSED_EVENTS = 1 << 31
COMMIT_BYTES = (1 << 27) - 1
STAMP_BITS = (1 << 59) - 1
"""A TIME_STAMP has these bits of the clock; the clock's upper ones stay (rb_fix_abs_ts)."""
HEAD_WORDS = 4
BYTES_WORD = 6
"""Of a record of either version: the request's length."""
QUEUE, COMPLETE = 1, 8
CHUNK_PAGES = 2048


class DamagedError(Exception):
    """The pages are not what the kernel's documents say."""


@dataclass(frozen=True)
class Version:
    """Where a version of the record has what (linux/blktrace_api.h); offsets in 32-bit words."""

    number: int
    words: int
    action: int
    device: int
    pdu: int
    """The payload's length is the upper half of this word."""


VERSIONS = (Version(7, 12, 7, 9, 11), Version(8, 16, 8, 10, 12))


@dataclass
class Counts:
    """What became of the pages of one CPU."""

    events: int = 0
    completions: int = 0
    """Of requests with data."""
    empty_completions: int = 0
    """Without data, those of the device's own flushes left out."""
    empty_queued: int = 0
    others: int = 0
    """Entries that are no record of the device: of another tracer, or messages."""
    missed: int = 0
    """Pages before which the kernel says that events are missing."""

    @property
    def entries(self) -> int:
        """All that the kernel counts as read."""
        return self.events + self.others


@dataclass(frozen=True)
class Entries:
    """Entries of some pages, in the order of the ring; arrays of one length."""

    page: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    """First word of the payload within its page."""
    length_bytes: npt.NDArray[np.int64]
    """Of the payload, padded to whole words."""
    time_ns: npt.NDArray[np.uint64]


def page_bytes(header_page: str) -> int:
    """Length of a page after the text of events/header_page; raises DamagedError when it cannot be told."""
    found = re.search(r"char data;\s*offset:(\d+);\s*size:(\d+);", header_page)
    if found is None or int(found[1]) != 4 * HEAD_WORDS:
        raise DamagedError("events/header_page does not describe a page of a 64-bit kernel")
    return int(found[1]) + int(found[2])


def convert(source: Path, size: int, device: int, out: BinaryIO) -> Counts:
    """Write the records of a file of pages of `size` bytes; `device` is the number that a record has for its device.

    Raises DamagedError for pages that are ill-formed. Memory is bounded by CHUNK_PAGES.
    """
    counts, version = Counts(), None
    for words in _chunks(source, size):
        counts.missed += int(np.count_nonzero(words[:, 2] & np.uint32(MISSED_EVENTS)))
        entries = parse(words)
        if version is None:
            version = _version(words, entries, device)
        if version is None:
            counts.others += len(entries.page)
            continue
        mine = _is_record(words, entries, device, version)
        counts.others += int(np.count_nonzero(~mine))
        chosen = Entries(entries.page[mine], entries.start[mine], entries.length_bytes[mine], entries.time_ns[mine])
        actions = words[chosen.page, chosen.start + version.action]
        data = words[chosen.page, chosen.start + BYTES_WORD] > 0
        kinds = actions & np.uint32(NOTIFY | 0xFF)
        own = (actions & np.uint32(FLUSH | WRITE)) == FLUSH
        counts.completions += int(np.count_nonzero((kinds == COMPLETE) & data))
        counts.empty_completions += int(np.count_nonzero((kinds == COMPLETE) & ~data & ~own))
        counts.empty_queued += int(np.count_nonzero((kinds == QUEUE) & ~data))
        counts.events += len(chosen.page)
        out.write(_records(words, chosen, version))
    return counts


def parse(words: npt.NDArray[np.uint32]) -> Entries:
    """Entries of pages, an array of shape (pages, words of a page): event by event, of all pages at once.

    Raises DamagedError when an entry goes beyond its page's data.
    """
    end = HEAD_WORDS + (words[:, 2] & np.uint32(COMMIT_BYTES)).astype(np.int64) // 4
    if (end > words.shape[1]).any():
        raise DamagedError("a page of the ring claims more data than it can hold")
    time_ns = words[:, :2].copy().view(np.uint64).reshape(-1)
    position = np.full(len(words), HEAD_WORDS, np.int64)
    rows = np.flatnonzero(position < end)
    found: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint64]]] = []
    while rows.size:
        at = position[rows]
        head = words[rows, at]
        after = words[rows, np.minimum(at + 1, words.shape[1] - 1)].astype(np.int64)
        kind, delta = (head & 31).astype(np.int64), head >> 5
        extended = (after.astype(np.uint64) << np.uint64(27)) + delta
        long = kind == 0
        step = np.where(long | (kind == PADDING), 1 + (after + 3) // 4, np.where(kind > MAX_SHORT, 2, 1 + kind))
        last = (kind == PADDING) & (delta == 0)
        step[last] = (end[rows] - at)[last]
        if (at + step > end[rows]).any() or (long & (after < 4)).any():
            raise DamagedError("an entry of the ring goes beyond its page")
        data = kind <= MAX_SHORT
        now = time_ns[rows]
        now = np.where(data, now + delta, now)
        now = np.where(kind == TIME_EXTEND, now + extended, now)
        now = np.where(kind == TIME_STAMP, (now & ~np.uint64(STAMP_BITS)) | extended, now)
        time_ns[rows] = now
        position[rows] = at + step
        length = np.where(long, after - 4, 4 * kind)
        found.append((rows[data], (at + 1 + long)[data], length[data], now[data]))
        rows = rows[position[rows] < end[rows]]
    if not found:
        nothing = np.empty(0, np.int64)
        return Entries(nothing, nothing, nothing, nothing.astype(np.uint64))
    page, start, length, time = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((start, page))
    return Entries(page[order], start[order], length[order], time[order])


def _chunks(source: Path, size: int) -> Iterator[npt.NDArray[np.uint32]]:
    with source.open("rb") as file:
        while data := file.read(size * CHUNK_PAGES):
            if len(data) % size:
                raise DamagedError("the last page of the ring is cut off")
            yield np.frombuffer(data, "<u4").reshape(-1, size // 4)


def _version(words: npt.NDArray[np.uint32], entries: Entries, device: int) -> Version | None:
    """The one version that entries have; None if none of them is a record."""
    for version in VERSIONS:
        if _is_record(words, entries, device, version).any():
            return version
    return None


def _is_record(words: npt.NDArray[np.uint32], entries: Entries, device: int, version: Version) -> npt.NDArray[np.bool_]:
    """Whether an entry names the device and is as long as it says; the kernel pads entries to 4 or 8 bytes."""
    limit = words.shape[1] - 1
    pdu = words[entries.page, np.minimum(entries.start + version.pdu, limit)] >> 16
    spare = entries.length_bytes - 4 * version.words - pdu.astype(np.int64)
    same = words[entries.page, np.minimum(entries.start + version.device, limit)] == np.uint32(device)
    mine: npt.NDArray[np.bool_] = same & (spare >= 0) & (spare < 8)
    return mine


def _records(words: npt.NDArray[np.uint32], entries: Entries, version: Version) -> bytes:
    """The entries as blktrace's records, each with its payload."""
    columns = np.arange(version.words)
    heads = words[entries.page[:, None], entries.start[:, None] + columns]
    heads[:, 0] = MAGIC | version.number
    heads[:, 1] = 0
    heads[:, 2:4] = entries.time_ns.view(np.uint32).reshape(-1, 2)
    pdu = (heads[:, version.pdu] >> 16).astype(np.int64)
    if not pdu.any():
        return bytes(heads.tobytes())
    length = 4 * version.words + pdu
    offset = np.cumsum(length) - length
    out = np.empty(int(length.sum()), np.uint8)
    flat, page_size = words.view(np.uint8).reshape(-1), 4 * words.shape[1]
    source = entries.page * page_size + 4 * (entries.start + version.words)
    out[offset[:, None] + np.arange(4 * version.words)] = heads.view(np.uint8).reshape(len(heads), -1)
    for size in np.unique(pdu[pdu > 0]).tolist():
        rows = np.flatnonzero(pdu == size)
        payload = flat[source[rows, None] + np.arange(size)]
        out[offset[rows, None] + 4 * version.words + np.arange(size)] = payload
    return out.tobytes()
