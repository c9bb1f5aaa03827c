"""Who uses a regular file, from sysfs and proc."""

from __future__ import annotations

import os
from pathlib import Path

from drivelab.drives.holders import Host, open_files, unescaped, writes
from drivelab.drives.sysfs import read_text


def file_holder(file: Path, host: Host) -> str | None:
    """Why a file may not be written to, in words: swap space, a loop device over it, a process that writes to it.

    None when nothing of that is known.
    """
    own = _place(file)
    for line in (read_text(host.proc_root / "swaps") or "").splitlines()[1:]:
        if line.strip() and _place(Path(unescaped(line.split()[0]))) == own:
            return "it is swap space"
    for backing in sorted((host.sys_root / "block").glob("loop*/loop/backing_file")):
        if _place(Path(read_text(backing) or "")) == own:
            return f"{backing.parent.parent.name} is a loop device over it"
    for pid in filter(str.isdigit, os.listdir(host.proc_root)):  # noqa: PTH208 - as in holders
        if pid != str(os.getpid()) and own is not None and _maps(host.proc_root / pid / "maps", own):
            return f"process {pid} ({read_text(host.proc_root / pid / 'comm') or 'unknown'}) has it mapped for writing"
    for pid, descriptor, link in open_files(host, near=str(file)):
        if _place(Path(link)) == own and writes(host.proc_root / pid / "fdinfo" / descriptor):
            command = read_text(host.proc_root / pid / "comm") or "unknown"
            return f"process {pid} ({command}) has it open for writing"
    return None


def _place(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _maps(maps: Path, place: tuple[int, int]) -> bool:
    """Whether a process has mapped a file to write to it; its descriptor may be closed (proc_pid_maps(5))."""
    for line in (read_text(maps) or "").splitlines():
        _, permissions, _, device, inode, *_ = line.split(maxsplit=5)
        if permissions[1] == "w" and permissions[3] == "s" and int(inode) == place[1]:
            major, _, minor = device.partition(":")
            if os.makedev(int(major, 16), int(minor, 16)) == place[0]:
                return True
    return False
