"""Build /sys and /proc of a test host: drives, devices stacked on them, and processes that use them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from drivelab.drives import holders
from drivelab.drives.node import File
from drivelab.drives.openers import Backing, Host

EXTENT = "7f0000002000-7f0000003000"


class Tree:
    """/sys and /proc of a test host, to which drives, stacked devices and processes are added."""

    def __init__(self, root: Path, partitions: dict[str, int]) -> None:
        self.host = Host(root / "sys", root / "proc", self.look, self.backing, lambda process, thread: False)
        self.sys, self.proc = root / "sys", root / "proc"
        for folder in ("class/block", "dev/block", "block", "fs/btrfs"):
            (self.sys / folder).mkdir(parents=True)
        for process in ("self", "1"):
            (self.proc / process).mkdir(parents=True)
        self.capable()
        (self.proc / "swaps").write_text("Filename Type Size Used Priority\n")
        (self.proc / "self/mountinfo").write_text("1 0 0:1 / /proc rw - proc proc rw\n")
        self.nodes: list[str] = []
        self.dev: dict[str, str] = {}
        """Device number of a node in /dev, if it differs from the device of this name."""
        self.files: dict[str, File] = {}
        """Targets of links in /proc."""
        for name, inode in (("pid", 0xEFFFFFFC), ("user", 0xEFFFFFFD)):
            self.files[f"{self.proc}/self/ns/{name}"] = File("", "", (4, inode))
        self.denied: set[str] = set()
        """Links in /proc that this process may not follow."""
        self.images: dict[str, Backing] = {}
        """Backing files of loop devices."""
        for drive, count in partitions.items():
            self.add(drive)
            for number in range(1, count + 1):
                separator = "p" if drive[-1].isdigit() else ""
                self.add(f"{drive}{separator}{number}", inside=drive)

    def look(self, path: str) -> File:
        if path in self.denied:
            raise PermissionError(13, "Permission denied", path)
        if path in self.files:
            return self.files[path]
        name = path.removeprefix("/dev/")
        if name not in self.nodes and path not in self.dev:
            raise FileNotFoundError(path)
        return File("b", self.dev.get(path) or self.number(name), (5, hash(path) & 0xFFFF))

    def capable(self, capabilities: int = 0x1FFFFFFFFFF) -> None:
        """Set the effective capabilities of this process; by default, all."""
        (self.proc / "self/status").write_text(f"Name:\tpython\nCapEff:\t{capabilities:016x}\n")

    def backing(self, name: str) -> Backing | None:
        return self.images.get(name)

    def number(self, node: str) -> str:
        return (self.directory(node) / "dev").read_text().strip()

    def directory(self, node: str) -> Path:
        return (self.sys / "class/block" / node).resolve()

    def add(self, node: str, inside: str | None = None) -> str:
        directory = (self.directory(inside) if inside else self.sys / "devices/pci/block") / node
        return self.node(node, directory, {"ro": "0", **({"partition": "1"} if inside else {})})

    def node(self, name: str, folder: Path, files: Mapping[str, str]) -> str:
        """Add a device with its folder in /sys; `files` are below that, with `__` for a slash."""
        for links in ("holders", "slaves"):
            (folder / links).mkdir(parents=True, exist_ok=True)
        numbers = f"99:{len(self.nodes)}"
        for file, text in {"dev": numbers, **files}.items():
            path = folder / file.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        (self.sys / "class/block" / name).symlink_to(folder)
        (self.sys / "dev/block" / numbers).symlink_to(folder)
        self.nodes.append(name)
        return name

    def stack(self, below: str, kind: str = "dm") -> str:
        """Add a mapping or array on a node, with sysfs links in both directions."""
        above = self.add(f"{kind}-{len(self.nodes)}")
        (self.directory(above) / kind).mkdir()
        (self.directory(above) / "slaves" / below).symlink_to(self.directory(below))
        (self.directory(below) / "holders" / above).symlink_to(self.directory(above))
        return above

    def composed(self, kind: str, *below: str, uuid: str = "") -> str:
        """Add a mapping or array over several nodes; `uuid` is that of a mapping."""
        above = self.stack(below[0], kind)
        for name in below[1:]:
            (self.directory(above) / "slaves" / name).symlink_to(self.directory(name))
            (self.directory(name) / "holders" / above).symlink_to(self.directory(above))
        if kind == "md":
            (self.directory(above) / "md/array_state").write_text("clean\n")
        else:
            (self.directory(above) / "dm/uuid").write_text(f"{uuid}\n")
        return above

    def place(self, partition: str, start: int, size: int) -> None:
        """Set the place of a partition, in sectors."""
        for file, value in (("start", start), ("size", size)):
            (self.directory(partition) / file).write_text(f"{value}\n")

    def mount(self, node: str, where: str = "/mnt/my\\040data", numbers: str | None = None, kind: str = "ext4") -> None:
        numbers = numbers or (self.directory(node) / "dev").read_text().strip()
        with (self.proc / "self/mountinfo").open("a") as file:
            file.write(f"30 1 {numbers} / {where} rw shared:1 - {kind} /dev/{node} rw\n")

    def swap(self, node: str) -> None:
        with (self.proc / "swaps").open("a") as file:
            file.write(f"/dev/{node} partition 100 0 -2\n")

    def btrfs(self, node: str) -> None:
        devices = self.sys / "fs/btrfs/1d2c-uuid/devices"
        devices.mkdir(parents=True, exist_ok=True)
        (devices / node).symlink_to(self.directory(node))

    def loop(self, node: str) -> None:
        backing = self.sys / "block/loop9/loop"
        backing.mkdir(parents=True)
        (backing / "backing_file").write_text(f"/dev/{node}\n")

    def twin(self, node: str) -> str:
        """Add a second path to the drive of a node, with a partition."""
        drive = self.directory(node)
        drive = drive.parent if (drive / "partition").exists() else drive
        other = self.add(f"twin{len(self.nodes)}")
        for path in (drive, self.directory(other)):
            (path / "wwid").write_text(f"naa.5000-{drive.name}\n")
        return self.add(f"{other}p1", inside=other)

    def export(self, node: str, file: str = "nvmet/subsystems/nqn.x/namespaces/1/device_path") -> None:
        """Write the path of a node to a file of configfs."""
        self.shown(f"kernel/config/{file}", f"/dev/{node}\n")

    def shown(self, path: str, text: str) -> None:
        """Add a file of /sys."""
        file = self.sys / path
        file.parent.mkdir(parents=True)
        file.write_text(text)

    def backstore(self, lines: str, name: str = "fileio_0", status: str = "ACTIVATED") -> None:
        """Add a backstore of the LIO target, without udev_path (target_core_transport.c, transport_dump_dev_state)."""
        text = f"Status: {status}  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 16384\n        {lines}\n"
        self.shown(f"kernel/config/target/core/{name}/disk/info", text)

    def scsi_backstore(self, node: str) -> None:
        """Export the disk of a node, which the target names by its place on the SCSI bus only."""
        disk = self.directory(node)
        disk = disk.parent if (disk / "partition").exists() else disk
        (self.sys / "bus/scsi/devices/6:0:3:1/block" / disk.name).mkdir(parents=True)
        self.backstore("SCSI Device Bus Location: Channel ID: 0 Target ID: 3 LUN: 1 Host ID: PHBA Mode", "pscsi_6")

    def rnbd(self, node: str) -> None:
        folder = self.sys / f"class/rnbd-server/ctl/devices/{node}"
        folder.mkdir(parents=True)
        (folder / "block_dev").symlink_to(self.directory(node))

    def opened(
        self, node: str, flags: str = "0100002", pid: int = 0, path: str = "", *, thread: int | None = None
    ) -> None:
        """Add a process that has a device open, under `path` in the process's mount namespace."""
        process = self.process(pid)
        if thread is not None:
            process = process / "task" / str(thread)
            process.mkdir(parents=True)
        for folder in ("fd", "fdinfo"):
            (process / folder).mkdir(exist_ok=True)
        link = process / "fd/7"
        link.symlink_to(path or f"/dev/{node}")
        (process / "fdinfo/7").write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t5\n")
        if path:
            self.files[str(link)] = self.file(node)

    def mapped(self, node: str, pid: int = 0, path: str = "", *, root: bool = True) -> None:
        """Add a process that has a device mapped; only root can follow map_files."""
        process = self.process(pid)
        path = path or f"/dev/{node}"
        file = self.file(node)
        place = f"{os.major(file.place[0]):02x}:{os.minor(file.place[0]):02x} {file.place[1]}"
        lines = ("7f0000000000-7f0000001000 r--p 00000000 fe:00 1 /lib/x.so", f"{EXTENT} rw-s 0 {place} {path}")
        (process / "maps").write_text("".join(f"{line}\n" for line in lines))
        self.files[f"{process}/map_files/{EXTENT}" if root else f"{process}/root{path}"] = file

    def file(self, node: str) -> File:
        return File("b", self.number(node), (os.makedev(0, 5), 1000 + self.nodes.index(node)))

    def process(self, pid: int) -> Path:
        """Add a process and return its folder; `pid` 0 takes the next free number."""
        pid = pid or 4710 + sum(name.isdecimal() for name in os.listdir(self.proc))  # noqa: PTH208
        process = self.proc / str(pid)
        (process / "fd").mkdir(parents=True, exist_ok=True)
        (process / "comm").write_text("qemu-system-x86\n")
        return process

    def image(self, loop: str, place: tuple[int, int]) -> str:
        """Make a drive a loop device over a file."""
        (self.directory(loop) / "loop").mkdir()
        (self.directory(loop) / "loop/backing_file").write_text(f"/images/{loop}.img\n")
        self.images[loop] = Backing(place, "")
        return loop

    def holder(self, name: str) -> str | None:
        return holders.holder(name, self.host)


