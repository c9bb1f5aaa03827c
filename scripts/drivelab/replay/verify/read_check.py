"""Check that reads during a replay returned what the replay wrote last.

A read must return a write that no other one followed before the read was issued: any write completed by then counts,
and of writes in flight together, or together with the read, any may be the last. A prefill right before the replay
counts as its first writes. Blocks that neither wrote before the read are not judged, except that they must not hold
data that belongs elsewhere. After a discard, a block may hold anything. While a change is in flight, a read may return
parts of both states: not all block devices read a block whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from drivelab.replay.verify.data_requests import (
    DISCARD,
    NAMED,
    NEVER,
    READ,
    WRITE,
    ZEROES,
    Requests,
)
from drivelab.replay.verify.read_origins import MIXED, UNSEEN, first_blocks, written_by
from drivelab.replay.verify.read_origins import ZEROES as ONLY_ZEROES
from drivelab.trace.statistics.batch import Flags, Ints, Words

READ_FAULTS = ("lost", "torn", "misdirected")
_MOST_PAIRS = 1 << 21
"""Pairs of a request and a block of it that are judged together, as far as one block has no more."""


def judge_reads(requests: Requests, origins: Words, block_bytes: int) -> dict[str, Any]:
    """Judge the data of all reads of a verified replay, or of one of its volumes; return counts, JSON-able.

    `origins` is the content of the file of origins. `checked_blocks` were read, with repeats; `required_blocks` of them
    had been written before, by this replay or its prefill. `unseen_blocks` were read as well, but the engine was killed
    before it looked at them. Each of READ_FAULTS is a number of blocks; `examples` describes the first of each. Memory:
    about 100 B for each request, and for each request of the most used block.
    """
    check = _Check(requests, origins, block_bytes)
    rows = np.flatnonzero(check.reads | requests.changes)
    if check.reads.any():
        check.judge(rows, 0, int(check.end[rows].max()))
    return check.result()


class _Seen(NamedTuple):
    """Blocks that reads returned; arrays of shape (blocks,). Times are ranks; -1 is never."""

    read: Ints
    block: Ints
    word: Words


class _Fault(NamedTuple):
    issue_ns: int
    read: int
    block: int
    word: int


class _Check:
    """Counts of the blocks so far."""

    def __init__(self, requests: Requests, origins: Words, block_bytes: int) -> None:
        self._requests, self._origins, self._block_bytes = requests, origins, block_bytes
        self.begin, self.end = requests.begin // block_bytes, requests.end // block_bytes
        self.reads = (requests.operation == READ) & requests.completed & (self.end > self.begin)
        self._first = first_blocks(requests.operation, requests.end - requests.begin, block_bytes)
        times = np.unique(np.concatenate([requests.issue_ns, requests.complete_ns]))
        self._issue, self._complete = (
            np.searchsorted(times, of_requests) for of_requests in (requests.issue_ns, requests.complete_ns)
        )
        self._ranks = times.size
        self._counts = dict.fromkeys(("checked", "required", "unseen", *READ_FAULTS), 0)
        self._faults: dict[str, list[_Fault]] = {fault: [] for fault in READ_FAULTS}

    def judge(self, rows: Ints, low: int, high: int) -> None:
        """Judge blocks `low` up to `high` of the requests `rows`, in halves if they are too many."""
        rows = rows[(self.end[rows] > low) & (self.begin[rows] < high)]
        if not self.reads[rows].any():
            return
        low, high = max(low, int(self.begin[rows].min())), min(high, int(self.end[rows].max()))
        first = np.maximum(self.begin[rows], low)
        count = np.minimum(self.end[rows], high) - first
        if count.sum() > _MOST_PAIRS and high - low > 1:
            middle = (low + high) // 2
            self.judge(rows, low, middle)
            self.judge(rows, middle, high)
            return
        request = np.repeat(rows, count)
        block = np.arange(request.size) + np.repeat(first - (np.cumsum(count) - count), count)
        is_read = self.reads[request]
        read = request[is_read]
        place = self._first[read] + block[is_read] - self.begin[read]
        seen = _Seen(read, block[is_read], np.asarray(self._origins[place]))
        self._judge(seen, request[~is_read], block[~is_read])

    def _judge(self, seen: _Seen, change: Ints, block: Ints) -> None:
        """Judge blocks, given all pairs of a change and a block of it in the same range of blocks."""
        operation, issue, complete = self._requests.operation[change], self._issue[change], self._complete[change]
        done = (operation != DISCARD) & self._requests.completed[change]
        written = self._latest(seen, self._issue, change[done], block[done], complete[done], issue[done])

        def until_the_end(chosen: Flags) -> Ints:
            """Return the last completion of changes that were issued before the read completed."""
            return self._latest(seen, self._complete, change[chosen], block[chosen], issue[chosen], complete[chosen])

        in_flight = until_the_end(np.ones(change.size, np.bool_)) > self._issue[seen.read]
        zeroed, discarded = until_the_end(operation != WRITE), until_the_end(operation == DISCARD)
        known = seen.word != UNSEEN
        defined = known & ~((discarded >= written) & (discarded >= 0))
        required = defined & (written >= 0)
        valid, here, last = self._returned(seen)
        torn = required & (seen.word == MIXED) & ~in_flight
        misdirected = defined & valid & ~here
        right = here & (last >= written) | (seen.word == ONLY_ZEROES) & (zeroed >= written) & (zeroed >= 0)
        lost = required & ~right & ~misdirected & (seen.word != MIXED)
        self._counts["checked"] += int(known.sum())
        self._counts["unseen"] += int((~known).sum())
        self._counts["required"] += int(required.sum())
        for fault, chosen in (("lost", lost), ("torn", torn), ("misdirected", misdirected)):
            self._report(fault, seen, np.flatnonzero(chosen))

    def _latest(self, seen: _Seen, until: Ints, change: Ints, block: Ints, time: Ints, value: Ints) -> Ints:
        """Return, for each block seen, the largest value of its changes with a time of at most `until` of its read.

        Times and values are ranks; -1 without such a change.
        """
        seen_count = seen.read.size
        blocks, times = np.concatenate([block, seen.block]), np.concatenate([time, until[seen.read]])
        values = np.concatenate([value, np.full(seen_count, -1)])
        order = np.lexsort((np.arange(blocks.size) >= change.size, times, blocks))
        ordered = blocks[order]
        segment = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])]) * (self._ranks + 1)
        latest = np.empty(blocks.size, np.int64)
        latest[order] = np.maximum.accumulate(segment + values[order] + 1) - segment - 1
        return latest[change.size :]

    def _returned(self, seen: _Seen) -> tuple[Flags, Flags, Ints]:
        """Return whether words name an issued write, whether it wrote this block, and when it completed, as a rank."""
        requests = self._requests
        known, request, number = written_by(seen.word)
        valid = known & (request < requests.begin.size)
        request = np.where(valid, request, 0)
        valid &= (requests.operation[request] == WRITE) & requests.changes[request]
        valid &= self.begin[request] + number < self.end[request]
        return valid, valid & (self.begin[request] + number == seen.block), self._complete[request]

    def _report(self, fault: str, seen: _Seen, rows: Ints) -> None:
        self._counts[fault] += rows.size
        issue_ns = self._requests.issue_ns[seen.read[rows]]
        for row in rows[np.argsort(issue_ns, kind="stable")[:NAMED]]:
            read = int(seen.read[row])
            self._faults[fault].append(
                _Fault(int(self._requests.issue_ns[read]), read, int(seen.block[row]), int(seen.word[row]))
            )
        self._faults[fault] = sorted(self._faults[fault])[:NAMED]

    def result(self) -> dict[str, Any]:
        named = [(fault, at) for fault, of_kind in self._faults.items() for at in of_kind]
        return {
            **{f"{name}_blocks": self._counts[name] for name in ("checked", "required", "unseen")},
            **{fault: self._counts[fault] for fault in READ_FAULTS},
            "examples": [f"{fault}: {self._words(at)}" for fault, at in named],
        }

    def _words(self, fault: _Fault) -> str:
        """Describe where and when, what was expected, and what was returned."""
        at, requests = fault.block * self._block_bytes, self._requests
        before = requests.changes & requests.completed & (requests.complete_ns <= fault.issue_ns)
        before &= (requests.begin <= at) & (requests.end > at) & (requests.operation != DISCARD)
        last = int(np.argmax(np.where(before, requests.issue_ns, NEVER)))
        expected = (
            f"expected {self._change(last)} or newer data" if before.any() else "expected no data of another block"
        )
        return (
            f"block at {at} B, read at {fault.issue_ns / 1e9:.6f} s (request {fault.read}): {expected}, "
            f"returned {self._content(fault)}"
        )

    def _change(self, request: int) -> str:
        if request >= self.begin.size - self._requests.prefill:
            return "the prefill"
        name = {ZEROES: "zeroes"}.get(int(self._requests.operation[request]), "the write")
        return f"{name} of {self._requests.issue_ns[request] / 1e9:.6f} s (request {request})"

    def _content(self, fault: _Fault) -> str:
        seen = _Seen(np.array([fault.read]), np.array([fault.block]), np.array([fault.word], np.uint64))
        valid, here, _ = (bool(of_block[0]) for of_block in self._returned(seen))
        if valid:
            _, request, number = (int(of_block[0]) for of_block in written_by(seen.word))
            place = "" if here else f" to the block at {(self.begin[request] + number) * self._block_bytes} B"
            return self._change(request) + place
        special = {int(ONLY_ZEROES): "zeroes", int(MIXED): "parts of several writes"}
        return special.get(fault.word, "no data of the replay")
