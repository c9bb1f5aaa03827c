"""What a method of purging is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from drivelab.drives.guard import HeldDevice
from drivelab.drives.purge.waiting import Say
from drivelab.errors import UserError


class Promise(StrEnum):
    """What a purged drive reads as."""

    ZEROS = "zeros"
    PATTERN = "pattern"
    """What the drive declares for blocks that were never written, if it declares any; at least always the same."""
    NOTHING = "nothing"
    """Anything but what was there, or not even readable before it is written."""


class Leaves(StrEnum):
    """The state that a method leaves a drive in."""

    UNWRITTEN = "unwritten"
    """As if never written."""
    OVERWRITTEN = "written once"
    """Every block was written once from the first to the last: defined, but to flash not as if never written."""


@dataclass(frozen=True)
class Method:
    """One way to purge a drive."""

    name: str
    """As users write it."""
    title: str
    promises: Promise
    leaves: Leaves
    unavailable: Callable[[HeldDevice], str | None]
    """Why it cannot be used on a drive, or None; changes nothing, may raise UserError for a missing program."""
    carry_out: Callable[[HeldDevice, Say], dict[str, Any]]
    """Returns evidence for the recording: commands and the drive's own answers. Raises UserError when it failed."""


class SpoiltError(UserError):
    """The drive is no longer what it was (another size, a password, gone): no other method may be tried on it."""
