"""The definition of a purge method.

A new method is one module of this package with `METHODS`, a tuple of `Method`, see docs/how-to/purge-method.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from drivelab.drives.guard import HeldDevice
from drivelab.drives.purge.order import Drives, Rank
from drivelab.drives.purge.waiting import Say
from drivelab.errors import UserError


class Promise(StrEnum):
    """What a purged drive reads as."""

    ZEROS = "zeros"
    PATTERN = "pattern"
    """The content that the drive declares for never-written blocks; if it declares none, at least always the same."""
    NOTHING = "nothing"
    """Anything except the old data; blocks may even be unreadable until they are written."""


class Leaves(StrEnum):
    """The state that a method leaves a drive in."""

    UNWRITTEN = "unwritten"
    """As if never written."""
    OVERWRITTEN = "written once"
    """Every block was written once, first to last: a defined state, but not the never-written state for flash."""


@dataclass(frozen=True)
class Method:
    """One way to purge a drive."""

    name: str
    """As users write it."""
    title: str
    promises: Promise
    leaves: Leaves
    unavailable: Callable[[HeldDevice], str | None]
    """Returns why the method cannot be used on a drive, or None. Changes nothing; raises UserError without its tool."""
    carry_out: Callable[[HeldDevice, Say], dict[str, Any]]
    """Returns evidence for the recording: commands and the drive's answers. Raises UserError if the method fails."""
    rank: Rank
    """Where `auto` tries it, see `drivelab.drives.purge.order`."""
    drives: frozenset[Drives]
    """Drives on which `auto` tries it; a study can name it for any drive."""
    host_writes: bool = False
    """Whether the host writes the whole drive, for the estimates of bytes and time."""


class SpoiltError(UserError):
    """The purge altered the drive (another size, a password, gone); no other method may be tried on it."""
