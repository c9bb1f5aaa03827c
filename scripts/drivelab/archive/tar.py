"""The file of an archive: a tar.gz with one top folder, written and read once, in bounded memory."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

CHUNK_BYTES, _READ_BYTES = 1 << 20, 1 << 16
_MOST_HEADER_BYTES = 1 << 16
"""Limit of a long name or an extended header, which tarfile reads whole: a path has at most 4,096 bytes (PATH_MAX)."""
_MOST_EXPANSION = 1032
"""Largest ratio of deflate (zlib's technical details): tarfile would skip a claim beyond it in endless steps."""
MOST_LIST_BYTES = 1 << 26
"""Limit of the checksum file, which lists all members and is read whole: enough for half a million files."""
LIST_LINE_BYTES = 67
"""Bytes of its line beside the name: SHA-256, two spaces, end of line."""
_MOST_NAME_BYTES, _MOST_LEVELS = 4096, 64
_MOST_SHOWN = 80

Watch = Callable[[int], None]
"""Called with the number of bytes after each read."""


class DamagedError(Exception):
    """Part of an archive cannot be read."""


class RefusedError(DamagedError):
    """An archive has what no archive of drivelab has, and would take memory without limit."""


class Writer:
    """Writes an archive to an open file; the same members give the same bytes.

    Times are stored in whole seconds; owners and permissions are not stored.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._gzip = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0)
        self._tar = tarfile.open(fileobj=self._gzip, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8")  # noqa: SIM115

    def add(self, name: str, source: BinaryIO, size: int, mtime_s: int) -> str:
        """Add a regular file and return the SHA-256 of its content; raises DamagedError for another size."""
        info = tarfile.TarInfo(name)
        info.size, info.mtime, info.mode = size, mtime_s, 0o644
        hashed = _Hashed(source)
        try:
            self._tar.addfile(info, hashed)
        except OSError as error:
            if error.errno is None:  # tarfile's own, for a source that ends too early
                raise DamagedError(name) from None
            raise
        if source.read(1):
            raise DamagedError(name)
        return hashed.digest.hexdigest()

    def close(self) -> None:
        """Write the end."""
        self._tar.close()
        self._gzip.close()


class _Hashed:
    """A file whose bytes are hashed, and counted, as they are read."""

    def __init__(self, file: BinaryIO, watch: Watch = lambda size: None) -> None:
        self._file, self._watch = file, watch
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        self._watch(len(data))
        return data


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


_UNREADABLE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError, OverflowError, RecursionError)


class Reader:
    """Reads an archive once. Archives of earlier versions, which are tar.gz files with more gzip members, are alike."""

    def __init__(self, file: BinaryIO, watch: Watch = lambda size: None) -> None:
        self._file = _Hashed(file, watch)
        self._most_bytes = _MOST_EXPANSION * os.fstat(file.fileno()).st_size

    def members(self) -> Iterator[Member]:
        """Yield all members; raises DamagedError where the file cannot be read further, or is beyond the limits."""
        listed_bytes = 0
        try:
            with (
                gzip.GzipFile(fileobj=self._file) as stream,  # type: ignore[call-overload]
                tarfile.open(fileobj=stream, mode="r|", bufsize=_READ_BYTES, tarinfo=_Header) as tar,
            ):
                for info in tar:
                    _refuse_claims(info, tar.offset, self._most_bytes)
                    listed_bytes += len(os.fsencode(info.name)) + LIST_LINE_BYTES
                    if listed_bytes > MOST_LIST_BYTES:
                        raise RefusedError(f"the list of its files has more than {MOST_LIST_BYTES >> 20} MiB")
                    yield Member(info, _content(tar, info))
                while rest := tar.fileobj.read(CHUNK_BYTES):  # to the end, where gzip checks its checksum
                    if rest.strip(b"\0"):
                        raise DamagedError("it has more data behind its end")
        except _UNREADABLE as error:
            raise DamagedError(str(error)) from None

    def digest(self) -> str:
        """Return the SHA-256 of the whole file; call it after `members`."""
        while self._file.read(CHUNK_BYTES):
            pass
        return self._file.digest.hexdigest()


def _refuse_claims(info: tarfile.TarInfo, next_bytes: int, most_bytes: int) -> None:
    """Raise RefusedError before a member is read or skipped; `next_bytes` is where the next one should start."""
    name = ascii(info.name if len(info.name) <= _MOST_SHOWN else f"{info.name[:_MOST_SHOWN]}…")
    if max(info.size, next_bytes) > most_bytes:
        raise RefusedError(
            f"{name} claims {info.size:,} bytes, but an archive of this size holds at most {most_bytes:,}"
        )
    if too_long(info.name):
        raise RefusedError(
            f"{name} has a name of {len(os.fsencode(info.name)):,} bytes and {info.name.count('/') + 1:,} levels, more "
            f"than {_MOST_NAME_BYTES:,} bytes or {_MOST_LEVELS} levels"
        )


def _content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Iterator[bytes]:
    file = tar.extractfile(info) if is_file(info) else None
    if file is None:
        return
    left = info.size
    try:
        while chunk := file.read(CHUNK_BYTES):
            left -= len(chunk)
            yield chunk
    except _UNREADABLE as error:
        raise DamagedError(f"{info.name}: {error}") from None
    if left:
        raise DamagedError(f"{info.name}: ends too early")


def too_long(name: str) -> bool:
    """Whether the name of a member is beyond the limits that a reader keeps."""
    return len(os.fsencode(name)) > _MOST_NAME_BYTES or name.count("/") >= _MOST_LEVELS


def plain_name(name: str) -> bool:
    """Whether the name of a member stays below the target folder."""
    return bool(re.fullmatch(r"[^/\0]+(/[^/\0]+)*", name)) and not {".", ".."} & set(name.split("/"))
