"""Check that a drive returns what a replay wrote last, right after it or after a power cut.

A write is *required* if the drive promised to keep it: it completed, and after a power cut it also had FUA or completed
before the issue of a completed flush. A block must hold a write that no required write of the block followed. One write
follows another if it was issued after the other completed, so of writes in flight together any may be the last. Newer
data is never wrong. A block of which the drive promised nothing may hold anything but parts of several writes, because
a drive writes logical blocks whole, also when power fails.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from drivelab.core.errors import UserError
from drivelab.replay.survey import union
from drivelab.replay.verify.data_requests import (
    DISCARD,
    FLUSH,
    NAMED,
    NEVER,
    WRITE,
    Data,
    Requests,
    data_of,
    requests_of,
)
from drivelab.replay.verify.written_data import origins, pattern, uniform
from drivelab.trace.statistics.batch import Flags, Ints, Words

FAULTS = ("lost", "torn", "misdirected", "unreadable")
_WINDOW_BYTES = 16 << 20
_MOST_PAIRS = 1 << 22


class _Changes(NamedTuple):
    """Issued requests that change data, by begin; arrays of shape (requests,)."""

    begin: Ints
    end: Ints
    operation: Ints
    issue_ns: Ints
    complete_ns: Ints
    """PENDING without a successful completion."""
    required: Flags

    def part(self, chosen: Flags | Ints | slice) -> _Changes:
        begin, end, operation, issue_ns, complete_ns, required = self
        return _Changes(begin[chosen], end[chosen], operation[chosen], issue_ns[chosen], complete_ns[chosen],
                        required[chosen])  # fmt: skip


def read_back(path: str, outcome: Path, *, power_cut: bool = False, volume: str | None = None) -> dict[str, Any]:
    """Check the data of a replay, or of one of its volumes, on a target; see check_target.

    Raises UserError also when the outcome cannot be read or has no such data.
    """
    return check_target(path, requests_of(outcome, volume), data_of(outcome), power_cut=power_cut)


def check_target(path: str, requests: Requests, data: Data, *, power_cut: bool = False) -> dict[str, Any]:
    """Compare all blocks that a replay and its prefill wrote with a target; return counts, JSON-able.

    The target is only read. Data of another volume than that of `requests` is data of no replay. `power_cut`: the drive
    lost power after the replay began, so it may have lost its volatile cache. The result has the number of blocks of
    each kind of FAULTS; `examples` describes the first. Memory: about 100 B for each request, and a few times 16 MiB of
    data. Raises UserError if the target cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the path and your permissions") from None
    try:
        return _check(descriptor, requests, data, power_cut)
    finally:
        os.close(descriptor)


def _check(descriptor: int, requests: Requests, data: Data, power_cut: bool) -> dict[str, Any]:
    operation, completed = requests.operation, requests.completed
    flushed_ns = int(requests.issue_ns[(operation == FLUSH) & completed].max(initial=NEVER))
    kept = requests.fua | (requests.complete_ns <= flushed_ns)
    changes = np.flatnonzero(requests.changes)
    changes = changes[np.argsort(requests.begin[changes], kind="stable")]
    check = _Check(
        _Changes(requests.begin, requests.end, operation, requests.issue_ns, requests.complete_ns,
                 completed & (kept | (not power_cut))).part(changes),
        requests,
        data,
    )  # fmt: skip
    writes = check.changes.part(check.changes.operation == WRITE)
    for begin, end in zip(*(edge.tolist() for edge in union(writes.begin, writes.end)), strict=True):
        for at in range(begin, end, _WINDOW_BYTES):
            check.read(descriptor, at, min(at + _WINDOW_BYTES, end))
    return {
        "power_cut": power_cut,
        "block_bytes": data.block_bytes,
        "checked_blocks": check.blocks,
        "required_blocks": check.required,
        **check.faults,
        "examples": check.examples,
    }


