"""List what stands between a number and the drive: file system, volumes, arrays, partitions, disks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.files import real_path
from drivelab.drives.holders import name_of
from drivelab.drives.openers import Host
from drivelab.drives.sysfs import block_dir, read_text
from drivelab.host.stack import file_systems, volumes
from drivelab.host.stack.device_class import (
    LOOP,
    MEMORY,
    NETWORK,
    RAM_DISK,
    UNKNOWN,
    cautions,
    device_class,
    words,
)
from drivelab.host.stack.file_systems import Mount
from drivelab.host.stack.volumes import Layer as Layer

_UNKNOWN_BELOW = "The kernel does not say what is below, so the numbers may include caches, networks or other programs."


def layers(path: Path, host: Host = Host()) -> tuple[Layer, ...]:  # noqa: B008 - immutable
    """Return the layers below a file, a folder or a block device, from top to bottom, each once.

    A path that does not exist yet belongs to the file system of its nearest folder.
    """
    return tuple(_Walk(host, set()).of_path(str(real_path(path))))


def disks(layers: tuple[Layer, ...]) -> tuple[str, ...]:
    """Return the kernel names of the whole disks at the bottom; empty for memory, network and unknown places."""
    return tuple(layer.name for layer in layers if layer.kind == "disk")


def class_of(layers: tuple[Layer, ...], host: Host = Host()) -> str:  # noqa: B008
    """Return the class of device that a place is on; `unknown` if there are several, or none that is known."""
    classes = {device_class(name, host) for name in disks(layers)}
    classes |= {MEMORY, NETWORK, UNKNOWN} & {layer.kind for layer in layers}
    return classes.pop() if len(classes) == 1 else UNKNOWN


@dataclass
class _Walk:
    """A walk from the top to the bottom, which visits each device and file system once."""

    host: Host
    visited: set[str]

    def of_path(self, path: str) -> Iterator[Layer]:
        try:
            file = self.host.look(path)
        except OSError:  # it does not exist yet, or is unreadable; its mount is known anyway
            file = None
        if file is not None and file.kind == "b":
            yield from self._device(name_of(file.numbers, self.host), path)
            return
        mount = file_systems.mount_of(path, file_systems.mounts(self.host))
        if mount is None:
            yield _unknown(path, "no mount known")
        elif (key := f"mount {mount.numbers} {mount.source}") not in self.visited:
            self.visited.add(key)
            yield from self._mount(mount, path)

    def _mount(self, mount: Mount, path: str) -> Iterator[Layer]:
        # The number of a mount may be anonymous; its source then names the device.
        device = name_of(mount.numbers, self.host) or self._named(mount.source)
        title, notes = file_systems.describe(mount, path, device or "", self.host)
        kind = mount.kind
        if kind in file_systems.MEMORY:
            yield Layer("memory", kind, f"{title}; memory, not a drive", notes)
        elif kind in file_systems.NETWORK:
            warning = "The network, the server and caches on both sides are part of each number."
            text = f"{file_systems.NETWORK[kind]} ({title}) from {mount.source}"
            yield Layer("network", kind, text, (*notes, warning))
        elif kind in file_systems.KERNEL:
            yield Layer("file system", kind, f"{kind}, files that the kernel computes", ("It is not storage.",))
        elif kind == "overlay":
            yield Layer("overlay", kind, title, (
                *notes, "The first write to a file of a lower folder copies the whole file."))  # fmt: skip
            yield from self._folder_below(file_systems.upper_folder(mount), "its upper folder")
        elif kind == "ecryptfs":
            yield Layer("file system", kind, title, notes)
            yield from self._folder_below(Path(mount.source), "its lower folder")
        elif kind == "zfs":
            pool = mount.source.partition("/")[0]
            yield Layer("file system", kind, f"{title}, of the pool {pool}", notes)
            yield _unknown(pool, f"ZFS pool {pool}; its disks are unknown here: zpool status {pool}")
        elif kind.startswith("fuse"):
            warning = "A program in user space serves each access, which costs CPU time and latency."
            yield Layer("FUSE", kind, title, (*notes, warning))
            yield from self._device(device, mount.source)
        elif kind == "btrfs" and device is not None:
            yield from self._btrfs(device, title, notes)
        else:
            yield Layer("file system", kind, title, notes)
            for source in mount.source.split(":") if kind == "bcachefs" else [mount.source]:
                yield from self._device(self._named(source) if kind == "bcachefs" else device, source)

    def _btrfs(self, device: str, title: str, notes: tuple[str, ...]) -> Iterator[Layer]:
        members, profile = file_systems.btrfs_members(device, self.host)
        spread = f", on {len(members)} devices" if len(members) > 1 else ""
        data = f", data profile {profile}" if spread and profile else ""
        yield Layer("file system", "btrfs", f"{title}{spread}{data}", notes)
        for member in members:
            yield from self._device(member, member)

    def _named(self, source: str) -> str | None:
        try:
            file = self.host.look(source) if source.startswith("/") else None
        except OSError:
            return None
        return name_of(file.numbers, self.host) if file is not None and file.kind == "b" else None

    def _folder_below(self, folder: Path | None, what: str) -> Iterator[Layer]:
        """Walk on below a folder that a mount names; a container does not see the folders of its host."""
        if folder is None or not folder.exists():
            yield _unknown(str(folder or "?"), f"{what} is not visible from here")
        else:
            yield from self.of_path(str(real_path(folder)))

    def _device(self, name: str | None, source: str) -> Iterator[Layer]:
        if name is None:
            yield _unknown(source, "unknown")
            return
        if name in self.visited:
            return
        self.visited.add(name)
        directory = block_dir(name, self.host.sys_root)
        below = sorted(path.name for path in (directory / "slaves").glob("*"))
        if (directory / "partition").exists():
            yield volumes.partition(name, directory)
            below = [directory.parent.name]
        elif (directory / "dm").is_dir():
            if (layer := volumes.mapping(name, directory, below, self.host)) is not None:
                yield layer
        elif (directory / "md").is_dir():
            yield volumes.array(name, directory, self.host)
        elif (directory / "bcache").is_dir():
            yield volumes.bcache(name, directory / "bcache")
        elif re.fullmatch(r"zd\d+", name):
            yield Layer("ZFS volume", name, "ZFS volume; its pool and disks are unknown here",
                        tuple(c.sentence for c in file_systems.CAUTIONS if c.kinds >= {"zfs"}))  # fmt: skip
        elif name.startswith("loop") and device_class(name, self.host) == LOOP:
            yield from self._loop(name, directory)
            return
        else:
            yield self._disk(name)
            return
        for lower in below:
            yield from self._device(lower, lower)

    def _disk(self, name: str) -> Layer:
        kind = device_class(name, self.host)
        layer = {MEMORY: "memory", RAM_DISK: "memory", NETWORK: "network"}.get(kind, "disk")
        return Layer(layer, name, words(name, kind, self.host), cautions(name, kind, self.host))

    def _loop(self, name: str, directory: Path) -> Iterator[Layer]:
        path = read_text(directory / "loop/backing_file")
        warnings = ["A second file system or block layer below serves each access."]
        if read_text(directory / "loop/dio") == "0":
            warnings.append(f"It goes through the page cache. As root, `losetup --direct-io=on /dev/{name}` avoids it.")
        yield Layer("loop", name, f"loop device over {path or 'an unknown file'}", tuple(warnings))
        if path is None or not self._leads_to_backing(name, path):
            yield _unknown(path or name, "the file is removed, or not visible from here")
        else:
            yield from self.of_path(path)

    def _leads_to_backing(self, name: str, path: str) -> bool:
        """Return whether a path is the file behind a loop device: it may be removed, replaced or of another namespace.

        Without permission to ask the kernel, the path must at least exist.
        """
        try:
            file = self.host.look(path)
            behind = self.host.backing(name)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return behind is not None and behind.place == file.place


def _unknown(name: str, text: str) -> Layer:
    return Layer("unknown", name, text, (_UNKNOWN_BELOW,))
