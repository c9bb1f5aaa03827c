"""Convert pages of ftrace's ring buffer (trace_pipe_raw) to blktrace records.

A page begins with the time of its first event (u64 ns) and the length of its data with two flags (u64). Then events
follow, each with a 32-bit head: 5 bits of type and length, 27 bits of time since the previous event. Sources:
events/header_page and header_event in tracefs, include/linux/ring_buffer.h, kernel/trace/ring_buffer.c
(rb_event_length, rb_update_read_stamp). The `blk` tracer's event is a blktrace record without magic, sequence and time
(kernel/trace/blktrace.c, blk_trace_synthesize_old_trace). It has version 7, or 8 in kernels with blk_io_trace2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from drivelab.trace.records import MAGIC

PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31
MAX_SHORT = 28
"""Types up to this value are lengths in words; type 0 has its length in the word after the head."""
MISSED_EVENTS = 1 << 31
COMMIT_BYTES = (1 << 27) - 1
STAMP_BITS = (1 << 59) - 1
"""A TIME_STAMP sets these bits of the clock; the upper bits stay (rb_fix_abs_ts)."""
HEAD_WORDS = 4
CHUNK_PAGES = 512


class DamagedError(Exception):
    """The pages contradict the kernel's documentation."""


@dataclass(frozen=True)
class Version:
    """Layout of a record version (linux/blktrace_api.h); offsets in 32-bit words."""

    number: int
    words: int
    device: int
    pdu: int
    """The payload's length is the upper half of this word."""


VERSIONS = (Version(7, 12, 9, 11), Version(8, 16, 10, 12))


@dataclass(frozen=True)
class Entries:
    """Entries of some pages in ring order; arrays of equal length."""

    page: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    """First word of the payload within its page."""
    length_bytes: npt.NDArray[np.int64]
    """Length of the payload, padded to whole words."""
    time_ns: npt.NDArray[np.uint64]


def page_bytes(header_page: str) -> int:
    """Return a page's length from the text of events/header_page.

    Raises DamagedError when the text does not describe it.
    """
    header = re.search(r"char data;\s*offset:(\d+);\s*size:(\d+);", header_page)
    if header is None or int(header[1]) != 4 * HEAD_WORDS:
        raise DamagedError("events/header_page does not describe a page of a 64-bit kernel")
    return int(header[1]) + int(header[2])


def convert(source: Path, size: int, device: int, out: BinaryIO) -> tuple[int, int]:
    """Write the records from a file of pages of `size` bytes.

    Returns the number of entries of the ring (records of the device and of another tracer, messages), and of pages that
    the kernel marks as preceded by missing events. `device` is the device number in the records. Raises DamagedError
    for malformed pages. CHUNK_PAGES bounds the memory.
    """
    found = missed = 0
    version: Version | None = None
    for words in _chunks(source, size):
        missed += int(np.count_nonzero(words[:, 2] & np.uint32(MISSED_EVENTS)))
        entries = parse(words)
        found += len(entries.page)
        for known in VERSIONS if version is None else (version,):
            chosen = _is_record(words, entries, device, known)
            if chosen.any():
                version = known
                out.write(_records(words, entries, chosen, known))
                break
    return found, missed


def parse(words: npt.NDArray[np.uint32]) -> Entries:
    """Return the entries of pages, an array of shape (pages, words of a page).

    Proceeds event by event for all pages at once. Raises DamagedError when an entry exceeds its page's data.
    """
    end = HEAD_WORDS + (words[:, 2] & np.uint32(COMMIT_BYTES)).astype(np.int64) // 4
    if (end > words.shape[1]).any():
        raise DamagedError("a page of the ring claims more data than fits")
    time_ns = words[:, :2].copy().view(np.uint64).reshape(-1)
    position = np.full(len(words), HEAD_WORDS, np.int64)
    rows = np.flatnonzero(position < end)
    parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint64]]] = []
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
            raise DamagedError("an entry of the ring exceeds its page")
        data = kind <= MAX_SHORT
        now = time_ns[rows]
        now = np.where(data, now + delta, now)
        now = np.where(kind == TIME_EXTEND, now + extended, now)
        now = np.where(kind == TIME_STAMP, (now & ~np.uint64(STAMP_BITS)) | extended, now)
        time_ns[rows] = now
        position[rows] = at + step
        length = np.where(long, after - 4, 4 * kind)
        parts.append((rows[data], (at + 1 + long)[data], length[data], now[data]))
        rows = rows[position[rows] < end[rows]]
    if not parts:
        nothing = np.empty(0, np.int64)
        return Entries(nothing, nothing, nothing, nothing.astype(np.uint64))
    page, start, length, time = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((start, page))
    return Entries(page[order], start[order], length[order], time[order])


def _chunks(source: Path, size: int) -> Iterator[npt.NDArray[np.uint32]]:
    with source.open("rb") as file:
        while data := file.read(size * CHUNK_PAGES):
            if len(data) % size:
                raise DamagedError("the last page of the ring is cut off")
            yield np.frombuffer(data, "<u4").reshape(-1, size // 4)


def _is_record(words: npt.NDArray[np.uint32], entries: Entries, device: int, version: Version) -> npt.NDArray[np.bool_]:
    """Return whether each entry names the device and has its stated length. The kernel pads entries to 4 or 8 bytes."""
    limit = words.shape[1] - 1
    pdu = words[entries.page, np.minimum(entries.start + version.pdu, limit)] >> 16
    spare = entries.length_bytes - 4 * version.words - pdu.astype(np.int64)
    same = words[entries.page, np.minimum(entries.start + version.device, limit)] == np.uint32(device)
    matches: npt.NDArray[np.bool_] = same & (spare >= 0) & (spare < 8)
    return matches


def _records(words: npt.NDArray[np.uint32], entries: Entries, chosen: npt.NDArray[np.bool_], version: Version) -> bytes:
    """Return the chosen entries as blktrace records with their payloads."""
    page, start = entries.page[chosen], entries.start[chosen]
    length = 4 * version.words + (words[page, start + version.pdu] >> 16).astype(np.int64)
    offset = np.cumsum(length) - length
    source = 4 * (page * words.shape[1] + start)
    out = words.view(np.uint8).reshape(-1)[np.repeat(source - offset, length) + np.arange(length.sum())]
    begins = np.zeros((len(page), 4), np.uint32)  # magic, sequence, and two words of time
    begins[:, 0] = MAGIC | version.number
    begins[:, 2:] = entries.time_ns[chosen].view(np.uint32).reshape(-1, 2)
    out[offset[:, None] + np.arange(16)] = begins.view(np.uint8).reshape(len(page), -1)
    return bytes(out.tobytes())
