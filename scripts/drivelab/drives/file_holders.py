"""Find what uses a regular file, from sysfs and proc."""

from __future__ import annotations

from drivelab.drives.holders import exports, unescaped
from drivelab.drives.openers import Host, Wanted, writer
from drivelab.drives.sysfs import read_text


def file_holder(place: tuple[int, int], host: Host, *, beside: str = "") -> str | None:
    """Return why a file must not be written to, or None: swap, loop device, export, or a process that can write.

    `place` is the file system's device number and the inode, because a file may have other paths, also in other mount
    namespaces. The loop device `beside` is ignored.
    """
    for line in (read_text(host.proc_root / "swaps") or "").splitlines()[1:]:
        if line.strip() and _place(unescaped(line.split()[0]), host) == place:
            return "it is swap space"
    for file in sorted((host.sys_root / "block").glob("loop*/loop/backing_file")):
        name = file.parent.parent.name
        if name != beside and (reason := _loop_over(name, read_text(file) or "", place, host)) is not None:
            return reason
    for target, path in exports(host):
        if _place(path, host) == place:
            return f"it is exported to other hosts by the {target}"
    return writer(Wanted(place=place), host)


def _loop_over(name: str, path: str, place: tuple[int, int], host: Host) -> str | None:
    try:
        behind = host.backing(name)
    except OSError as error:  # no permission to ask the kernel: only the path is known
        by_path = _place(path.removesuffix(" (deleted)"), host)
        if by_path is None:
            return f"{name} may be a loop device over it; only root can check that ({error.strerror}); run as root"
        return f"{name} is a loop device over it" if by_path == place else None
    return f"{name} is a loop device over it" if behind is not None and behind.place == place else None


def _place(path: str, host: Host) -> tuple[int, int] | None:
    try:
        return host.look(path).place
    except OSError:
        return None
