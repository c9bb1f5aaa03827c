"""Convert text formats block by block, and find malformed lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.trace.formats.common.source import LONGEST_LINE, Block, Source
from drivelab.trace.formats.common.trace_format import NO_REQUEST, MalformedError, Tally, joined

T = TypeVar("T", bound=Sized)
SMALL_BYTES = 1 << 16
"""Blocks up to this size are cut around a malformed line; in larger blocks this would cost too much."""
LINES_TO_KNOW = 32
"""First lines of a file that decide whether it matches a format."""


def no_comment(_line: bytes) -> str | None:
    """Return None: in this format every line is a request."""
    return None


@dataclass(frozen=True)
class Lines(Generic[T]):
    """A text format: how a block of lines converts.

    A block that fails to convert is cut until each malformed line is alone. So one fast conversion serves all lines,
    and its error for a single line is the reason that the user reads.
    """

    convert: Callable[[Block], T]
    """Raises MalformedError when a line of the block is malformed. It must skip blank lines."""
    comment: Callable[[bytes], str | None] = no_comment
    """Returns the kind of a stripped line that is documented but is not a request, else None.

    In every format, a line that begins with # and does not convert is a comment.
    """

    def pieces(self, block: Block, tally: Tally) -> list[T]:
        """Convert a block to pieces, in order; count malformed lines."""
        converted: list[T] = []
        remaining = [block]
        while remaining:
            part = remaining.pop()
            try:
                converted.append(self.convert(_checked(part)))
            except MalformedError as error:
                if not part.data.strip():
                    continue
                smaller = _parts(part, error.row)
                if len(smaller) > 1:
                    remaining += smaller[::-1]
                elif kind := self._comment(part.data.strip()):
                    tally.skipped[kind] += 1
                else:
                    tally.add(part.first_line, _reason(part.data, error))
        return converted

    def read(self, source: Source, tally: Tally) -> Iterator[list[T]]:
        """Yield the pieces of each block."""
        for block in source.blocks():
            tally.unterminated = not block.data.endswith(b"\n")
            yield self.pieces(block, tally)

    def looks_like(self, head: bytes) -> bool:
        """Return whether at least half of the first lines convert, comments excluded."""
        end = head.rfind(b"\n") + 1
        lines = [line for line in (head[:end] or head).split(b"\n") if line.strip()][:LINES_TO_KNOW]
        known = [line for line in lines if not self._comment(line.strip())]
        return 0 < len(known) <= 2 * sum(self._converts(line) for line in known)

    def _comment(self, line: bytes) -> str | None:
        return "comment lines" if line.startswith(b"#") else self.comment(line)

    def _converts(self, line: bytes) -> bool:
        try:
            return len(self.convert(_checked(Block(line + b"\n", 1)))) > 0
        except MalformedError:
            return False


def request_batches(
    lines: Lines[pa.RecordBatch], not_requests: str = ""
) -> Callable[[Source, Tally], Iterator[pa.RecordBatch]]:
    """Return the reader of a format whose lines convert to requests.

    Rows with NO_REQUEST are counted as `not_requests`.
    """

    def read(source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
        for pieces in lines.read(source, tally):
            if pieces:
                batch = joined(pieces)
                yield _requests(batch, tally, not_requests) if not_requests else batch

    return read


def line_numbers(block: Block, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the line number of each of `count` rows; blank lines have no row.

    Raises MalformedError if the number of lines differs.
    """
    if block.lines == count:
        return np.arange(block.first_line, block.first_line + count, dtype=np.int64)
    ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n"))
    if not block.data.endswith(b"\n"):
        ends = np.append(ends, len(block.data))
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]] = block.first_line + np.flatnonzero(
        np.diff(ends, prepend=-1) > 1
    )
    if len(numbers) != count:
        raise MalformedError("has only spaces")
    return numbers


def _requests(batch: pa.RecordBatch, tally: Tally, kind: str) -> pa.RecordBatch:
    others = int(np.count_nonzero(batch["operation"].to_numpy() == NO_REQUEST))
    if not others:
        return batch
    tally.skipped[kind] += others
    return batch.filter(pc.not_equal(batch["operation"], NO_REQUEST))


def _checked(block: Block) -> Block:
    if b"\0" in block.data:
        raise MalformedError("has a NUL byte")
    if b"\r" not in block.data:
        return block
    data = block.data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    if b"\r" in data:
        raise MalformedError("has a carriage return")
    return Block(data, block.first_line)


def _parts(block: Block, row: int | None) -> list[Block]:
    """Cut a small block around a known malformed line, else cut in the middle."""
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
    """Return where to cut lines in two, or None for a single line."""
    half = len(data) // 2
    after = data.find(b"\n", half, len(data) - 1) + 1
    return after or data.rfind(b"\n", 0, half) + 1 or None


def _reason(line: bytes, error: MalformedError) -> str:
    return f"is longer than {LONGEST_LINE} bytes" if len(line) > LONGEST_LINE else str(error)
