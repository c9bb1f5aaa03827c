"""Faults of a virtual drive, which disturb its I/O until they are cleared. Standard library only."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from drivelab.core.files import write_atomic
from drivelab.virtual.model import DriveModel


@dataclass(frozen=True)
class Fault:
    """A disturbance of the drive's I/O, active until it is cleared."""

    kind: str
    """`error`, `delay`, `hang` (no answer) or `gone` (every I/O fails, as on a removed drive)."""
    operation: str | None = None
    """`read`, `write`, `trim` or `flush`; None for all."""
    offset_bytes: int = 0
    length_bytes: int | None = None
    """Length of the address range; None: to the end of the drive. A flush hits every range."""
    errno: int = errno.EIO
    """For `error`; ENODATA becomes a medium error (errno_to_blk_status in the kernel's block/blk-core.c)."""
    delay_us: float = 0.0

    @property
    def number(self) -> int:
        """Return the errno of an I/O that fails."""
        return errno.ENODEV if self.kind == "gone" else self.errno

    def hits(self, operation: str, offset_bytes: int, length_bytes: int) -> bool:
        if self.operation not in (None, operation):
            return False
        if operation == "flush":
            return True
        before_end = self.length_bytes is None or offset_bytes < self.offset_bytes + self.length_bytes
        return before_end and offset_bytes + length_bytes > self.offset_bytes


def disturbance(
    faults: Sequence[Fault], operation: str, offset_bytes: int, length_bytes: int
) -> tuple[Fault | None, float]:
    """Return the first fault that keeps an I/O from completing, if any, and the delay by others in us."""
    hits = [fault for fault in faults if fault.hits(operation, offset_bytes, length_bytes)]
    stopping = next((fault for fault in hits if fault.kind != "delay"), None)
    return stopping, sum(fault.delay_us for fault in hits)


class DriveFailed(Exception):  # noqa: N818
    """A fault made an I/O fail; the message says which."""


class Answering(Protocol):
    """A drive in simulated time: `drivelab.virtual.ftl.FlashDrive`, with or without faults."""

    model: DriveModel

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float: ...


class FaultyDrive:
    """A drive in simulated time with faults."""

    def __init__(self, drive: Answering, faults: Sequence[Fault]) -> None:
        self.model = drive.model
        self._drive, self._faults = drive, faults

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float:
        """Call `FlashDrive.submit`; raises DriveFailed for an I/O that fails or is never answered."""
        fault, delay_us = disturbance(self._faults, operation, offset, length)
        if fault is not None and fault.kind == "hang":
            raise DriveFailed(f"the drive does not complete a {operation} at byte {offset}")
        if fault is not None:
            raise DriveFailed(f"the drive answers '{os.strerror(fault.number)}' to a {operation} at byte {offset}")
        return self._drive.submit(now_us, operation, offset, length) + delay_us


def faults_file(state_file: Path) -> Path:
    """Return the file, next to the state file, with the faults of a drive on the virtual clock."""
    return state_file.with_suffix(".faults")


def set_faults(state_file: Path, *faults: Fault) -> None:
    """Set the faults of a drive on the virtual clock from its next cell on; no faults clears them."""
    file = faults_file(state_file)
    if not faults:
        file.unlink(missing_ok=True)
        return
    write_atomic(file, json.dumps([asdict(fault) for fault in faults]))


def read_faults(state_file: Path) -> list[Fault]:
    """Return the current faults."""
    try:
        return [Fault(**fault) for fault in json.loads(faults_file(state_file).read_text())]
    except FileNotFoundError:
        return []
