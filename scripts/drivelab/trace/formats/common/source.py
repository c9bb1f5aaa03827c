"""Read files to import: detect compression by content, cut into whole lines."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError

BLOCK_BYTES = 4 << 20
LONGEST_LINE = 1 << 20
HEAD_BYTES = 1 << 16
_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_FOREIGN = {
    b"\xfd7zXZ\0": "an xz file, which cannot be imported; unpack it first",
    b"PK\x03\x04": "a zip archive, which cannot be imported; unpack it first",
    b"PAR1": "a Parquet file, which needs no import if it is a trace of drivelab; see 'drivelab trace info'",
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole lines; only the last line of a file may lack its newline."""

    data: bytes
    first_line: int

    @cached_property
    def lines(self) -> int:
        """Number of lines, blank ones included."""
        newlines = int(np.count_nonzero(np.frombuffer(self.data, np.uint8) == ord("\n")))
        return newlines + (not self.data.endswith(b"\n"))


class Source:
    """An open file, decompressed: its first bytes, and all of it in blocks."""

    def __init__(self, path: Path, stream: io.BufferedReader | pa.NativeFile) -> None:
        self.path = path
        self._stream = stream
        self.head = self._read(HEAD_BYTES)
        if self.head[257:262] == b"ustar":
            raise UserError(f"{path}: is a tar archive; unpack it and import its files one by one")
        if self.head[:1] < b" " and self.head[1:4] == b"tae":
            raise UserError(
                f"{path}: is a binary file of blktrace; decode it, unpacked: drivelab trace decode "
                f"{shlex.quote(str(path))} -o OUT.parquet"
            )
        if not self.head:
            raise UserError(f"{path}: is empty; check how the file was made")

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in pieces of any length; can be called once."""
        yield self.head
        while piece := self._read(BLOCK_BYTES):
            yield piece

    def blocks(self) -> Iterator[Block]:
        """Yield the content in blocks of whole lines; can be called once.

        A line longer than LONGEST_LINE is cut and ends with a NUL, so that it counts as malformed.
        """
        rest, line = b"", 1
        for number, piece in enumerate(self.pieces()):
            if number == 0:
                piece = piece.removeprefix(_BYTE_ORDER_MARK)
            cut = piece.rfind(b"\n") + 1
            if cut:
                block = Block(b"".join((rest, memoryview(piece)[:cut])), line)
                yield block
                line += block.lines
                rest = b""
            rest += piece[cut:]
            if len(rest) > LONGEST_LINE:
                rest = rest[:LONGEST_LINE] + b"\0"
        if rest:
            yield Block(rest, line)

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        try:
            while size > 0 and (part := self._stream.read(size)):
                parts.append(part)
                size -= len(part)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be read ({error}); cut off or damaged; download it again") from None
        return b"".join(parts)


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open a file, plain or compressed with gzip, zstd or bzip2.

    Raises UserError when the file is missing, unreadable, empty, an archive, or compressed in another way. Reading
    raises UserError when the file is damaged or cut off.
    """
    try:
        raw = io.BufferedReader(io.FileIO(path), 1 << 20)
        begin = raw.peek(6)
    except OSError as error:
        raise UserError(f"{path}: cannot be opened ({error.strerror}); check the name") from None
    with raw:
        for magic, what in _FOREIGN.items():
            if begin.startswith(magic):
                raise UserError(f"{path} is {what}")
        codec = next((codec for magic, codec in _CODECS.items() if begin.startswith(magic)), None)
        yield Source(path, raw if codec is None else pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), codec))
