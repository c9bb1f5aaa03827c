"""Read untrusted files safely, and write files that are whole after a kill or a loss of power.

Reading never waits on a pipe, reads no device, and has a limit.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from drivelab.core.errors import UserError

_LIBC = ctypes.CDLL(None, use_errno=True)

MOST_TEXT_BYTES = 16 << 20
"""Size limit of a configuration or record, far above any real one."""


def real_path(path: Path | str) -> Path:
    """Return an absolute path without links; a loop of links is followed as far as possible.

    Path.resolve() raises RuntimeError for such a loop.
    """
    return Path(os.path.realpath(path))


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; raises OSError with a readable reason for anything else.

    A pipe would block until a writer opens it, and a device such as /dev/zero has no end. The kind is checked after
    opening, on the descriptor, so the file cannot be exchanged in between.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, "is a folder", str(path))
        if not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, "is a pipe, a device or a socket, not a file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path, most_bytes: int = MOST_TEXT_BYTES) -> bytes:
    """Return the content of a regular file; raises OSError for anything else, or above `most_bytes`."""
    with open_regular(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"has more than {most_bytes >> 20} MiB", str(path))
    return data


def read_text(path: Path, wanted: str, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """Return the text of a UTF-8 file without byte order mark; raises UserError if that fails.

    `wanted` describes the expected file in error messages.
    """
    try:
        return read_regular(path, most_bytes).decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: the file does not exist; check the name") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8 text; name {wanted}, or save the file as UTF-8") from None
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EINVAL, errno.EFBIG):
            raise UserError(f"{path}: {error.strerror}; name {wanted}") from None
        if error.errno == errno.ELOOP:
            raise UserError(f"{path}: is a link to itself; name {wanted}") from None
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the file") from None
    except ValueError:
        raise UserError(f"{path}: is not a valid file name; check the name") from None


def mount_lines(proc_root: Path = Path("/proc")) -> list[list[str]]:
    """Return the fields of each mount of this process (proc_pid_mountinfo(5)); none if they cannot be read.

    Any user may choose a mount point's name: it need not be UTF-8, and has only newline, space, tab and backslash as
    octal numbers.
    """
    try:
        text = os.fsdecode((proc_root / "self/mountinfo").read_bytes())
    except OSError:
        return []
    return [line.split(" ") for line in text.split("\n") if line]


def sync_file_system(path: Path) -> None:
    """Write all data of the file system of `path` to its disk (syncfs(2)); raise OSError if data were lost.

    One call costs as much as one fsync(2) of a new file, while fsync of each file of a cell costs ten times that. It
    also writes what other programs have changed on that file system.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _LIBC.syncfs(descriptor):
            raise OSError(number := ctypes.get_errno(), os.strerror(number), str(path))
    finally:
        os.close(descriptor)


def put_in_place(part: Path, path: Path) -> None:
    """Rename a written file to `path`; after a loss of power, `path` is the file before or this one, whole."""
    _fsync(part)  # before the rename: some file systems would keep the new name with an empty file
    part.replace(path)
    _fsync(path.parent)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder that becomes `path` at the end; after an error, a kill or a loss of power it does not."""
    part = path.with_name(f".{path.name}.part")  # the next writer removes the one of a killed one
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    yield part
    sync_file_system(part)  # before the rename, as in `put_in_place`
    shutil.rmtree(path, ignore_errors=True)
    part.rename(path)


def write_atomic(path: Path, data: str | bytes, *, lasting: bool = True) -> None:
    """Replace the content of a file, so that every reader, also after a kill, finds the old content or the new.

    The same holds after a loss of power, unless not `lasting`. Writers wait for each other; a writer reuses the
    temporary file that a killed writer left. The folder is made if it is missing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    while True:
        with part.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not part.exists() or not os.path.samestat(os.fstat(file.fileno()), part.stat()):
                continue  # another writer has replaced it meanwhile
            try:
                file.truncate(0)
                file.write(data.encode() if isinstance(data, str) else data)
                file.flush()
                if lasting:
                    put_in_place(part, path)
                else:
                    part.replace(path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
            return


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
