"""Text formats: blocks of lines through one conversion, and the search for the lines that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.trace.formats.common.model import NO_REQUEST, MalformedError, Tally, joined
from drivelab.trace.formats.common.source import LONGEST_LINE, Block, Source

T = TypeVar("T", bound=Sized)
SMALL_BYTES = 1 << 16
"""Blocks that are cut around the line at fault: going on after each is cheap there, in large ones it would not be."""
LINES_TO_KNOW = 32
"""Lines at the beginning of a file that decide whether it looks like a format."""


def no_comment(_line: bytes) -> str | None:
    """For formats in which every line is a request."""
    return None


@dataclass(frozen=True)
class Lines(Generic[T]):
    """A text format: how a block of lines converts.

    A block that does not convert is cut up until the lines that are at fault stand alone. So there is one conversion,
    it is fast for many lines, and what it says of a single one is the reason that the user reads.
    """

    convert: Callable[[Block], T]
    """Raises MalformedError when a line of the block does not convert. Blank lines are its to leave out."""
    comment: Callable[[bytes], str | None] = no_comment
    """Kind of a single stripped line that does not convert but is documented, else None."""

    def pieces(self, block: Block, tally: Tally) -> list[T]:
        """What a block converts to, in order, malformed lines counted."""
        found: list[T] = []
        left_to_do = [block]
        while left_to_do:
            part = left_to_do.pop()
            try:
                found.append(self.convert(_checked(part)))
            except MalformedError as error:
                if not part.data.strip():
                    continue
                smaller = _parts(part, error.row)
                if len(smaller) > 1:
                    left_to_do += smaller[::-1]
                elif kind := self.comment(part.data.strip()):
                    tally.skipped[kind] += 1
                else:
                    tally.add(part.first_line, _reason(part.data, error))
        return found

    def read(self, source: Source, tally: Tally) -> Iterator[list[T]]:
        """Pieces block by block."""
        for block in source.blocks():
            tally.unterminated = not block.data.endswith(b"\n")
            yield self.pieces(block, tally)

    def looks_like(self, head: bytes) -> bool:
        """Whether at least half of the first lines convert, those of a documented other kind left out."""
        end = head.rfind(b"\n") + 1
        lines = [line for line in (head[:end] or head).split(b"\n") if line.strip()][:LINES_TO_KNOW]
        known = [line for line in lines if not self.comment(line.strip())]
        return 0 < len(known) <= 2 * sum(self._converts(line) for line in known)

    def _converts(self, line: bytes) -> bool:
        try:
            return len(self.convert(_checked(Block(line + b"\n", 1)))) > 0
        except MalformedError:
            return False


def request_batches(
    lines: Lines[pa.RecordBatch], not_requests: str = ""
) -> Callable[[Source, Tally], Iterator[pa.RecordBatch]]:
    """How a format is read whose lines convert to requests; rows that are NO_REQUEST are counted as `not_requests`."""

    def read(source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
        for pieces in lines.read(source, tally):
            if pieces:
                batch = joined(pieces)
                yield _requests(batch, tally, not_requests) if not_requests else batch

    return read


def line_numbers(block: Block, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Number of the line of each of `count` rows; blank lines have no row.

    Raises MalformedError when there are not as many lines.
    """
    lines = block.data.count(b"\n") + (not block.data.endswith(b"\n"))
    if lines == count:
        return np.arange(block.first_line, block.first_line + count, dtype=np.int64)
    ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n"))
    if not block.data.endswith(b"\n"):
        ends = np.append(ends, len(block.data))
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]] = block.first_line + np.flatnonzero(
        np.diff(ends, prepend=-1) > 1
    )
    if len(numbers) != count:
        raise MalformedError("is blank but for spaces")
    return numbers


def _requests(batch: pa.RecordBatch, tally: Tally, kind: str) -> pa.RecordBatch:
    others = int(np.count_nonzero(batch["operation"].to_numpy() == NO_REQUEST))
    if not others:
        return batch
    tally.skipped[kind] += others
    return batch.filter(pc.not_equal(batch["operation"], NO_REQUEST))


def _checked(block: Block) -> Block:
    if b"\0" in block.data:
        raise MalformedError("holds a NUL byte")
    if b"\r" not in block.data:
        return block
    data = block.data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    if b"\r" in data:
        raise MalformedError("holds a carriage return")
    return Block(data, block.first_line)


def _parts(block: Block, row: int | None) -> list[Block]:
    """A block cut around a line at fault where it is small and the line is known, else in the middle."""
    data = block.data
    cuts = [_middle(data) or len(data)]
    if row is not None and len(data) <= SMALL_BYTES:
        lines = data.split(b"\n", row + 1)
        if row < len(lines):
            before = sum(map(len, lines[:row])) + row
            cuts = [before, min(before + len(lines[row]) + 1, len(data))]
    parts, line = [], block.first_line
    for begin, end in pairwise([0, *cuts, len(data)]):
        if end > begin:
            parts.append(Block(data[begin:end], line))
            line += data.count(b"\n", begin, end)
    return parts


def _middle(data: bytes) -> int | None:
    """Where to cut lines in two; None for a single line."""
    half = len(data) // 2
    after = data.find(b"\n", half, len(data) - 1) + 1
    return after or data.rfind(b"\n", 0, half) + 1 or None


def _reason(line: bytes, error: MalformedError) -> str:
    return f"is longer than {LONGEST_LINE} bytes" if len(line) > LONGEST_LINE else str(error)