def on_stack(mounting: Callable[[Tree, str], None], kind: str) -> Callable[[Tree, str], None]:
    return lambda tree, node: mounting(tree, tree.stack(node, kind))


def on_twin(use: Callable[[Tree, str], None]) -> Callable[[Tree, str], None]:
    return lambda tree, node: use(tree, tree.twin(node))


WAYS: dict[str, Callable[[Tree, str], None]] = {
    "mount": Tree.mount,
    "mount of a btrfs, whose numbers are not a device's": lambda tree, node: tree.mount(node, numbers="0:45"),
    "swap": Tree.swap,
    "device mapper": lambda tree, node: tree.stack(node) and None,
    "md": lambda tree, node: tree.stack(node, "md") and None,
    "mount on device mapper": on_stack(Tree.mount, "dm"),
    "swap on md": on_stack(Tree.swap, "md"),
    "second device of a btrfs": Tree.btrfs,
    "loop device": Tree.loop,
    "a writing process": Tree.opened,
    "a process with another name for it": lambda tree, node: tree.opened(node, path="/srv/disk"),
    "a thread that outlived the first": lambda tree, node: tree.opened(node, path="/dev/x", thread=4720),
    "a mapping": Tree.mapped,
    "a mapping of a removed node": lambda tree, node: tree.mapped(node, path="/dev/x (deleted)"),
    "a mapping that only root may follow": lambda tree, node: tree.mapped(node, root=False),
    "NVMe target": Tree.export,
    "LIO target over a path": lambda tree, node: tree.backstore(
        f"TCM FILEIO ID: 0        File: /dev/{node}  Size: 134217728  Mode: O_DSYNC Async: 0"
    ),
    "LIO target over a number": lambda tree, node: tree.backstore(
        "iBlock device: x  readonly: 0\n        Major: {} Minor: {}  CLAIMED: IBLOCK".format(
            *tree.number(node).split(":")
        ),
        "iblock_0",
    ),
    "LIO target over a SCSI disk": Tree.scsi_backstore,
    "SCST target": lambda tree, node: tree.shown("kernel/scst_tgt/devices/x/filename", f"/dev/{node}\n\n[key]\n"),
    "RNBD server": Tree.rnbd,
    "Xen backend": lambda tree, node: tree.shown(
        "bus/xen-backend/devices/vbd-1-51712/physical_device",
        "{:x}:{:x}\n".format(*map(int, tree.number(node).split(":"))),
    ),
    "USB gadget": lambda tree, node: tree.export(node, "usb_gadget/g/functions/mass_storage.0/lun.0/file"),
    "heartbeat of OCFS2": lambda tree, node: tree.shown("kernel/config/cluster/c/heartbeat/r/dev", f"{node}\n"),
    "bcache": lambda tree, node: (tree.directory(node) / "bcache").mkdir(),
    "DRBD": lambda tree, node: tree.stack(node, "drbd") and None,
    "mount through another path": on_twin(Tree.mount),
    "swap through another path": on_twin(Tree.swap),
    "root file system through another path": on_twin(lambda tree, node: tree.mount(node, "/")),
    "the root file system": lambda tree, node: tree.mount(node, "/"),
    "the root file system through two mappings": lambda tree, node: tree.mount(tree.stack(tree.stack(node)), "/"),
    "read-only": lambda tree, node: (tree.directory("sdz") / "ro").write_text("1\n") and None,
}
