"""The file of an archive: a tar in gzip, each member compressed on its own, with a checksum of the file at its end.

Any gzip and tar read it: concatenated gzip members are one stream (RFC 1952, section 2.2). That each member of the tar
is one of them keeps damage where it is: what comes after a damaged one is still read. The last one is empty; its
comment has the SHA-256 of all bytes before it, which covers what no checksum of gzip or tar does: headers, padding,
order, and where the file ends.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

CHUNK_BYTES = 1 << 20
_MOST_HEADER_BYTES = 1 << 16
"""Of a long name or an extended header, which tarfile reads whole: a path has 4,096 bytes at most (PATH_MAX)."""
_READ_BYTES = 1 << 16
"""Less, as most members are small, and what lies behind one is read again with the next."""
_GZIP = 31
"""Of zlib: deflate with gzip's header and trailer."""
_MAGIC = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
"""How each gzip member begins: deflate, no name, no time."""
_SEAL_HEAD = b"\x1f\x8b\x08\x10" + bytes(4) + b"\x00\xff" + b"SHA-256 of all bytes before: "
"""Of the last gzip member: its header has a comment (RFC 1952, section 2.3.1)."""
_SEAL_TAIL = b"\x00" + b"\x03\x00" + bytes(8)
"""End of the comment, nothing in one empty block, its CRC and length."""
SEAL_BYTES = len(_SEAL_HEAD) + 64 + len(_SEAL_TAIL)

Watch = Callable[[int], None]
"""Told the number of bytes each time some were read."""


class DamagedError(Exception):
    """What cannot be read as a part of an archive."""


def seal(digest: str) -> bytes:
    """The end of an archive whose bytes before it have this SHA-256 in hexadecimal."""
    return _SEAL_HEAD + digest.encode() + _SEAL_TAIL


