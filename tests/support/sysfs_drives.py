"""Build /sys, the udev database and /dev/disk/by-id of a host with NVMe, SATA and SAS drives."""

from __future__ import annotations

from pathlib import Path

from storage_places import Place

QUEUE = {
    "size": "2048", "dev": "8:0", "queue__logical_block_size": "512", "queue__physical_block_size": "4096",
    "queue__rotational": "0", "queue__write_cache": "write back", "queue__scheduler": "[none] mq-deadline",
}  # fmt: skip
SAS_PORT = "pci0000:00/0000:00:03.0/host6/port-6:0"


class Machine(Place):
    """A host without a mount, to which drives are added."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.udev, self.by_id = root / "udev", root / "by-id"
        for directory in (self.udev, self.by_id):
            directory.mkdir()

    def write(self, directory: Path, **files: str) -> Path:
        """Write files to a folder; `__` in a name is a slash."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            path = directory / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        return directory

    def whole(self, name: str, folder: str = "listed", **files: str) -> Path:
        """Add a whole disk at a folder below /sys/devices; return that of the disk."""
        directory = self.sys / "devices" / folder / name
        self.node(name, directory, QUEUE | files)
        return directory

    def link(self, name: str, target: str) -> None:
        (self.by_id / name).symlink_to(Path("../..") / target)

    def nvme_drive(self, name: str = "nvme0n1", *, multipath: bool = False) -> None:
        pci = self.write(
            self.sys / "devices/pci0000:00/0000:01:00.0", current_link_speed="8.0 GT/s PCIe", current_link_width="4",
            max_link_speed="16.0 GT/s PCIe", max_link_width="4",
        )  # fmt: skip
        known = {"model": "EXAMPLE SSD 990 ", "serial": "S6Z1NJ0W123456 ", "firmware_rev": "4B2QJXD7"}
        controller = self.write(
            pci / "nvme/nvme0", **known, state="live", transport="pcie", hwmon1__temp1_input="41850"
        )
        (controller / "device").symlink_to(pci)
        subsystem = self.write(self.sys / "devices/virtual/nvme-subsystem/nvme-subsys0", **known)
        (subsystem / "nvme0").symlink_to(controller)
        (self.sys / "class/nvme-subsystem").mkdir(parents=True)
        (self.sys / "class/nvme-subsystem/nvme-subsys0").symlink_to(subsystem)
        parent = subsystem if multipath else controller
        folder = str(parent.relative_to(self.sys / "devices"))
        (self.whole(name, folder, nsid="1", queue__physical_block_size="512") / "device").symlink_to(parent)

    def sata_drive(self, name: str = "sda", **speeds: str) -> None:
        files = {"vendor": "ATA     ", "model": "EXAMPLE SSD 860 ", "rev": "4B6Q",
                 "hwmon__hwmon2__temp1_input": "31000"}  # fmt: skip
        bus = "pci0000:00/0000:00:17.0/ata3/host2/target2:0:0/2:0:0:0"
        self.disk(name, bus, **QUEUE, **{f"device__{file}": text for file, text in files.items()})
        (self.sys / "devices" / bus / "vpd_pg80").write_bytes(b"\0\x80\0\x14S3Z8NB0K123456A     ")
        self.write(self.sys / "class/ata_link/link3", **speeds)

    def sas_drive(
        self, name: str = "sdb", *, protocols: str = "ssp", phys: int = 1, negotiated: str = "12.0 Gbit"
    ) -> None:
        files = {"vendor": "ACME", "model": "SASDRIVE", "rev": "0001"}
        bus = f"{SAS_PORT}/end_device-6:0/target6:0:0/6:0:0:0"
        self.disk(name, bus, **QUEUE, **{f"device__{file}": text for file, text in files.items()})
        for number in range(phys):
            (self.sys / "devices" / SAS_PORT / f"phy-6:{number}").mkdir()
            phy = self.sys / f"class/sas_phy/phy-6:{number}"
            self.write(phy, negotiated_linkrate=negotiated, maximum_linkrate="22.5 Gbit")
        self.write(self.sys / "class/sas_device/end_device-6:0", target_port_protocols=protocols)
