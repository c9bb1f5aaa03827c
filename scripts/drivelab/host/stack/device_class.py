"""Say which class of device a whole disk belongs to, and what the class means for measured numbers."""

from __future__ import annotations

import re

from drivelab.drives import sysfs
from drivelab.drives.openers import Host
from drivelab.drives.sysfs import read_text
from drivelab.host.machine import Machine
from drivelab.host.readers import hypervisor
from drivelab.virtual import manage

NVME_SSD, SATA_SSD, SAS_SSD, HARD_DISK = "NVMe SSD", "SATA SSD", "SAS SSD", "hard disk"
USB, CARD, UFS, PERSISTENT_MEMORY = "USB drive", "SD card or eMMC", "UFS flash", "persistent memory"
VIRTUAL_DISK, CLOUD_VOLUME, CLOUD_DRIVE = "virtual disk", "cloud volume", "local drive of a cloud instance"
VIRTUAL_DRIVE, LOOP, CONTROLLER = "virtual drive", "loop device", "volume of a RAID controller"
MEMORY, RAM_DISK, NETWORK, OPTICAL, UNKNOWN = "memory", "RAM disk", "network", "optical drive", "unknown"
PHYSICAL = frozenset({NVME_SSD, SATA_SSD, SAS_SSD, HARD_DISK, USB, CARD, UFS})
"""Classes of one drive that is attached to this host."""

_NAMES = (
    (r"zram\d+|nullb\d+", MEMORY),
    (r"ram\d+", RAM_DISK),
    (r"pmem\d+.*", PERSISTENT_MEMORY),
    (r"(nbd|rbd|drbd)\d+", NETWORK),
    (r"sr\d+", OPTICAL),
    (r"mmcblk\d+.*", CARD),
    (r"xvd[a-z]+", VIRTUAL_DISK),
)
_MODELS = (
    (r"Amazon Elastic Block Store.*", CLOUD_VOLUME),
    (r"Amazon EC2 NVMe Instance Storage.*", CLOUD_DRIVE),
    (r"(Google )?PersistentDisk.*|nvme_card-pd.*|hyperdisk.*", CLOUD_VOLUME),
    (r"(Google )?EphemeralDisk.*|nvme_card\d*", CLOUD_DRIVE),
    (r"MSFT NVMe Accelerator.*", CLOUD_VOLUME),
    (r"Microsoft NVMe Direct Disk.*", CLOUD_DRIVE),
    (r"(ORACLE )?BlockVolume.*|Alibaba Cloud Elastic Block Storage.*", CLOUD_VOLUME),
    (r"(Msft )?Virtual Disk.*|.*\bQEMU\b.*|VMware.*|VBOX.*|ORCL-VBOX.*|.*Virtual HDD.*", VIRTUAL_DISK),
    (r"(Linux )?scsi_debug.*", MEMORY),
    (r"(DELL|Dell) .*(PERC|BOSS).*|(HP|HPE) .*LOGICAL VOLUME.*|(LSI|AVAGO|BROADCOM) .*MR.*|.*ServeRAID.*|"
     r"(Adaptec|ASR\d).*|(Areca) .*", CONTROLLER),
)  # fmt: skip
"""Models as the makers' documents and drivers name them, with the vendor of a SCSI device before them."""
_PATHS = (
    (r"/virtio\d+/|/vbd-", VIRTUAL_DISK),
    (r"/session\d+/|/rport-", NETWORK),
    (r"/usb\d", USB),
    (r"\.ufshc?/|/ufs", UFS),
)
"""Parts of the device's path in sysfs: virtio and Xen, iSCSI and Fibre Channel, USB, UFS."""
_FABRICS = frozenset({"tcp", "rdma", "fc", "loop"})
"""drivers/nvme/host: transports other than `pcie`, and `apple-nvme` in a Mac."""

CAUTIONS: dict[str, str] = {
    HARD_DISK: "Its outer tracks, with low addresses, are up to twice as fast as its inner ones.",
    USB: "The port, the cable and the bridge chip can limit it more than the drive does.",
    CARD: "It has no large cache, and its speed depends on the reader and the speed class.",
    VIRTUAL_DISK: "The hypervisor may cache it in the host's memory, limit it, or acknowledge writes early.",
    CLOUD_VOLUME: "The provider limits its IOPS and throughput, and may grant bursts that later end.",
    CLOUD_DRIVE: "The provider may share the drive with other instances, and limit it.",
    CONTROLLER: "The controller has its own cache and hides the drives behind it.",
    MEMORY: "It is memory, not a drive. Choose a place on a drive.",
    RAM_DISK: "It is memory, not a drive. Choose a place on a drive.",
    NETWORK: "The network and the cache of the other host are part of each number.",
    VIRTUAL_DRIVE: "It is a model of a drive that runs on this host. Its numbers show the model, not hardware.",
    PERSISTENT_MEMORY: "It is as fast as memory, and the CPU copies the data.",
}
"""What a number of this class also includes."""
_PASSED_THROUGH = "This host is a virtual machine. Whether the hypervisor passes this drive through is unknown."
_SHINGLED = "It is shingled (SMR): random writes become slow once its cache is full."
_READ_ONLY = "The kernel treats it as read-only, so only reads are possible."


