"""The definition of a purge method.

A new method is one module of this package with `METHODS`, a tuple of `Method`, see docs/how-to/purge-method.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum, auto
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import format_duration
from drivelab.drives import erasing
from drivelab.drives.approved import HeldDevice
from drivelab.drives.composed import is_composed
from drivelab.drives.composition import kind_of
from drivelab.drives.sysfs import block_dir, read_text
from drivelab.drives.tools import Output

Say = Callable[[str, float | None], None]
"""Receives what drivelab is doing, and the completed share, 0 to 1, if known."""

now: Callable[[], float] = time.monotonic
pause: Callable[[float], None] = time.sleep
INTERVAL_S = 2.0
"""Polling interval: a sanitize operation takes seconds to hours, and each answer costs the drive time."""
PATIENCE_S = 12 * 3600.0
"""Time that a drive may work without progress: some drives report none, and overwriting all flash takes hours."""
COMMAND_TIMEOUT_S = 7 * 24 * 3600.0
"""Timeout of an erase command, above all known durations, because killing the program does not stop the erase."""


@dataclass(frozen=True)
class Progress:
    """A drive's answer about a running operation."""

    done: bool
    fraction: float | None = None


def until_done(ask: Callable[[], Progress], say: Say, text: str) -> None:
    """Ask until the drive is done; `ask` raises UserError if the drive reports a failure.

    Raises UserError if nothing changed for PATIENCE_S.
    """
    last: Progress | None = None
    changed_s = now()
    while not (progress := ask()).done:
        if progress != last:
            last, changed_s = progress, now()
        elif now() - changed_s > PATIENCE_S:
            raise UserError(
                f"{text} has shown no progress for {format_duration(PATIENCE_S)}; power-cycle the drive and check its "
                "state"
            )
        say(text, progress.fraction)
        pause(INTERVAL_S)
    say(text, 1.0)


def attended(name: str, say: Say, text: str, expected_s: float | None, program: str, *arguments: str) -> Output:
    """Run a program that returns when the drive `name` has finished, and report the estimated progress meanwhile.

    An interrupt is raised only after the program has ended, because a started erase cannot be stopped. If this process
    is killed, the program continues, and the next command waits for it (`drivelab.drives.erasing`).
    """
    started_s = now()
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(erasing.run, name, program, *arguments, timeout_s=COMMAND_TIMEOUT_S)
        done = False
        while not done:
            say(text, min((now() - started_s) / expected_s, 0.99) if expected_s else None)
            done = bool(wait([future], timeout=INTERVAL_S).done)
        return future.result()


class Drives(Enum):
    """Kinds of drives that each have a separate order."""

    NVME = auto()
    SCSI_FLASH = auto()
    """SATA and SAS flash, which the kernel both calls sdX."""
    OTHER = auto()
    """Rotating drives, virtual drives and all other devices."""
    PART = auto()
    """Partitions, volumes and arrays: not whole drives, so no command to a drive may erase them."""


class Rank(IntEnum):
    """The place of a method in the order; methods of the same rank are in the order of their names."""

    ALL_MEDIA = auto()
    USER_DATA = auto()
    KEY = auto()
    WEAKER_KEY = auto()
    """Changes the key of the user data only, or may write a vendor pattern, as an enhanced ATA erase does."""
    TRIM = auto()
    FORMAT = auto()
    """Writes a pattern."""
    OVERWRITE_BY_DRIVE = auto()
    OVERWRITE_BY_HOST = auto()


def drives_of(name: str, sys_root: Path = Path("/sys")) -> Drives:
    """Return the group of a drive, given by kernel name."""
    if is_composed(kind_of(name, sys_root)):
        return Drives.PART
    if name.startswith("nvme"):
        return Drives.NVME
    if name.startswith("sd") and read_text(block_dir(name, sys_root) / "queue/rotational") == "0":
        return Drives.SCSI_FLASH
    return Drives.OTHER


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
    """Where `auto` tries it, see `drivelab.drives.purge.method`."""
    drives: frozenset[Drives]
    """Drives on which `auto` tries it; a study can name it for any other drive, but not for a part of drives."""
    host_writes: bool = False
    """Whether the host writes the whole drive, for the estimates of bytes and time."""


class SpoiltError(UserError):
    """The purge altered the drive (another size, a password, gone); no other method may be tried on it."""
