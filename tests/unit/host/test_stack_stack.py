"""The layers below a path are complete, in order, and unknown where the kernel does not say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from storage_places import AHCI, LV, Place

from drivelab.host.stack import stack
from drivelab.host.stack.stack import Layer, class_of, disks
from drivelab.virtual import manage

SSD = {"queue__rotational": "0", "device__vendor": "ATA"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def layers(path: Path | str, place: Place) -> tuple[Layer, ...]:
    return stack.layers(Path(path), place.host)


def kinds(found: tuple[Layer, ...]) -> list[tuple[str, str]]:
    return [(layer.kind, layer.name) for layer in found]


def disk(place: Place, name: str) -> str:
    return place.disk(name, AHCI.replace("ata1", f"ata{ord(name[-1])}"), device__model=f"disk {name}", **SSD)


def test_a_file_system_on_a_partition(place: Place) -> None:
    place.nvme()
    place.partition("nvme0n1p2", "nvme0n1")
    found = layers(place.mounted("ext4", "/dev/nvme0n1p2") / "folder/new file", place)
    assert kinds(found) == [("file system", "ext4"), ("partition", "nvme0n1p2"), ("disk", "nvme0n1")]
    assert [layer.words for layer in found] == [
        "ext4", "partition 1 of nvme0n1", "NVMe SSD Samsung SSD 990 PRO 2TB"
    ]  # fmt: skip
    assert all(not layer.cautions for layer in found)
    assert disks(found) == ("nvme0n1",)
    assert class_of(found, place.host) == "NVMe SSD"


def test_a_block_device_has_no_file_system(place: Place) -> None:
    place.nvme()
    assert kinds(layers("/dev/nvme0n1", place)) == [("disk", "nvme0n1")]


def test_a_misaligned_partition_is_named(place: Place) -> None:
    place.nvme()
    place.partition("nvme0n1p1", "nvme0n1", start=63)
    assert "sector 63" in layers("/dev/nvme0n1p1", place)[0].cautions[0]


def test_thin_lvm_on_luks(place: Place) -> None:
    """The parts of a thin pool are left out; users see the volume only."""
    place.nvme()
    place.partition("nvme0n1p3", "nvme0n1")
    place.mapping("dm-0", ("nvme0n1p3",), "CRYPT-LUKS2-0123-luks", "luks")
    place.mapping("dm-1", ("dm-0",), f"{LV}-tmeta", "vg-pool_tmeta")
    place.mapping("dm-2", ("dm-0",), f"{LV}-tdata", "vg-pool_tdata")
    place.mapping("dm-3", ("dm-1", "dm-2"), f"{LV}-tpool", "vg-pool-tpool")
    place.mapping("dm-4", ("dm-3",), LV, "vg-home")
    found = layers(place.mounted("xfs", "/dev/dm-4"), place)
    assert kinds(found) == [
        ("file system", "xfs"), ("LVM", "vg-home"), ("dm-crypt", "luks"), ("partition", "nvme0n1p3"),
        ("disk", "nvme0n1"),
    ]  # fmt: skip
    assert found[1].words == "LVM volume (thin)"
    assert "allocates" in found[1].cautions[0]
    assert found[2].words == "encrypted (LUKS2)"
    assert "CPU" in found[2].cautions[0]


@pytest.mark.parametrize(
    ("below", "words"),
    [
        (("",), "LVM volume"),
        ((f"{LV}-real", f"{LV}-cow"), "LVM volume (snapshot or its origin)"),
        ((f"{LV}-cdata", f"{LV}-cmeta"), "LVM volume (cached)"),
        ((f"{LV}-vpool",), "LVM volume (VDO)"),
        ((LV,), "LVM volume (RAID)"),
    ],
)
def test_what_an_lvm_volume_is_shows_below_it(place: Place, below: tuple[str, ...], words: str) -> None:
    names = tuple(
        place.mapping(f"dm-{number}", (), uuid, "vg-lv_rimage_0" if uuid == LV else "shown")
        for number, uuid in enumerate(below)
    )
    place.mapping("dm-9", names, LV, "vg-lv")
    layer = layers("/dev/dm-9", place)[0]
    assert layer.words == words
    assert bool(layer.cautions) == (words != "LVM volume")


@pytest.mark.parametrize(
    ("uuid", "kind", "words", "caution"),
    [
        ("CRYPT-LUKS1-01-x", "dm-crypt", "encrypted (LUKS1)", "CPU"),
        ("CRYPT-PLAIN-swap", "dm-crypt", "encrypted (PLAIN)", "CPU"),
        ("CRYPT-INTEGRITY-x", "device mapper", "integrity checks (dm-integrity)", "twice"),
        ("CRYPT-VERITY-x", "device mapper", "verified (dm-verity)", "read-only"),
        ("mpath-3600508", "multipath", "multipath device with 2 paths", None),
        ("DMRAID-isw_x", "device mapper", "firmware RAID (dmraid)", None),
        ("VDO-0123", "device mapper", "VDO", "duplicate"),
        ("part1-mpath-36", "partition", "partition (kpartx)", None),
        ("", "device mapper", "mapping of unknown kind", "dmsetup table name"),
        ("NEW-THING", "device mapper", "mapping of unknown kind", "dmsetup table name"),
    ],
)
def test_mappings(place: Place, uuid: str, kind: str, words: str, caution: str | None) -> None:
    place.mapping("dm-0", (disk(place, "sda"), disk(place, "sdb")), uuid, "name")
    found = layers("/dev/dm-0", place)
    assert (found[0].kind, found[0].name, found[0].words) == (kind, "name", words)
    assert (caution in found[0].cautions[0]) if caution else not found[0].cautions
    assert disks(found) == ("sda", "sdb")


@pytest.mark.parametrize(
    ("files", "words", "cautions"),
    [
        ({"level": "raid0", "raid_disks": "2"}, "RAID 0 of 2 disks", ()),
        ({"level": "linear", "raid_disks": "2"}, "md linear of 2 disks", ()),
        ({"level": "raid1", "raid_disks": "2", "degraded": "0", "sync_action": "idle"}, "RAID 1 of 2 disks",
         ("several disks",)),
        ({"level": "raid5", "raid_disks": "4", "degraded": "1", "sync_action": "recover"},
         "RAID 5 of 4 disks, rebuilding, 1 missing or not filled", ("parity", "from other disks", "rebuild reads")),
        ({"level": "raid10", "raid_disks": "4", "degraded": "1", "sync_action": "frozen"},
         "RAID 10 of 4 disks, degraded, 1 missing or not filled", ("several disks", "copy is missing")),
        ({"level": "raid6", "raid_disks": "6", "degraded": "0", "sync_action": "check"},
         "RAID 6 of 6 disks, resyncing", ("parity", "resync or check reads")),
    ],
)  # fmt: skip
def test_arrays(place: Place, files: dict[str, str], words: str, cautions: tuple[str, ...]) -> None:
    members = (disk(place, "sda"), disk(place, "sdb"))
    place.virtual("md0", members, **{f"md__{name}": text for name, text in files.items()})
    found = layers("/dev/md0", place)
    assert kinds(found) == [("md", "md0"), ("disk", "sda"), ("disk", "sdb")]
    assert found[0].words == words
    assert len(found[0].cautions) == len(cautions)
    assert all(part in text for part, text in zip(cautions, found[0].cautions, strict=True))


def two_volumes_of_one_disk(place: Place) -> str:
    disk(place, "sda")
    place.partition("sda1", "sda")
    place.partition("sda2", "sda")
    return "/dev/" + place.virtual("md0", ("sda1", "sda2"), md__level="raid0", md__raid_disks="2")


def bcache(place: Place) -> str:
    place.nvme()
    mode = "writethrough [writeback] writearound none"
    return "/dev/" + place.virtual("bcache0", ("nvme0n1", disk(place, "sdb")), bcache__cache_mode=mode)


def btrfs(place: Place, *names: str) -> Path:
    for name in names:
        place.btrfs(disk(place, name))
    (place.sys / "fs/btrfs/1d2c-uuid/allocation/data/raid1").mkdir(parents=True)
    return place.mounted("btrfs", "/dev/sda", "rw,compress=zstd:3")


def bcachefs(place: Place) -> Path:
    return place.mounted("bcachefs", f"/dev/{disk(place, 'sda')}:/dev/{disk(place, 'sdb')}")


def beside_a_network_disk(place: Place) -> str:
    below = (disk(place, "sda"), place.virtual("nbd0"))
    return "/dev/" + place.virtual("md0", below, md__level="raid1", md__raid_disks="2")


def upper_folder(place: Place, kind: str) -> Path:
    upper = place.sys.parent / "upper"
    upper.mkdir()
    place.mounted("ext4", f"/dev/{disk(place, 'sda')}", at=str(upper.parent))
    if kind == "ecryptfs":
        return place.mounted("ecryptfs", str(upper), at="/private")
    options = f"rw,lowerdir=/l,upperdir={upper},workdir=/w"
    return place.mounted("overlay", "overlay", options, at="/merged")


def loops(place: Place, *names: str) -> str:
    """Return a RAID of loop devices over files of one file system, or the file system on one loop device."""
    place.mounted("ext4", f"/dev/{disk(place, 'sda')}", at="/images")
    for name in names:
        place.virtual(name, loop__backing_file=f"/images/{name}", loop__dio="0")
        place.file(f"/images/{name}", name)
    if len(names) == 1:
        return str(place.mounted("ext4", f"/dev/{names[0]}", at="/inner"))
    return "/dev/" + place.virtual("md0", names, md__level="raid0", md__raid_disks="2")


def lost_file(place: Place, state: str) -> str:
    path = "/images/a.img (deleted)" if state == "removed" else "/images/a.img"
    place.virtual("loop9", loop__backing_file=path, loop__dio="1")
    if state == "replaced":
        place.file(path, "loop9", same=False)
    return "/dev/loop9"


Shape = Callable[[Place], Path | str]
SHAPES: dict[str, tuple[Shape, str, str | None, dict[int, str]]] = {
    "two volumes on one disk list it once": (two_volumes_of_one_disk, "md partition:sda1 disk:sda partition:sda2",
                                             "SATA SSD", {}),
    "bcache, on disks of two classes": (bcache, "bcache! disk:nvme0n1 disk:sdb", "unknown", {0: "bcache, writeback"}),
    "btrfs lists all its devices": (lambda place: btrfs(place, "sda", "sdb"), "file-system:btrfs!!! disk:sda disk:sdb",
                                    "SATA SSD", {0: "btrfs, on 2 devices, data profile raid1"}),
    "btrfs of one device says nothing of several": (lambda place: btrfs(place, "sda"), "file-system!!! disk:sda",
                                                    "SATA SSD", {0: "btrfs"}),
    "bcachefs lists its sources": (bcachefs, "file-system!! disk:sda disk:sdb", "SATA SSD", {}),
    "zfs names its pool and guesses no disks": (lambda place: place.mounted("zfs", "tank/home"),
                                                "file-system:zfs!!! unknown:tank!", "unknown", {1: ".*status tank"}),
    "a disk beside a network disk is of no one class": (beside_a_network_disk, "md! network:nbd0! disk:sda",
                                                        "unknown", {}),
    "a ZFS volume": (lambda place: "/dev/" + place.virtual("zd16"), "ZFS-volume:zd16!!!", None, {}),
    "a RAM disk": (lambda place: place.mounted("ext4", "/dev/" + place.virtual("zram1")),
                   "file-system:ext4 memory:zram1!", "memory", {1: r"compressed memory \(zram\)"}),
    "kernel files are no storage": (lambda place: place.mounted("proc", "proc", at="/proc"), "file-system:proc!", None,
                                    {0: "^It is not storage.$"}),
    "FUSE on a device": (lambda place: place.mounted("fuseblk", f"/dev/{disk(place, 'sda')}"),
                         "FUSE:fuseblk! disk:sda", "SATA SSD", {}),
    "FUSE on anything else": (lambda place: place.mounted("fuse.mergerfs", "a:b"), "FUSE:fuse.mergerfs! unknown:a:b!",
                              "unknown", {0: "user space"}),
    "an unheard-of file system": (lambda place: place.mounted("newfs", "something"),
                                  "file-system:newfs unknown:something!", "unknown", {1: "does not say"}),
    "overlay leads to its upper folder": (lambda place: upper_folder(place, "overlay"),
                                          "overlay! file-system:ext4 disk:sda", "SATA SSD", {0: "copies the whole"}),
    "ecryptfs leads to its lower folder": (lambda place: upper_folder(place, "ecryptfs"),
                                           "file-system:ecryptfs! file-system:ext4 disk:sda", "SATA SSD", {}),
    "an overlay of another container": (
        lambda place: place.mounted("overlay", "overlay", "rw,upperdir=/not/in/this/container"), "overlay! unknown!",
        "unknown", {}),
    "an overlay without an upper folder": (lambda place: place.mounted("overlay", "overlay", "rw,lowerdir=/l"),
                                           "overlay! unknown!", "unknown", {}),
    "a loop device leads to its file; the same type of file system is listed twice": (
        lambda place: loops(place, "loop9"), "file-system:ext4 loop:loop9!! file-system:ext4 disk:sda", "SATA SSD",
        {1: "page cache"}),
    "a file system below two loop devices is listed once": (lambda place: loops(place, "loop8", "loop9"),
                                                            "md loop:loop8!! file-system disk loop:loop9!!",
                                                            "SATA SSD", {}),
    "a loop device whose file is removed": (lambda place: lost_file(place, "removed"), "loop! unknown!", "unknown", {}),
    "a loop device whose file is replaced": (lambda place: lost_file(place, "replaced"), "loop! unknown!", "unknown",
                                             {}),
}  # fmt: skip
"""How each is made; its layers (kind, or kind:name; a ! for each caution); its class; words or a caution of a layer."""


@pytest.mark.parametrize("name", SHAPES)
def test_layers_below_a_path(place: Place, name: str) -> None:
    made, expected, kind, words = SHAPES[name]
    found = layers(made(place), place)
    for layer, wanted in zip(found, expected.split(), strict=True):
        shown = f"{layer.kind.replace(' ', '-')}:{layer.name}"
        assert wanted.rstrip("!") in (shown, shown.partition(":")[0])
        assert wanted.count("!") == len(layer.cautions), layer
    assert disks(found) == tuple(layer.name for layer in found if layer.kind == "disk")
    assert kind is None or class_of(found, place.host) == kind
    for number, part in words.items():
        texts = (found[number].words, *found[number].cautions)
        assert re.fullmatch(part, texts[0]) or any(re.search(part, text) for text in texts[1:])


@pytest.mark.parametrize(
    ("kind", "source", "words"),
    [
        ("nfs4", "server:/export", "NFS (nfs4) from server:/export"),
        ("cifs", "//server/share", "SMB (cifs) from //server/share"),
        ("fuse.sshfs", "me@server:", "SSHFS (fuse.sshfs) from me@server:"),
        ("virtiofs", "tag", "a folder of the host, shared over virtiofs (virtiofs) from tag"),
    ],
)
def test_network_file_systems(place: Place, kind: str, source: str, words: str) -> None:
    (layer,) = found = layers(place.mounted(kind, source), place)
    assert (layer.kind, layer.words) == ("network", words)
    assert "server" in layer.cautions[-1]
    assert class_of(found, place.host) == "network"


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs", "devtmpfs"])
def test_memory(place: Place, kind: str) -> None:
    found = layers(place.mounted(kind, "none"), place)
    assert found[0].kind == "memory"
    assert "not a drive" in found[0].cautions[0]
    assert class_of(found, place.host) == "memory"


def test_a_virtual_drive_is_the_bottom(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = manage.VirtualDrive("op7", "S1", "/dev/loop9", 1, 1, 1, "/x", {})
    monkeypatch.setattr(manage, "find_by_device", lambda device: drive)
    place.virtual("loop9", loop__backing_file="/run/op7.drive/disk")
    found = layers("/dev/loop9", place)
    assert kinds(found) == [("disk", "loop9")]
    assert class_of(found, place.host) == "virtual drive"


def test_a_cycle_ends(place: Place) -> None:
    """A loop device over a file on itself is impossible, but a damaged tree must not hang."""
    place.mapping("dm-0", (), "", "a")
    place.mapping("dm-1", ("dm-0",), "", "b")
    (place.directory("dm-0") / "slaves/dm-1").symlink_to(place.directory("dm-1"))
    assert kinds(layers("/dev/dm-1", place)) == [("device mapper", "b"), ("device mapper", "a")]


def test_a_mount_without_a_mount_table(place: Place) -> None:
    place.table.write_text("")
    assert [layer.kind for layer in layers("/x", place)] == ["unknown"]


def test_this_machine_knows_the_memory_below_its_files() -> None:
    """The real tables of the kernel can be read; what is below differs by machine."""
    found = stack.layers(Path("/proc/self"))
    assert [layer.name for layer in found] == ["proc"]
    assert stack.layers(Path("/"))
