"""Faults of a virtual drive: what disturbs its I/O until it is cleared. Standard library only."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from drivelab.virtual.model import DriveModel


@dataclass(frozen=True)
class Fault:
    """A disturbance of the drive's I/O until it is cleared."""

    kind: str
    """`error`, `delay`, `hang` (no answer) or `gone` (every I/O fails as on a drive that was pulled)."""
    operation: str | None = None
    """`read`, `write`, `trim` or `flush`; None for all."""
    offset_bytes: int = 0
    length_bytes: int | None = None
    """Length of the range of addresses; None to the end of the drive. A flush touches every range."""
    errno: int = errno.EIO
    """For `error`; ENODATA becomes a medium error (errno_to_blk_status in the kernel's block/blk-core.c)."""
    delay_us: float = 0.0

    def hits(self, operation: str, offset_bytes: int, length_bytes: int) -> bool:
        if self.operation not in (None, operation):
            return False
        if operation == "flush":
            return True
        before_end = self.length_bytes is None or offset_bytes < self.offset_bytes + self.length_bytes
        return before_end and offset_bytes + length_bytes > self.offset_bytes


class DriveFailed(Exception):  # noqa: N818
    """An I/O that a fault has hit, in words."""


class Answering(Protocol):
    """What carries requests out in simulated time: `drivelab.virtual.ftl.FlashDrive`, or one with faults."""

    model: DriveModel

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float: ...


class FaultyDrive:
    """A drive in simulated time with faults."""

    def __init__(self, drive: Answering, faults: Sequence[Fault]) -> None:
        self.model = drive.model
        self._drive, self._faults = drive, faults

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float:
        """As `FlashDrive.submit`; raises DriveFailed for what fails or is never answered."""
        delay_us = 0.0
        for fault in self._faults:
            if not fault.hits(operation, offset, length):
                continue
            if fault.kind == "hang":
                raise DriveFailed(f"the drive does not complete a {operation} at byte {offset}")
            if fault.kind in ("error", "gone"):
                words = os.strerror(errno.ENODEV if fault.kind == "gone" else fault.errno)
                raise DriveFailed(f"the drive says '{words}' to a {operation} at byte {offset}")
            delay_us += fault.delay_us
        return self._drive.submit(now_us, operation, offset, length) + delay_us


def faults_file(state_file: Path) -> Path:
    """Where the faults of a drive on the virtual clock are set, beside its state."""
    return state_file.with_suffix(".faults")


def set_faults(state_file: Path, *faults: Fault) -> None:
    """Disturb the I/O of a drive on the virtual clock from its next cell on, until it is called without any."""
    file = faults_file(state_file)
    if not faults:
        file.unlink(missing_ok=True)
        return
    part = file.with_name(f".{file.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps([asdict(fault) for fault in faults]))
    part.replace(file)


def read_faults(state_file: Path) -> list[Fault]:
    """The faults that are set now."""
    try:
        return [Fault(**fault) for fault in json.loads(faults_file(state_file).read_text())]
    except FileNotFoundError:
        return []
