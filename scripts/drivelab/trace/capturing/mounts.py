"""Make, mount and always unmount the file systems of applications."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.core.private import make_private, run_directory
from drivelab.drives.node import refuse_stale
from drivelab.plan import file_system
from drivelab.trace.capturing.capture_report import alive, started
from drivelab.trace.capturing.tracer import save_journal

LEAST_BYTES = {kind: file_system.LEAST_BYTES[kind] for kind in ("ext4", "xfs", "btrfs")}
"""Smallest size that mkfs accepts, by supported file system."""
HASH_SEED = "7d1e6c1e-6c0b-4f0e-9a38-4a1f9f8f4c55"
"""Seed of ext4's directories; a random seed would order them differently each time."""
BUSY_S = 10.0
"""Time limit for ending processes that keep a file system busy."""


def make(kind: str, size_bytes: int, device: str, *, discard: bool = True) -> None:
    """Make a file system at the start of a device.

    Without `discard`, the drive's old data stays in use. Raises UserError with mkfs's message.
    """
    size = f"{size_bytes // 1024}k"
    keep = [] if discard else ["-K"]
    refuse_stale(device)
    commands = {
        # Lazy initialisation would run in the background and be traced with the application.
        "ext4": ["-q", "-F", "-b", "4096",
                 "-E", f"lazy_itable_init=0,lazy_journal_init=0,hash_seed={HASH_SEED}{'' if discard else ',nodiscard'}",
                 device, size],
        "xfs": ["-q", "-f", *keep, "-d", f"size={size}", device],
        "btrfs": ["-q", "-f", *keep, "-b", str(size_bytes), device],
    }  # fmt: skip
    # Drives treat write-zeroes as a discard; this makes mke2fs write zeroes (lib/ext2fs/unix_io.c).
    environment = None if discard else {**os.environ, "UNIX_IO_NOZEROOUT": "1"}
    checked([program(f"mkfs.{kind}"), *commands[kind]], f"making the file system {kind} on {device}", None, environment)


@contextmanager
def mounted(kind: str, device: str, options: Sequence[str] = ()) -> Iterator[Path]:
    """Mount on a new directory; write the journal first, so that recovery finds it."""
    run = make_private(run_directory())
    mount = Path(tempfile.mkdtemp(prefix="mount.", dir=run))
    journal = run / f"mount-{os.getpid()}-{mount.suffix[1:]}.json"
    save_journal(journal, {"pid": os.getpid(), "started": started(os.getpid()), "mount": str(mount)})
    try:
        _mount(kind, device, mount, options)
        yield mount
    finally:
        _put_away(mount)
        journal.unlink()


def remount_cold(kind: str, device: str, mount: Path, options: Sequence[str]) -> None:
    """Remount with no file or metadata of the file system in memory (BLKFLSBUF)."""
    unmount(mount)
    checked(["blockdev", "--flushbufs", device], f"dropping the cache of {device}")
    _mount(kind, device, mount, options)


def _mount(kind: str, device: str, mount: Path, options: Sequence[str]) -> None:
    refuse_stale(device)
    words = ["-o", ",".join(options)] if options else []
    checked(["mount", "-t", kind, *words, device, str(mount)], f"mounting {device}", line=0)


def unmount(mount: Path) -> None:
    """Unmount if mounted; raise UserError if it stays in use."""
    deadline_s = time.monotonic() + BUSY_S
    while os.path.ismount(mount):
        try:
            checked(["umount", str(mount)], f"unmounting {mount}")
        except UserError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)


def _put_away(mount: Path) -> None:
    """Unmount and remove the folder; detach a file system that stays in use, and say so.

    Nobody would unmount it later: the folder's journal ends with this process. The guard refuses its drive meanwhile.
    """
    try:
        unmount(mount)
    except UserError as failure:
        checked(["umount", "--lazy", str(mount)], f"detaching {mount}")
        reason = str(failure).rstrip(".")
        print(
            f"drivelab: {reason}. It was detached from the folder, and its drive stays in use until the programs that "
            "use it end. End them before you use the drive.",
            file=sys.stderr,
        )
    with suppress(FileNotFoundError):
        mount.rmdir()


def recover_mounts() -> None:
    """Unmount what killed processes left mounted."""
    for journal in sorted(run_directory().glob("mount-*.json")):
        with suppress(FileNotFoundError):  # the killed process's guardian may do the same
            body = json.loads(journal.read_text())
            if alive(body["pid"], body["started"]):
                continue
            _put_away(Path(body["mount"]))
            journal.unlink()


def program(name: str) -> str:
    """Return a program's path, also from root's PATH, or the bare name."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin") or name


def checked(
    command: Sequence[str],
    what: str,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    line: int = -1,
) -> str:
    """Return a command's output; raise UserError with its last line, or the `line` named, if it fails."""
    try:
        done = programs.run(command, cwd=cwd, env=environment)
    except FileNotFoundError:
        raise UserError(f"{what} failed: program '{command[0]}' is missing; install it") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UserError(f"{what} failed with status {done.returncode}: {lines[line] if lines else 'no message'}")
    return done.stdout