class Writer:
    """Writes an archive to a file that is open for writing; the same members make the same bytes.

    Times are kept in whole seconds, owners and permissions not at all.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def add(self, name: str, source: BinaryIO, size: int, mtime_s: int) -> str:
        """Add a regular file; returns the SHA-256 of its content. Raises DamagedError if it is not of that size."""
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, mtime_s, 0o644
        packer = zlib.compressobj(level=6, wbits=_GZIP)
        self._write(packer.compress(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")))
        digest, left = hashlib.sha256(), size
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            left -= len(chunk)
            self._write(packer.compress(chunk))
        if left:
            raise DamagedError(name)
        self._write(packer.compress(bytes(-size % tarfile.BLOCKSIZE)) + packer.flush())
        return digest.hexdigest()

    def close(self) -> str:
        """Write the end; returns the SHA-256 of the whole file."""
        packer = zlib.compressobj(level=6, wbits=_GZIP)
        self._write(packer.compress(bytes(2 * tarfile.BLOCKSIZE)) + packer.flush())
        self._write(seal(self._digest.hexdigest()))
        return self._digest.hexdigest()

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)


@dataclass(frozen=True)
class Member:
    """A member of an archive; its `chunks` are read before the next one is asked for, and raise DamagedError."""

    info: tarfile.TarInfo
    chunks: Iterator[bytes]


class _Header(tarfile.TarInfo):
    """A header of bounded size."""

    _READ_WHOLE = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
                   tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)  # fmt: skip

    @classmethod
    def frombuf(cls, *arguments: Any, **options: Any) -> Self:
        """As tarfile has it; raises ReadError for an extended header that would fill the memory."""
        header = super().frombuf(*arguments, **options)
        if header.type in cls._READ_WHOLE and header.size > _MOST_HEADER_BYTES:
            raise tarfile.ReadError(f"its extended header has {header.size} bytes")
        return header


def is_file(info: tarfile.TarInfo) -> bool:
    """Whether a member is a file whose bytes are all there: no link, no folder, no device, nothing sparse."""
    return info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not info.issparse()


class Reader:
    """Reads an archive from a seekable file, front to end in bounded memory, over damage too."""

    def __init__(self, file: BinaryIO, watch: Watch = lambda size: None) -> None:
        self._source = _Source(file, watch)
        self.damaged = False
        """Whether something could not be read so far."""

    def members(self) -> Iterator[Member]:
        """All members that can be read."""
        while not self._source.at_end:
            start = self._source.position
            try:
                yield from self._one(start)
            except DamagedError:
                self.damaged = True
                self._source.seek_magic(start + 1)

    def digest(self) -> tuple[str, bool]:
        """After all members: SHA-256 of the whole file, and whether its end has that of the rest."""
        return self._source.whole()

    def _one(self, start: int) -> Iterator[Member]:
        """Members of one gzip member, commonly one."""
        stream = _GzipMember(self._source)
        try:
            with tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK_BYTES, tarinfo=_Header) as tar:  # type: ignore[call-overload]
                for info in tar:
                    yield Member(info, _content(tar, info))
            while stream.read(CHUNK_BYTES):  # to its end, where its own checksum is
                pass
        except (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError) as error:
            raise DamagedError(f"at byte {start}: {error}") from None


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Iterator[bytes]:
    file = tar.extractfile(info) if is_file(info) else None
    if file is None:
        return
    left = info.size
    try:
        while chunk := file.read(CHUNK_BYTES):
            left -= len(chunk)
            yield chunk
    except (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError) as error:
        raise DamagedError(f"{info.name}: {error}") from None
    if left:
        raise DamagedError(f"{info.name}: ends too early")


class _Source:
    """The bytes of a file but for its end; every byte is counted into the digest once, however often it is read."""

    def __init__(self, file: BinaryIO, watch: Watch) -> None:
        self._file, self._watch = file, watch
        self._end = max(0, os.fstat(file.fileno()).st_size - SEAL_BYTES)
        self._digest, self._digested = hashlib.sha256(), 0
        self.position = 0

    @property
    def at_end(self) -> bool:
        return self.position >= self._end

    def read(self) -> bytes:
        """The next bytes; empty at the end."""
        self._file.seek(self.position)
        chunk = self._file.read(min(_READ_BYTES, self._end - self.position))
        if (new := self.position + len(chunk) - self._digested) > 0:
            self._digest.update(chunk[-new:])
            self._digested += new
            self._watch(new)
        self.position += len(chunk)
        return chunk

    def give_back(self, size: int) -> None:
        """Bytes that were read belong to what comes next."""
        self.position -= size

    def seek_magic(self, start: int) -> None:
        """Go to where a gzip member may begin, at `start` or later, or to the end."""
        self.position, rest = start, b""
        while chunk := self.read():
            data = rest + chunk
            if (found := data.find(_MAGIC)) >= 0:
                self.give_back(len(data) - found)
                return
            rest = data[1 - len(_MAGIC) :]

    def whole(self) -> tuple[str, bool]:
        self.position = self._digested
        while self.read():
            pass
        body = self._digest.hexdigest()
        self._file.seek(self._end)
        end = self._file.read()
        self._digest.update(end)
        return self._digest.hexdigest(), end == seal(body)


class _GzipMember:
    """What one gzip member holds, as a file to read."""

    def __init__(self, source: _Source) -> None:
        self._source, self._packer = source, zlib.decompressobj(wbits=_GZIP)
        self._waiting = b""
        self._most_bytes = tarfile.BLOCKSIZE
        """First the header alone: what cannot be read further on has a name then."""

    def read(self, size: int) -> bytes:
        """At most `size` bytes, empty at the end; raises zlib.error or EOFError for what is no whole gzip member."""
        while not self._packer.eof:
            data = self._waiting or self._source.read()
            if not data:
                raise EOFError("it ends within a member")
            found = self._packer.decompress(data, min(size, self._most_bytes))
            self._most_bytes = CHUNK_BYTES
            self._waiting = self._packer.unconsumed_tail
            self._source.give_back(len(self._packer.unused_data))  # there is some at the end only
            if found:
                return found
        return b""


def plain_name(name: str) -> bool:
    """Whether the name of a member stays below the folder that it is read into."""
    return bool(re.fullmatch(r"[^/\0]+(/[^/\0]+)*", name)) and not {".", ".."} & set(name.split("/"))
