"""The file of an archive: a tar.gz with separately compressed members and a checksum of the file at its end.

Any gzip and tar read it: concatenated gzip members are one stream (RFC 1952, section 2.2). Each tar member is one gzip
member, so members after a damaged one are still readable. The last gzip member is empty; its comment holds the SHA-256
of all bytes before it. That covers headers, padding, order and the end of the file, which no checksum of gzip or tar
covers.
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
"""Limit of a long name or an extended header, which tarfile reads whole: a path has at most 4,096 bytes (PATH_MAX)."""
_MOST_EXPANSION = 1032
"""Largest ratio of deflate (zlib's technical details): a header that claims more than the archive can hold is false."""
MOST_LIST_BYTES = 1 << 26
"""Limit of the checksum file, which lists all members and is read whole: enough for half a million files."""
LIST_LINE_BYTES = 67
"""Bytes of its line beside the name: SHA-256, two spaces, end of line."""
_MOST_NAME_BYTES, _MOST_LEVELS = 4096, 64
_MOST_SHOWN = 80
_MOST_DAMAGES = 1000
"""Limit of places where reading starts again, each of which may read the rest of the file."""
_MOST_AGAIN = 100
"""Limit of what is decompressed after damage, as a multiple of the file: an archive of studies expands less."""
_READ_BYTES = 1 << 16
"""Smaller, because most members are small, and bytes behind a member are read again with the next."""
_GZIP = 31
"""zlib's code for deflate with gzip's header and trailer."""
_MAGIC = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
"""Start of each gzip member: deflate, no name, no time."""
_SEAL_HEAD = b"\x1f\x8b\x08\x10" + bytes(4) + b"\x00\xff" + b"SHA-256 of all bytes before: "
"""Start of the last gzip member, whose header has a comment (RFC 1952, section 2.3.1)."""
_SEAL_TAIL = b"\x00" + b"\x03\x00" + bytes(8)
"""End of the comment, one empty block, its CRC and length."""
SEAL_BYTES = len(_SEAL_HEAD) + 64 + len(_SEAL_TAIL)

Watch = Callable[[int], None]
"""Called with the number of bytes after each read."""


class DamagedError(Exception):
    """Part of an archive cannot be read."""


class RefusedError(Exception):
    """An archive claims what no archive of drivelab has, and would take memory or time without limit."""


def seal(digest: str) -> bytes:
    """Return the end of an archive; `digest` is the hexadecimal SHA-256 of all bytes before it."""
    return _SEAL_HEAD + digest.encode() + _SEAL_TAIL


class Writer:
    """Writes an archive to an open file; the same members give the same bytes.

    Times are stored in whole seconds; owners and permissions are not stored.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def add(self, name: str, source: BinaryIO, size: int, mtime_s: int) -> str:
        """Add a regular file and return the SHA-256 of its content; raises DamagedError for another size."""
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
        """Write the end and return the SHA-256 of the whole file."""
        packer = zlib.compressobj(level=6, wbits=_GZIP)
        self._write(packer.compress(bytes(2 * tarfile.BLOCKSIZE)) + packer.flush())
        self._write(seal(self._digest.hexdigest()))
        return self._digest.hexdigest()

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)


@dataclass(frozen=True)
class Member:
    """A member of an archive; read its `chunks`, which may raise DamagedError, before the next member."""

    info: tarfile.TarInfo
    chunks: Iterator[bytes]


class _Header(tarfile.TarInfo):
    """A header of bounded size."""

    _READ_WHOLE = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
                   tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)  # fmt: skip

    def _proc_member(self, tar: tarfile.TarFile) -> Self:
        """Process a header as tarfile does; raises ReadError for one whose further headers would fill the memory.

        Every version calls this for each header before it reads on, while Debian's Python bypasses `frombuf`.
        """
        if self.type in self._READ_WHOLE and self.size > _MOST_HEADER_BYTES:
            raise tarfile.ReadError(f"its extended header has {self.size} bytes")
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("it has a sparse file, which drivelab never writes")
        header: Self = super()._proc_member(tar)  # type: ignore[misc]
        return header

    def _proc_gnusparse_10(self, *_: Any) -> None:
        """Raise ReadError; tarfile would read the map of a sparse file without limit, even after the file's end."""
        raise tarfile.ReadError("it has a sparse file, which drivelab never writes")


def is_file(info: tarfile.TarInfo) -> bool:
    """Whether a member is a complete regular file: not a link, folder, device or sparse file."""
    return info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not info.issparse()


class Reader:
    """Reads an archive from a seekable file once, in bounded memory, and continues after damage."""

    def __init__(self, file: BinaryIO, watch: Watch = lambda size: None) -> None:
        self._source = _Source(file, watch)
        self._listed_bytes = 0
        size = os.fstat(file.fileno()).st_size
        self._most_bytes = _MOST_EXPANSION * size
        self._again_bytes = max(_MOST_AGAIN * size, CHUNK_BYTES)
        self.damaged = False
        """Whether any part so far was unreadable."""
        self.refused = ""
        """Why reading stopped: a claim beyond all limits; empty if it did not."""

    def members(self) -> Iterator[Member]:
        """Yield all readable members, until one is beyond the limits."""
        damages = 0
        while not self._source.at_end:
            start = self._source.position
            try:
                yield from self._members_at(start)
            except DamagedError:
                if not self.damaged:
                    self._source.most_content_bytes = self._source.content_bytes + self._again_bytes
                self.damaged = True
                damages += 1
                if damages > _MOST_DAMAGES:
                    self.refused = f"it is damaged in more than {_MOST_DAMAGES:,} places"
                    return
                self._source.seek_magic(start + 1)
            except RefusedError as error:
                self.refused = str(error)
                return

    def digest(self) -> tuple[str, bool]:
        """Return SHA-256 of the whole file, and whether its end fits the rest; call it after `members`."""
        return self._source.whole()

    def _members_at(self, start: int) -> Iterator[Member]:
        """Yield the tar members of one gzip member, normally one."""
        stream = _GzipMember(self._source)
        try:
            with tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK_BYTES, tarinfo=_Header) as tar:  # type: ignore[call-overload]
                for info in tar:
                    self._refuse_claims(info, tar.offset)
                    yield Member(info, _content(tar, info))
            while stream.read(CHUNK_BYTES):  # to its end, where zlib checks its checksum
                pass
        except (tarfile.TarError, zlib.error, EOFError, ValueError, OverflowError, RecursionError) as error:
            raise DamagedError(f"at byte {start}: {error}") from None

    def _refuse_claims(self, info: tarfile.TarInfo, next_bytes: int) -> None:
        """Raise RefusedError before a member is read or skipped; `next_bytes` is where the next one should start."""
        most_bytes, name_bytes = self._most_bytes, len(info.name.encode(errors="surrogateescape"))
        name = ascii(info.name if len(info.name) <= _MOST_SHOWN else f"{info.name[:_MOST_SHOWN]}…")
        if max(info.size, next_bytes) > most_bytes:
            raise RefusedError(
                f"{name} claims {info.size:,} bytes, but an archive of this size holds at most {most_bytes:,}"
            )
        if too_long(info.name):
            raise RefusedError(
                f"{name} has a name of {name_bytes:,} bytes and {info.name.count('/') + 1:,} levels, more than "
                f"{_MOST_NAME_BYTES:,} bytes or {_MOST_LEVELS} levels"
            )
        self._listed_bytes += name_bytes + LIST_LINE_BYTES
        if self._listed_bytes > MOST_LIST_BYTES:
            raise RefusedError(f"the list of its files has more than {MOST_LIST_BYTES >> 20} MiB")


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
    """The bytes of a file except its end; each byte enters the digest once, even if read again."""

    def __init__(self, file: BinaryIO, watch: Watch) -> None:
        self._file, self._watch = file, watch
        self._end = max(0, os.fstat(file.fileno()).st_size - SEAL_BYTES)
        self._digest, self._digested = hashlib.sha256(), 0
        self.position = 0
        self.content_bytes = 0
        """Decompressed so far, some of it perhaps more than once."""
        self.most_content_bytes: int | None = None

    @property
    def at_end(self) -> bool:
        return self.position >= self._end

    def read(self) -> bytes:
        """Return the next bytes; empty at the end."""
        self._file.seek(self.position)
        chunk = self._file.read(min(_READ_BYTES, self._end - self.position))
        if (new := self.position + len(chunk) - self._digested) > 0:
            self._digest.update(chunk[-new:])
            self._digested += new
            self._watch(new)
        self.position += len(chunk)
        return chunk

    def count(self, size: int) -> None:
        """Add decompressed bytes; raises RefusedError beyond the limit."""
        self.content_bytes += size
        if self.most_content_bytes is not None and self.content_bytes > self.most_content_bytes:
            raise RefusedError("it is damaged, and expands further than an archive of drivelab")

    def give_back(self, size: int) -> None:
        """Unread the last `size` bytes."""
        self.position -= size

    def seek_magic(self, start: int) -> None:
        """Go to the next possible start of a gzip member, from `start` on, or to the end."""
        self.position, rest = start, b""
        while chunk := self.read():
            data = rest + chunk
            if (index := data.find(_MAGIC)) >= 0:
                self.give_back(len(data) - index)
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
    """The content of one gzip member, as a readable file."""

    def __init__(self, source: _Source) -> None:
        self._source, self._packer = source, zlib.decompressobj(wbits=_GZIP)
        self._waiting = b""
        self._most_bytes = tarfile.BLOCKSIZE
        """The header first, alone: then a damaged content still has a name."""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes, empty at the end; raises zlib.error or EOFError for a broken gzip member."""
        while not self._packer.eof:
            data = self._waiting or self._source.read()
            if not data:
                raise EOFError("it ends within a member")
            content = self._packer.decompress(data, min(size, self._most_bytes))
            self._most_bytes = CHUNK_BYTES
            self._waiting = self._packer.unconsumed_tail
            self._source.give_back(len(self._packer.unused_data))  # not empty only at the end
            if content:
                self._source.count(len(content))
                return content
        return b""


def too_long(name: str) -> bool:
    """Whether the name of a member is beyond the limits that a reader keeps."""
    return len(os.fsencode(name)) > _MOST_NAME_BYTES or name.count("/") >= _MOST_LEVELS


def plain_name(name: str) -> bool:
    """Whether the name of a member stays below the target folder."""
    return bool(re.fullmatch(r"[^/\0]+(/[^/\0]+)*", name)) and not {".", ".."} & set(name.split("/"))
