"""File systems of applications: made, mounted, and unmounted whatever happens."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from drivelab import parent
from drivelab.drives.node import refuse_stale
from drivelab.errors import UserError
from drivelab.trace.capturing.processes import alive, started
from drivelab.trace.capturing.tracer import RUN
from drivelab.units import format_size

MIB = 1 << 20
LEAST_BYTES = {"ext4": 8 * MIB, "xfs": 300 * MIB, "btrfs": 128 * MIB}
"""Smallest sizes that mkfs makes; the names are those of the file systems to choose from."""
PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
HASH_SEED = "7d1e6c1e-6c0b-4f0e-9a38-4a1f9f8f4c55"
"""Of ext4's directories: a random one would order them differently each time."""
BUSY_S = 10.0
"""So long may what is about to end keep a file system from being unmounted."""


def make(kind: str, size_bytes: int, device: str, *, discard: bool = True) -> None:
    """Make a file system at the start of a device, without `discard` leaving what lies there in use for the drive.

    Raises UserError with mkfs's reason.
    """
    size = f"{size_bytes // 1024}k"
    keep = [] if discard else ["-K"]
    refuse_stale(device)
    commands = {
        # Lazy initialisation would go on in the background and be traced with the application.
        "ext4": ["-q", "-F", "-b", "4096",
                 "-E", f"lazy_itable_init=0,lazy_journal_init=0,hash_seed={HASH_SEED}{'' if discard else ',nodiscard'}",
                 device, size],
        "xfs": ["-q", "-f", *keep, "-d", f"size={size}", device],
        "btrfs": ["-q", "-f", *keep, "-b", str(size_bytes), device],
    }  # fmt: skip
    # Drives take a request to write zeroes for a discard; this has mke2fs write them (lib/ext2fs/unix_io.c).
    environment = None if discard else {**os.environ, "UNIX_IO_NOZEROOUT": "1"}
    checked([program(f"mkfs.{kind}"), *commands[kind]], f"making the file system {kind} on {device}", None, environment)


@contextmanager
def mounted(kind: str, device: str, *, discard: bool = True) -> Iterator[Path]:
    """Mount on a new directory; the journal is written first, so that nothing is mounted that nobody knows of.

    Without `discard` the drive is not told of what becomes free; else that is as the file system has it by default.
    """
    RUN.mkdir(parents=True, exist_ok=True)
    mount = Path(tempfile.mkdtemp(prefix="mount.", dir=RUN))
    journal = RUN / f"mount-{os.getpid()}-{mount.suffix[1:]}.json"
    journal.write_text(json.dumps({"pid": os.getpid(), "started": started(os.getpid()), "mount": str(mount)}))
    try:
        _mount(kind, device, mount, discard=discard)
        yield mount
    finally:
        unmount(mount)
        mount.rmdir()
        journal.unlink()


def remount_cold(kind: str, device: str, mount: Path, *, discard: bool = True) -> None:
    """Have nothing of the file system in memory: neither its files nor its own blocks (BLKFLSBUF)."""
    unmount(mount)
    checked(["blockdev", "--flushbufs", device], f"dropping the cache of {device}")
    _mount(kind, device, mount, discard=discard)


def _mount(kind: str, device: str, mount: Path, *, discard: bool) -> None:
    refuse_stale(device)
    options = [] if discard else ["-o", "nodiscard"]
    checked(["mount", "-t", kind, *options, device, str(mount)], f"mounting {device}")


def unmount(mount: Path) -> None:
    """Unmount if it is mounted; raises UserError when something keeps using it."""
    deadline_s = time.monotonic() + BUSY_S
    while os.path.ismount(mount):
        try:
            checked(["umount", str(mount)], f"unmounting {mount}")
        except UserError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)


def recover_mounts(run: Path = RUN) -> None:
    """Unmount what a killed process left mounted; raises UserError when something still uses it."""
    for journal in sorted(run.glob("mount-*.json")):
        with suppress(FileNotFoundError):  # the killed process's guardian is at the same work
            body = json.loads(journal.read_text())
            if alive(body["pid"], body["started"]):
                continue
            mount = Path(body["mount"])
            unmount(mount)
            with suppress(FileNotFoundError):
                mount.rmdir()
            journal.unlink()


def refuse_size(kind: str, size_bytes: int, where: str) -> None:
    """Raise UserError for a file system that cannot be made so small."""
    if size_bytes < LEAST_BYTES[kind]:
        raise UserError(
            f"{where}: key 'size' is {format_size(size_bytes)}, {kind} needs {format_size(LEAST_BYTES[kind])} at least"
        )


def program(name: str) -> str:
    """Path of a program, also where only root has it in PATH; the bare name if there is none."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin") or name


def checked(
    command: Sequence[str], what: str, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Output of a command; raises UserError with its last word when it fails."""
    try:
        done = parent.run(command, cwd=cwd, env=environment)
    except FileNotFoundError:
        raise UserError(f"{what} failed: there is no program '{command[0]}'; install it") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UserError(f"{what} failed with status {done.returncode}: {lines[-1] if lines else 'no message'}")
    return done.stdout
