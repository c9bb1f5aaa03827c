"""Make a file system on a drive for measuring, and check beforehand that this host can."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from tempfile import TemporaryDirectory

from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.drives.openers import Host
from drivelab.drives.tools import Output
from drivelab.host.stack.file_systems import mounts
from drivelab.plan.file_system import PACKAGES, FileSystem
from drivelab.trace.capturing.mounts import checked, program

_FORCED = {"ext4": ("-q", "-F"), "xfs": ("-q", "-f"), "btrfs": ("-q", "-f"), "f2fs": ("-q", "-f")}
_NOT_LATER = "lazy_itable_init=0,lazy_journal_init=0"
"""Extended options of mke2fs(8): otherwise the kernel initialises inode tables during the measurement."""


def refuse_unready(file_system: FileSystem, filesystems: Path = Path("/proc/filesystems")) -> None:
    """Raise UserError if this process is not root, or mkfs or the kernel's file system is missing."""
    kind = file_system.type
    if os.geteuid() != 0:
        raise UserError(f"making and mounting {kind} needs root. Nothing was written. Run drivelab with sudo.")
    if not Path(program(f"mkfs.{kind}")).is_absolute():
        raise UserError(
            f"the program mkfs.{kind} is not installed, which makes the file system {kind}. Nothing was written. "
            f"On Debian: apt-get install {PACKAGES[kind]}"
        )
    if not _in_kernel(kind, filesystems):
        raise UserError(
            f"the running kernel {platform.release()} has no file system {kind}, built in or as a module. Nothing was "
            f"written. Boot a kernel that has it, or leave {kind} out of the study."
        )


def _in_kernel(kind: str, filesystems: Path) -> bool:
    """Return whether the kernel can mount a type; mount(8) loads its module. Loads nothing."""
    if kind in (line.split()[-1] for line in filesystems.read_text().splitlines() if line):
        return True
    modprobe = program("modprobe")
    return Path(modprobe).is_absolute() and programs.run([modprobe, "--dry-run", "--quiet", kind]).returncode == 0


def arguments(file_system: FileSystem) -> list[str]:
    """Return the arguments of mkfs, without the device: what drivelab needs, then those of the study.

    mke2fs(8) takes the last -E only, so all of them become one.
    """
    words = list(file_system.mkfs)
    if file_system.type != "ext4":
        return [*_FORCED[file_system.type], *words]
    extended, others = [_NOT_LATER], []
    while words:
        word = words.pop(0)
        if word == "-E" and words:
            extended.append(words.pop(0))
        elif word.startswith("-E") and word != "-E":
            extended.append(word.removeprefix("-E"))
        else:
            others.append(word)
    return [*_FORCED["ext4"], "-E", ",".join(extended), *others]


def make(file_system: FileSystem, device: str) -> dict[str, str]:
    """Make the file system on a whole device, and return the columns of table `drives` that tell how.

    Signatures of earlier file systems are removed, because mkfs overwrites only its own places. mkfs runs in an empty
    folder, so that no word of the study names a file. Raises UserError with mkfs's message.
    """
    checked(["wipefs", "--all", "--quiet", device], f"removing old signatures from {device}")
    words = arguments(file_system)
    path = program(f"mkfs.{file_system.type}")
    with TemporaryDirectory() as empty:
        checked([path, *words, device], f"making the file system {file_system.type} on {device}", Path(empty), line=0)
    return {"file_system": file_system.type, "mkfs": f"{_version(path)}; {' '.join(words)}"}


def _version(mkfs: str) -> str:
    """Return the first line of a mkfs about its version, which some print to standard error."""
    done = programs.run([mkfs, "-V"])
    return Output(done.returncode, done.stdout, done.stderr).words


def options_of(mount: Path) -> str:
    """Return the mount options in force, with those that the kernel adds."""
    (options,) = [found.options for found in mounts(Host()) if found.point == str(mount)]
    return ",".join(options)
