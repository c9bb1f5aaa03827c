"""Build /sys and /proc of a host with disks of every class, volumes on them, and file systems on top."""

from __future__ import annotations

from pathlib import Path

from device_trees import Tree

from drivelab.drives.node import File
from drivelab.drives.openers import Backing

NVME = "pci0000:00/0000:00:01.0/nvme/nvme0"
AHCI = "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0"
SAS = "pci0000:00/0000:01:00.0/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0"
LV = "LVM-" + "a" * 64


class Place(Tree):
    """A test host whose disks have a bus, and whose mounts have options."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, {})
        self.table = self.proc / "self/mountinfo"
        self.table.write_text("20 1 0:20 / / rw - rootfs rootfs rw\n")

    def disk(self, name: str, bus: str, **files: str) -> str:
        """Add a whole disk; `files` are below its folder, with `__` for a slash."""
        folder = self.sys / "devices" / bus / "block" / name
        folder.mkdir(parents=True)
        (folder / "device").symlink_to(folder.parents[1])
        return self.node(name, folder, files)

    def virtual(self, name: str, below: tuple[str, ...] = (), **files: str) -> str:
        """Add a device without a bus, on others."""
        folder = self.sys / "devices/virtual/block" / name
        self.node(name, folder, files)
        for lower in below:
            (folder / "slaves" / lower).symlink_to(self.directory(lower))
        return name

    def partition(self, name: str, disk: str, start: int = 2048) -> str:
        return self.node(name, self.directory(disk) / name, {"partition": "1", "start": str(start)})

    def nvme(self, name: str = "nvme0n1", transport: str = "pcie", model: str = "Samsung SSD 990 PRO 2TB") -> str:
        files = {"queue__rotational": "0", "device__model": model, "device__transport": transport}
        return self.disk(name, NVME, **files)

    def mapping(self, name: str, below: tuple[str, ...], uuid: str, shown: str = "shown") -> str:
        return self.virtual(name, below, dm__uuid=uuid, dm__name=shown)

    def mounted(
        self, kind: str, source: str, options: str = "rw", mount_options: str = "rw", at: str = "/data"
    ) -> Path:
        """Add a mount on the root: by number if the source is a device and the type is not btrfs."""
        name = source.removeprefix("/dev/")
        numbers = self.number(name) if name in self.nodes and kind != "btrfs" else "0:77"
        line = f"40 20 {numbers} / {at} {mount_options} shared:1 - {kind} {source} {options}\n"
        with self.table.open("a") as table:
            table.write(line)
        return Path(at)

    def file(self, path: str, loop: str, place: tuple[int, int] = (99, 5), *, same: bool = True) -> None:
        """Put a file behind a loop device; with `same` false, another file has its path now."""
        self.files[path] = File("", "", place if same else (99, 6))
        self.images[loop] = Backing(place, "")
