"""Asks a virtual drive's server to keep its drive in a file and to end, however the server is."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import ECONNABORTED, ENODEV, ENOTCONN
from pathlib import Path
from threading import Thread

from drivelab.errors import UserError
from drivelab.virtual.kept import discard
from drivelab.virtual.server import XATTR

_PROBE_TIMEOUT_S = 5.0
_WRITE_TIMEOUT_S = 60.0
_DEATHS = (ECONNABORTED, ENODEV, ENOTCONN)
"""How a request fails whose server has ended; it does so once it has kept the drive, too."""


def keep_drive(name: str, mount_point: str | None, file: Path, *, force: bool) -> None:
    """Returns when the server has ended or is not going to answer; if it has kept the drive, the new `file` is there.

    `mount_point` is None for a drive whose server cannot answer. Raises UserError, unless `force` is set, when the
    file cannot be written; the drive goes on then.
    """
    try:
        discard(file)
        if mount_point is None:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        refusal = _ask_to_keep(mount_point, file)
    except OSError as error:
        refusal = error
    if refusal is not None and not force:
        raise UserError(
            f"virtual drive '{name}' was not stopped: its state cannot be kept in {file} ({refusal.strerror}); choose "
            "another folder, or stop it without keeping"
        )


def _ask_to_keep(mount_point: str, file: Path) -> OSError | None:
    """The error with which the server could not write the file, if it says so."""
    # Only reading an attribute goes past the lock of the inode, which a hanging flush or trim holds.
    if _outcome(lambda: os.getxattr(mount_point, XATTR + "hangs"), _PROBE_TIMEOUT_S) != b"0":
        return None
    outcome = _outcome(lambda: os.setxattr(mount_point, XATTR + "keep", bytes(file)), _WRITE_TIMEOUT_S)
    return outcome if isinstance(outcome, OSError) and outcome.errno not in _DEATHS else None


def _outcome(call: Callable[[], bytes | None], timeout_s: float) -> bytes | OSError | None:
    """What a call returns or raises; None after `timeout_s`. It goes on then until the connection is aborted."""
    outcome: list[bytes | OSError | None] = []

    def run() -> None:
        try:
            outcome.append(call())
        except OSError as error:
            outcome.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout_s)
    return outcome[0] if outcome else None
