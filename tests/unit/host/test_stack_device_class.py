"""Each class of device is recognised by what the kernel shows, and nothing else is guessed."""

from __future__ import annotations

from pathlib import Path

import pytest
from storage_places import AHCI, NVME, SAS, Place

from drivelab.host.stack import device_class as classes
from drivelab.host.stack.device_class import device_class
from drivelab.virtual import manage

VIRTIO_SCSI = "pci0000:00/0000:00:04.0/virtio2/host0/target0:0:0/0:0:0:0"
CASES = [
    ("nvme0n1", NVME, {"device__transport": "pcie", "device__model": "WD_BLACK SN850X"}, classes.NVME_SSD),
    ("nvme0n1", NVME, {"device__model": "an NVMe of a kernel without the file transport"}, classes.NVME_SSD),
    ("nvme0n1", "virtual/nvme-fabrics/ctl/nvme0", {"device__transport": "tcp"}, classes.NETWORK),
    ("nvme0n1", "virtual/nvme-subsystem/nvme-subsys0", {"device__nvme0__transport": "pcie"}, classes.NVME_SSD),
    ("nvme0n1", "virtual/nvme-subsystem/nvme-subsys0", {"device__nvme0__transport": "rdma"}, classes.NETWORK),
    ("nvme0n1", "virtual/nvme-subsystem/nvme-subsys0", {}, classes.UNKNOWN),
    ("nvme0n1", NVME, {"device__model": "Amazon Elastic Block Store"}, classes.CLOUD_VOLUME),
    ("nvme0n1", NVME, {"device__model": "Amazon EC2 NVMe Instance Storage"}, classes.CLOUD_DRIVE),
    ("nvme0n1", NVME, {"device__model": "MSFT NVMe Accelerator v1.0"}, classes.CLOUD_VOLUME),
    ("nvme0n1", NVME, {"device__model": "Microsoft NVMe Direct Disk"}, classes.CLOUD_DRIVE),
    ("nvme0n1", NVME, {"device__model": "nvme_card-pd"}, classes.CLOUD_VOLUME),
    ("nvme0n1", NVME, {"device__model": "nvme_card"}, classes.CLOUD_DRIVE),
    ("nvme0n1", NVME, {"device__model": "QEMU NVMe Ctrl"}, classes.VIRTUAL_DISK),
    ("sda", AHCI, {"queue__rotational": "0", "device__vendor": "ATA", "device__model": "MX500"}, classes.SATA_SSD),
    ("sda", AHCI, {"queue__rotational": "1", "device__vendor": "ATA", "device__model": "ST4000"}, classes.HARD_DISK),
    ("sda", AHCI, {}, classes.UNKNOWN),
    ("sda", AHCI, {"queue__rotational": "0", "device__model": "QEMU HARDDISK"}, classes.VIRTUAL_DISK),
    ("sda", AHCI, {"queue__rotational": "1", "device__model": "VBOX HARDDISK"}, classes.VIRTUAL_DISK),
    ("sda", SAS, {"queue__rotational": "0", "device__vendor": "SEAGATE", "device__model": "XS3840"}, classes.SAS_SSD),
    ("sda", SAS, {"queue__rotational": "0", "device__vendor": "ATA", "device__model": "SSDSC2KG"}, classes.SATA_SSD),
    ("sda", SAS, {"queue__rotational": "1", "device__vendor": "HGST", "device__model": "HUH72"}, classes.HARD_DISK),
    ("sda", SAS, {"queue__rotational": "0", "device__vendor": "DELL", "device__model": "PERC H730P Mini"},
     classes.CONTROLLER),
    ("sda", VIRTIO_SCSI, {"device__vendor": "Google", "device__model": "PersistentDisk"}, classes.CLOUD_VOLUME),
    ("sda", VIRTIO_SCSI, {"device__vendor": "Google", "device__model": "EphemeralDisk"}, classes.CLOUD_DRIVE),
    ("sda", VIRTIO_SCSI, {"queue__rotational": "0", "device__model": "unheard of"}, classes.VIRTUAL_DISK),
    ("sda", "LNXSYSTM:00/VMBUS:00/x/host0/target0:0:0/0:0:0:0",
     {"device__vendor": "Msft", "device__model": "Virtual Disk"}, classes.VIRTUAL_DISK),
    ("sda", "pci0000:00/0000:00:10.0/host2/target2:0:0/2:0:0:0",
     {"queue__rotational": "1", "device__vendor": "VMware", "device__model": "Virtual disk"}, classes.VIRTUAL_DISK),
    ("sda", "platform/host5/session1/target5:0:0/5:0:0:0", {"queue__rotational": "0"}, classes.NETWORK),
    ("sda", "pci0000:00/0000:00:05.0/host3/rport-3:0-1/target3:0:0/3:0:0:0", {}, classes.NETWORK),
    ("sda", "pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host4/target4:0:0/4:0:0:0", {"queue__rotational": "1"},
     classes.USB),
    ("sda", "platform/soc/1d84000.ufshc/host0/target0:0:0/0:0:0:0", {"queue__rotational": "0"}, classes.UFS),
    ("vda", "pci0000:00/0000:00:02.0/virtio1", {"queue__rotational": "1"}, classes.VIRTUAL_DISK),
    ("xvda", "vbd-768", {}, classes.VIRTUAL_DISK),
    ("mmcblk0", "platform/mmc_host/mmc0/mmc0:0001", {}, classes.CARD),
    ("sr0", AHCI, {}, classes.OPTICAL),
    # Devices without a bus have a class by name.
    ("zram0", "", {}, classes.MEMORY), ("nullb0", "", {}, classes.MEMORY), ("ram3", "", {}, classes.RAM_DISK),
    ("nbd0", "", {}, classes.NETWORK), ("rbd1", "", {}, classes.NETWORK), ("loop3", "", {}, classes.LOOP),
    ("pmem0", "", {}, classes.PERSISTENT_MEMORY), ("ublkb0", "", {}, classes.UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("name", "bus", "files", "expected"), CASES)
def test_class_follows_from_what_the_kernel_shows(
    tmp_path: Path, name: str, bus: str, files: dict[str, str], expected: str
) -> None:
    place = Place(tmp_path)
    _ = place.disk(name, bus, **files) if bus else place.virtual(name)
    assert device_class(name, place.host) == expected


def test_a_virtual_drive_is_no_common_loop_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = manage.VirtualDrive("op7", "S1", "/dev/loop3", 1, 1, 1, "/x", {})
    monkeypatch.setattr(manage, "find_by_device", lambda device: drive if device == "/dev/loop3" else None)
    place = Place(tmp_path)
    place.virtual("loop3")
    assert device_class("loop3", place.host) == classes.VIRTUAL_DRIVE
    assert device_class("loop4", place.host) == classes.LOOP
    assert classes.words("loop3", classes.VIRTUAL_DRIVE, place.host) == "virtual drive 'op7' of drivelab"


def test_words_name_class_vendor_and_model(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.nvme()
    place.disk("sda", SAS, device__vendor="SEAGATE ", device__model="XS3840LE10003   ", queue__rotational="0")
    place.disk("vda", "pci0000:00/virtio1", device__vendor="0x1af4")
    place.disk("mmcblk0", "platform/mmc0", device__name="SD64G")
    shown = [classes.words(name, device_class(name, place.host), place.host) for name in place.nodes]
    assert shown == [
        "NVMe SSD Samsung SSD 990 PRO 2TB",
        "SAS SSD SEAGATE XS3840LE10003",
        "virtual disk (virtio)",
        "SD card or eMMC SD64G",
    ]


def test_network_disks_name_their_transport(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.nvme(transport="tcp", model="Linux")
    place.virtual("nbd7")
    assert classes.words("nvme0n1", classes.NETWORK, place.host) == "NVMe over Fabrics (tcp) Linux"
    assert classes.words("nbd7", classes.NETWORK, place.host) == "network disk (nbd)"


@pytest.mark.parametrize("kind", sorted(classes.CAUTIONS))
def test_each_class_with_a_caution_shows_it(tmp_path: Path, kind: str) -> None:
    place = Place(tmp_path)
    place.nvme()
    assert classes.cautions("nvme0n1", kind, place.host) == (classes.CAUTIONS[kind],)


def test_cautions_of_the_disk_itself(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.nvme()
    assert classes.cautions("nvme0n1", classes.NVME_SSD, place.host) == ()
    place.disk("sda", AHCI, queue__zoned="host-aware", ro="1")
    (place.proc / "cpuinfo").write_text("flags\t\t: fpu hypervisor\n")
    text = " ".join(classes.cautions("sda", classes.HARD_DISK, place.host))
    for part in ("outer tracks", "SMR", "virtual machine", "read-only"):
        assert part in text
