"""Reading files that anybody may have put there: no pipe is waited for, no device read, none read without end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from drivelab.errors import UserError

MOST_TEXT_BYTES = 16 << 20
"""Of a configuration or a record, far more than any has."""


def real_path(path: Path | str) -> Path:
    """Return an absolute path without links; of links that lead back to themselves, as far as they can be followed.

    Path.resolve() raises RuntimeError for those.
    """
    return Path(os.path.realpath(path))


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read; raises OSError for anything else, with a reason that can be shown.

    A pipe would block until somebody writes, and a device such as /dev/zero has no end. The kind is that of what was
    opened, not of what the name led to before.
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
    """Return all of a regular file; raises OSError for anything else, and for one of more than `most_bytes`."""
    with open_regular(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"has more than {most_bytes >> 20} MiB", str(path))
    return data


def read_text(path: Path, wanted: str, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """Return the text of a file in UTF-8, without a byte order mark; raises UserError where there is none to be had.

    `wanted` says what the file is to be, for errors.
    """
    try:
        return read_regular(path, most_bytes).decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file; check the name") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is no text in UTF-8; name {wanted}, or save it again as UTF-8") from None
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.EINVAL, errno.EFBIG):
            raise UserError(f"{path}: {error.strerror}; name {wanted}") from None
        if error.errno == errno.ELOOP:
            raise UserError(f"{path}: is a link that leads back to itself; name {wanted}") from None
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the file") from None
    except ValueError:
        raise UserError(f"{path}: is no name of a file; check the name") from None