def device_class(name: str, host: Host = Host()) -> str:  # noqa: B008 - immutable
    """Return the class of the whole disk with a kernel name; `unknown` if nothing tells it."""
    if (known := _match(name, _NAMES)) is not None:
        return known
    if name.startswith("loop"):
        return LOOP if manage.find_by_device(f"/dev/{name}") is None else VIRTUAL_DRIVE
    directory = sysfs.block_dir(name, host.sys_root)
    if (known := _match(model(name, host), _MODELS)) is not None:
        return known
    if name.startswith("nvme"):
        return _nvme_class(name, host)
    path = f"{(directory / 'device').resolve()}/"
    if (known := next((kind for pattern, kind in _PATHS if re.search(pattern, path)), None)) is not None:
        return known
    return _disk_class(name, path, host)


def _nvme_class(name: str, host: Host) -> str:
    transports = _transports(name, host)
    if transports & _FABRICS:
        return NETWORK
    return NVME_SSD if transports or "/pci" in str(sysfs.block_dir(name, host.sys_root)) else UNKNOWN


def _transports(name: str, host: Host) -> set[str]:
    """Return the transports of an NVMe drive's controllers; with native multipath its device is a subsystem."""
    device = sysfs.block_dir(name, host.sys_root) / "device"
    texts = [read_text(path) for path in (device / "transport", *sorted(device.glob("nvme*/transport")))]
    return {text for text in texts if text}


def _disk_class(name: str, path: str, host: Host) -> str:
    directory = sysfs.block_dir(name, host.sys_root)
    rotational = read_text(directory / "queue/rotational")
    if rotational == "1" and re.search(r"/ata\d+/|/host\d+/", path):
        return HARD_DISK
    if rotational == "0":
        if re.search(r"/ata\d+/", path) or (read_text(directory / "device/vendor") or "").strip() == "ATA":
            return SATA_SSD
        if "/end_device-" in path:
            return SAS_SSD
    return UNKNOWN


def _match(text: str, table: tuple[tuple[str, str], ...]) -> str | None:
    return next((kind for pattern, kind in table if re.fullmatch(pattern, text)), None)


def model(name: str, host: Host) -> str:
    """Return vendor and model as the drive reports them, or an empty text; libata reports the vendor `ATA`.

    A flash card has a name instead (Documentation/driver-api/mmc/mmc-dev-attrs.rst).
    """
    directory = sysfs.block_dir(name, host.sys_root) / "device"
    words = [
        read_text(directory / "vendor") or "",
        read_text(directory / "model") or read_text(directory / "name") or "",
    ]
    if words[0] == "ATA" or words[0].startswith("0x"):
        del words[0]
    return " ".join(word for text in words for word in text.split())


def words(name: str, kind: str, host: Host) -> str:
    """Return what a disk is, for people: `NVMe SSD Samsung SSD 990 PRO 2TB`."""
    if kind == VIRTUAL_DRIVE and (drive := manage.find_by_device(f"/dev/{name}")) is not None:
        return f"virtual drive '{drive.name}' of drivelab"
    if name.startswith("zram"):
        return "compressed memory (zram)"
    if name.startswith("nullb"):
        return "null device (null_blk)"
    if name.startswith("nvme") and kind == NETWORK:
        kind = f"NVMe over Fabrics ({', '.join(sorted(_transports(name, host)))})"
    elif kind == NETWORK:
        kind = f"network disk ({name.rstrip('0123456789')})"
    if kind == VIRTUAL_DISK and "/virtio" in str(sysfs.block_dir(name, host.sys_root)):
        kind = f"{kind} (virtio)"
    if kind == UNKNOWN:
        kind = "disk of unknown kind"
    return f"{kind} {model(name, host)}".strip()


def cautions(name: str, kind: str, host: Host) -> tuple[str, ...]:
    """Return what a number of a disk also includes, and what limits its use."""
    directory = sysfs.block_dir(name, host.sys_root)
    sentences = [CAUTIONS[kind]] if kind in CAUTIONS else []
    if read_text(directory / "queue/zoned") in ("host-aware", "host-managed"):
        sentences.append(_SHINGLED)
    if kind in PHYSICAL and hypervisor(Machine(host.sys_root, host.proc_root), name):
        sentences.append(_PASSED_THROUGH)
    if read_text(directory / "ro") == "1":
        sentences.append(_READ_ONLY)
    return tuple(sentences)
