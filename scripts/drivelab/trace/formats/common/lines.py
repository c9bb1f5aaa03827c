"""Convert text formats block by block, and find malformed lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from drivelab.trace.formats.common.source import LONGEST_LINE, Block, Source
from drivelab.trace.formats.common.trace_format import MalformedError, Tally, Whole, joined

T = TypeVar("T", bound=Sized)
LINES_TO_KNOW = 32
"""First lines of a file that decide whether it matches a format."""


@dataclass(frozen=True)
class Lines(Generic[T]):
    """A text format: how a block of lines converts.

    A block that fails to convert is cut until each malformed line is alone. So one fast conversion serves all lines,
    and its error for a single line is the reason that the user reads.
    """

    convert: Callable[[Block], T]
    """Raises MalformedError when a line of the block is malformed. It must skip blank lines."""
    comment: Callable[[bytes], str | None] = lambda line: None
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
                if cut := _middle(part.data):
                    line = part.first_line + part.data.count(b"\n", 0, cut)
                    remaining += [Block(part.data[cut:], line), Block(part.data[:cut], part.first_line)]
                elif kind := self._comment(part.data.strip()):
                    tally.skipped[kind] += 1
                else:
                    too_long = f"is longer than {LONGEST_LINE} bytes" if len(part.data) > LONGEST_LINE else None
                    tally.add(part.first_line, too_long or str(error))
        return converted

    def read(self, source: Source, tally: Tally) -> Iterator[list[T]]:
        """Yield the pieces of each block."""
        for block in source.blocks():
            tally.unterminated = not block.data.endswith(b"\n")
            yield self.pieces(block, tally)

    def batches(self, source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
        """Yield a batch for each block, of a format that converts lines to batches."""
        for pieces in self.read(source, tally):
            if pieces:
                yield joined(pieces)

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


def text_lines(block: Block) -> list[str]:
    """Return the lines that are not blank, stripped; raise MalformedError if they are not UTF-8, or for none."""
    try:
        lines = [text for line in block.data.decode().split("\n") if (text := line.strip())]
    except UnicodeDecodeError:
        raise MalformedError("is not valid UTF-8") from None
    if not lines:
        raise MalformedError("is blank")
    return lines


def line_numbers(block: Block, count: int) -> Whole:
    """Return the line number of each of `count` rows; blank lines have no row.

    Raises MalformedError if the number of lines differs.
    """
    if block.lines == count:
        return np.arange(block.first_line, block.first_line + count, dtype=np.int64)
    ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n"))
    if not block.data.endswith(b"\n"):
        ends = np.append(ends, len(block.data))
    numbers: Whole = block.first_line + np.flatnonzero(np.diff(ends, prepend=-1) > 1)
    if len(numbers) != count:
        raise MalformedError("has only spaces")
    return numbers


def _checked(block: Block) -> Block:
    if b"\0" in block.data:
        raise MalformedError("has a NUL byte")
    if b"\r" not in block.data:
        return block
    data = block.data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    if b"\r" in data:
        raise MalformedError("has a carriage return")
    return Block(data, block.first_line)


def _middle(data: bytes) -> int | None:
    """Return where to cut lines in two, or None for a single line."""
    half = len(data) // 2
    after = data.find(b"\n", half, len(data) - 1) + 1
    return after or data.rfind(b"\n", 0, half) + 1 or None
