"""Ask the server of a virtual drive to save the drive to a file and end, whatever state the server is in."""

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
"""Errors of a request whose server has ended; a server also ends after it has saved the drive."""


def keep_drive(name: str, mount_point: str | None, file: Path, *, force: bool) -> None:
    """Ask the server to save the drive; return when it has ended or will not answer. A saved drive is in `file`.

    `mount_point` is None for a drive whose server cannot answer. Raises UserError, unless `force` is set, if the file
    cannot be written; the drive then keeps running.
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
            f"virtual drive '{name}' was not stopped: its state cannot be saved in {file} ({refusal.strerror}); choose "
            "another folder, or stop the drive without saving its state"
        )


def _ask_to_keep(mount_point: str, file: Path) -> OSError | None:
    """Ask the server to save the drive; return its error if it could not write the file."""
    # Only reading an attribute does not need the inode lock, which a hanging flush or trim holds.
    if _outcome(lambda: os.getxattr(mount_point, XATTR + "hangs"), _PROBE_TIMEOUT_S) != b"0":
        return None
    outcome = _outcome(lambda: os.setxattr(mount_point, XATTR + "keep", bytes(file)), _WRITE_TIMEOUT_S)
    return outcome if isinstance(outcome, OSError) and outcome.errno not in _DEATHS else None


def _outcome(call: Callable[[], bytes | None], timeout_s: float) -> bytes | OSError | None:
    """Return what a call returns or raises; None after `timeout_s`, then it runs until the connection is aborted."""
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