class _Check:
    """Counts of the blocks so far."""

    def __init__(self, changes: _Changes, requests: Requests, data: Data) -> None:
        self.changes, self._requests = changes, requests
        self._seed, self._block_bytes, self._pattern = *data, pattern(*data)
        self._longest = int((changes.end - changes.begin).max(initial=0))
        self.blocks = self.required = 0
        self.faults = dict.fromkeys(FAULTS, 0)
        self.examples: list[str] = []

    def read(self, descriptor: int, begin: int, end: int) -> None:
        """Check the blocks of [begin, end)."""
        count = (end - begin) // self._block_bytes
        addresses = begin + np.arange(count) * self._block_bytes
        self.blocks += count
        with mmap.mmap(-1, end - begin) as buffer:  # whole pages, as direct I/O needs
            try:
                done = os.preadv(descriptor, [buffer], begin)
            except OSError as error:
                done, reason = 0, error.strerror
            else:
                reason = "the target ends there"
            done -= done % self._block_bytes
            content = np.frombuffer(buffer[:done], np.uint64).reshape(-1, self._block_bytes // 8)
        readable = len(content)
        self._report("unreadable", addresses[readable:], np.full(count - readable, reason))
        promised = self._promised(addresses)
        self.required += int((promised[0] != NEVER).sum())
        self._judge(content, addresses[:readable], *(times_ns[:readable] for times_ns in promised))

    def _judge(self, content: Words, addresses: Ints, required_ns: Ints, zeroed_ns: Ints, undefined_ns: Ints) -> None:
        complete_ns = self._requests.complete_ns
        whole = uniform(content, self._pattern)
        request, place = (values[:, 0] for values in self._origins(content[:, :1]))
        written = whole & (request >= 0)
        here = written & (place == addresses)
        old = complete_ns[request] < required_ns
        zeroes = (content == 0).all(axis=1) & (zeroed_ns >= required_ns)
        defined = (undefined_ns < required_ns) | (undefined_ns == NEVER)
        torn = np.zeros(addresses.size, np.bool_)
        torn[~whole] = (self._origins(content[~whole])[0] >= 0).any(axis=1)
        torn &= defined
        misdirected = defined & written & ~here
        lost = defined & (required_ns != NEVER) & ~torn & ~misdirected & ~zeroes & ~(here & ~old)
        stale = np.where(here, "an older write is there", "no data of the replay is there")
        self._report("lost", addresses[lost], stale[lost])
        self._report("torn", addresses[torn], np.full(int(torn.sum()), "parts of several writes are there"))
        self._report("misdirected", addresses[misdirected],
                     np.array([f"data of {at} B is there" for at in place[misdirected][:NAMED]]))  # fmt: skip

    def _origins(self, content: Words) -> tuple[Ints, Ints]:
        """Return the write that each word came from, -1 if none, and the address of the block that it belongs to."""
        begin, length = self._requests.begin, self._requests.end - self._requests.begin
        origin = origins(content, self._pattern[: content.shape[1]], self._seed)
        request = np.clip(origin.request, 0, begin.size - 1)
        within = origin.block * self._block_bytes
        valid = (origin.request == request) & self._requests.writes[request] & (within < length[request])
        return np.where(valid, request, -1), begin[request] + within

    def _promised(self, addresses: Ints) -> tuple[Ints, Ints, Ints]:
        """Return, for each block, times in ns, NEVER if there is none.

        The last issue of a required request; the last completion that zeroes the block, or may do so; the last
        completion of a discard, after which the content is undefined.
        """
        begin, end = int(addresses[0]) if addresses.size else 0, int(addresses[-1]) + 1 if addresses.size else 0
        low, high = np.searchsorted(self.changes.begin, (begin - self._longest, end))
        near = self.changes.part(slice(low, high))
        near = near.part(near.end > begin)
        times = tuple(np.full(addresses.size, NEVER) for _ in range(3))
        first = np.maximum(near.begin - begin, 0) // self._block_bytes
        last = np.minimum((near.end - begin) // self._block_bytes, addresses.size)
        counts = np.maximum(last - first, 0)
        parts = np.searchsorted(np.cumsum(counts), np.arange(0, int(counts.sum()) + _MOST_PAIRS, _MOST_PAIRS))
        for part in (slice(*edges) for edges in zip(parts, [*parts[1:], counts.size], strict=True)):
            some, row = near.part(part), np.repeat(np.arange(counts[part].size), counts[part])
            skipped = first[part] - (np.cumsum(counts[part]) - counts[part])
            block = np.arange(row.size) + np.repeat(skipped, counts[part])
            discards = some.operation == DISCARD
            for latest, of, values in (
                (times[0], some.required & ~discards, some.issue_ns),
                (times[1], some.operation != WRITE, some.complete_ns),
                (times[2], discards, some.complete_ns),
            ):
                np.maximum.at(latest, block[of[row]], values[row[of[row]]])
        return times[0], times[1], times[2]

    def _report(self, fault: str, addresses: Ints, reasons: npt.NDArray[Any]) -> None:
        self.faults[fault] += addresses.size
        room = max(NAMED - sum(example.startswith(fault) for example in self.examples), 0)
        named = zip(addresses[:room], reasons, strict=False)
        self.examples += [f"{fault}: block at {at} B: {reason}" for at, reason in named]
