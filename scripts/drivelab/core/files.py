"""Read untrusted files safely: no waiting on pipes, no reading of devices, no unlimited reads."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from drivelab.core.errors import UserError

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
