"""Find what the kernel itself has open without O_EXCL and without a process: for targets, clusters and caches.

Mounts, swap, device mapper, md and DRBD open with O_EXCL and show as holders, so they are not here.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.sight import UNSEEN, Unseen
from drivelab.drives.openers import Host
from drivelab.drives.sysfs import read_text


@dataclass(frozen=True)
class Export:
    """Something that the kernel has open, as far as the kernel shows it."""

    what: str
    """In words, after "it is"."""
    path: str = ""
    """Path of a device or file as somebody entered it, perhaps in another mount namespace."""
    numbers: str = ""
    """`major:minor` of a device."""
    names: frozenset[str] = frozenset()
    """Kernel names of devices."""
    active: bool = True
    """Whether it is open now, so that a path that leads nowhere may mean any device."""

    def is_unknown(self, host: Host) -> bool:
        if not self.active or not self.path:
            return False
        try:
            host.look(self.path)
        except OSError:
            return True
        return not self.path.startswith("/")


Reader = Callable[[str, Path, Host], Iterator[Export]]
"""Yields what one file of the kernel shows, with `what`; raises OSError if it cannot be read."""


def _path(what: str, file: Path, host: Host) -> Iterator[Export]:
    """Read a path from the first line; the file `enable` beside it is 0 until the target opens the path."""
    if path := file.read_text(errors="replace").partition("\n")[0].strip():
        yield Export(what, path, active=read_text(file.with_name("enable")) != "0")


def _controller(what: str, file: Path, host: Host) -> Iterator[Export]:
    """Read the path of an NVMe controller, with all its namespaces: nvme0c1n1 is a path of nvme0n1."""
    folders = (host.sys_root / "class/nvme" / Path(file.read_text().strip()).name).glob("nvme*n*")
    yield Export(what, names=frozenset(re.sub(r"c\d+(?=n)", "", folder.name) for folder in folders))


def _backstore(what: str, file: Path, host: Host) -> Iterator[Export]:
    """Read `info` of a backstore (drivers/target/target_core_{iblock,file,pscsi}.c, show_configfs_dev_params)."""
    info, kind = file.read_text(errors="replace"), file.parent.parent.name
    found = []
    if match := re.search(r"Major: (\d+) Minor: (\d+)  CLAIMED", info):
        found.append(Export(what, numbers=f"{match[1]}:{match[2]}"))
    if match := re.search(r" File: (.+?)  Size: \d", info):
        found.append(Export(what, match[1], active="Status: ACTIVATED" in info))
    if match := re.search(r"Channel ID: (\d+) Target ID: (\d+) LUN: (\d+) Host ID: (\d+|PHBA)", info):
        number = kind.rpartition("_")[2] if match[4] == "PHBA" else match[4]
        device = host.sys_root / f"bus/scsi/devices/{number}:{match[1]}:{match[2]}:{match[3]}"
        found.append(Export(what, names=frozenset(path.name for path in device.glob("block/*"))))
    if path := read_text(file.with_name("udev_path")):
        found.append(Export(what, path, active=not found and "Status: ACTIVATED" in info))
    # rd_mcp is memory, and the process behind a backstore of the kind user has the device open itself.
    if not found and "Status: ACTIVATED" in info and not kind.startswith(("rd_mcp_", "user_")):
        found.append(Export(what, "an unknown device"))
    yield from found


def _hexadecimal(what: str, file: Path, host: Host) -> Iterator[Export]:
    major, _, minor = file.read_text().strip().partition(":")
    yield Export(what, numbers=f"{int(major, 16)}:{int(minor, 16)}")


def _name(what: str, file: Path, host: Host) -> Iterator[Export]:
    yield Export(what, names=frozenset([file.read_text().strip()]))


def _link(what: str, link: Path, host: Host) -> Iterator[Export]:
    yield Export(what, names=frozenset([link.resolve().name]))


def _folder(what: str, folder: Path, host: Host) -> Iterator[Export]:
    yield Export(what, names=frozenset([folder.parent.name]))


@dataclass(frozen=True)
class _Interface:
    """Files in which a module of the kernel shows what it has open."""

    what: str
    root: str
    """Folder in /sys that exists while the module is loaded."""
    files: dict[str, Reader]
    """By pattern below the root."""
    module: str = ""
    """Set if the folder is in configfs, which may not be mounted."""


_INTERFACES = (
    _Interface(
        "exported to other hosts by the NVMe target",
        "kernel/config/nvmet",
        {"subsystems/*/namespaces/*/device_path": _path, "subsystems/*/passthru/device_path": _controller},
        "nvmet",
    ),
    _Interface(
        "exported to other hosts by the LIO target",
        "kernel/config/target",
        {"core/*/*/info": _backstore},
        "target_core_mod",
    ),
    _Interface("exported to other hosts by the SCST target", "kernel/scst_tgt", {"devices/*/filename": _path}),
    _Interface("exported to other hosts by RNBD", "class/rnbd-server", {"ctl/devices/*/block_dev": _link}),
    _Interface("exported to a guest by Xen", "bus/xen-backend", {"devices/*/physical_device": _hexadecimal}),
    _Interface(
        "exported to another host by the USB gadget",
        "kernel/config/usb_gadget",
        {"*/functions/mass_storage.*/lun.*/file": _path},
        "usb_f_mass_storage",
    ),
    _Interface(
        "written to by the heartbeat of OCFS2",
        "kernel/config/cluster",
        {"*/heartbeat/*/dev": _name},
        "ocfs2_nodemanager",
    ),
    _Interface("registered with bcache", "class/block", {"*/bcache": _folder}),
)


def use(host: Host, fits: Callable[[Export], bool]) -> str | None:
    """Return how the kernel uses what `fits` recognises, or why such a use may be unseen, or None."""
    unseen: Unseen | None = None
    for export in _exports(host):
        if isinstance(export, Unseen):
            unseen = unseen or export
        elif fits(export):
            return f"it is {export.what}"
        elif export.is_unknown(host):
            unseen = unseen or Unseen(
                f"{export.path} is {export.what} and cannot be found here, so it may be this drive. End that export"
            )
    return unseen


def _exports(host: Host) -> Iterator[Export | Unseen]:
    for interface in _INTERFACES:
        root = host.sys_root / interface.root
        if not root.exists():
            if interface.module and (host.sys_root / "module" / interface.module).exists():
                yield Unseen(
                    f"the module {interface.module} is loaded and configfs is not mounted, so {UNSEEN}. "
                    f"Run: mount -t configfs none {host.sys_root}/kernel/config"
                )
            continue
        try:
            for pattern, reader in interface.files.items():
                for file in _found(root, pattern.split("/")):
                    yield from _read(reader, f"{interface.what} ({file.parent.relative_to(root)})", file, host)
        except OSError as error:
            yield Unseen(
                f"{error.filename} cannot be read ({error.strerror}), so {UNSEEN}. Run as root; in a container, add "
                "--privileged"
            )


def _read(reader: Reader, what: str, file: Path, host: Host) -> Iterator[Export]:
    try:
        yield from reader(what, file, host)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENODEV):  # removed meanwhile, or not configured yet
            raise


def _found(folder: Path, parts: list[str]) -> Iterator[Path]:
    """Yield what a pattern finds; raises OSError for a folder that cannot be read, which Path.glob skips."""
    names = sorted(fnmatch.filter(os.listdir(folder), parts[0]))  # noqa: PTH208
    for path in (folder / name for name in names):
        if len(parts) == 1:
            yield path
        elif path.is_dir():
            yield from _found(path, parts[1:])
