"""The layers below a path are complete, in order, and unknown where the kernel does not say."""

from __future__ import annotations

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
    ],
)
def test_what_an_lvm_volume_is_shows_below_it(place: Place, below: tuple[str, ...], words: str) -> None:
    names = tuple(place.mapping(f"dm-{number}", (), uuid) for number, uuid in enumerate(below))
    place.mapping("dm-9", names, LV, "vg-lv")
    layer = layers("/dev/dm-9", place)[0]
    assert layer.words == words
    assert bool(layer.cautions) == (words != "LVM volume")


def test_a_raid_volume_of_lvm(place: Place) -> None:
    place.mapping("dm-0", (), LV, "vg-lv_rimage_0")
    place.mapping("dm-1", ("dm-0",), LV, "vg-lv")
    assert layers("/dev/dm-1", place)[0].words == "LVM volume (RAID)"


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


def test_two_volumes_on_one_disk_list_it_once(place: Place) -> None:
    disk(place, "sda")
    place.partition("sda1", "sda")
    place.partition("sda2", "sda")
    place.virtual("md0", ("sda1", "sda2"), md__level="raid0", md__raid_disks="2")
    assert kinds(layers("/dev/md0", place)) == [
        ("md", "md0"), ("partition", "sda1"), ("disk", "sda"), ("partition", "sda2")
    ]  # fmt: skip


def test_bcache(place: Place) -> None:
    place.nvme()
    mode = "writethrough [writeback] writearound none"
    place.virtual("bcache0", ("nvme0n1", disk(place, "sdb")), bcache__cache_mode=mode)
    found = layers("/dev/bcache0", place)
    assert found[0].words == "bcache, writeback"
    assert found[0].cautions
    assert disks(found) == ("nvme0n1", "sdb")
    assert class_of(found, place.host) == "unknown"  # two classes


def test_btrfs_lists_all_its_devices(place: Place) -> None:
    for name in (disk(place, "sda"), disk(place, "sdb")):
        place.btrfs(name)
    (place.sys / "fs/btrfs/1d2c-uuid/allocation/data/raid1").mkdir(parents=True)
    found = layers(place.mounted("btrfs", "/dev/sda"), place)
    assert kinds(found) == [("file system", "btrfs"), ("disk", "sda"), ("disk", "sdb")]
    assert found[0].words == "btrfs, on 2 devices, data profile raid1"
    assert class_of(found, place.host) == "SATA SSD"


def test_btrfs_of_one_device_says_nothing_of_several(place: Place) -> None:
    place.btrfs(disk(place, "sda"))
    assert layers(place.mounted("btrfs", "/dev/sda", "rw,compress=zstd:3"), place)[0].words == "btrfs"


def test_bcachefs_lists_its_sources(place: Place) -> None:
    disk(place, "sda"), disk(place, "sdb")
    assert disks(layers(place.mounted("bcachefs", "/dev/sda:/dev/sdb"), place)) == ("sda", "sdb")


def test_zfs_names_its_pool_and_guesses_no_disks(place: Place) -> None:
    found = layers(place.mounted("zfs", "tank/home/me"), place)
    assert kinds(found) == [("file system", "zfs"), ("unknown", "tank")]
    assert "zpool status tank" in found[1].words
    assert disks(found) == ()
    assert class_of(found, place.host) == "unknown"


def test_a_disk_beside_a_network_disk_is_of_no_one_class(place: Place) -> None:
    disk(place, "sda")
    place.virtual("nbd0")
    place.virtual("md0", ("sda", "nbd0"), md__level="raid1", md__raid_disks="2")
    found = layers("/dev/md0", place)
    assert disks(found) == ("sda",)
    assert class_of(found, place.host) == "unknown"


def test_a_zfs_volume(place: Place) -> None:
    place.virtual("zd16")
    assert kinds(layers("/dev/zd16", place)) == [("ZFS volume", "zd16")]


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


def test_a_ram_disk_is_memory(place: Place) -> None:
    place.virtual("zram1")
    found = layers(place.mounted("ext4", "/dev/zram1"), place)
    assert kinds(found) == [("file system", "ext4"), ("memory", "zram1")]
    assert found[1].words == "compressed memory (zram)"
    assert class_of(found, place.host) == "memory"


def test_kernel_files_are_no_storage(place: Place) -> None:
    (layer,) = layers(place.mounted("proc", "proc", at="/proc"), place)
    assert layer.cautions == ("It is not storage.",)


def test_fuse_on_a_device(place: Place) -> None:
    disk(place, "sda")
    assert kinds(layers(place.mounted("fuseblk", "/dev/sda"), place)) == [("FUSE", "fuseblk"), ("disk", "sda")]


def test_fuse_on_anything_else_is_unknown_below(place: Place) -> None:
    found = layers(place.mounted("fuse.mergerfs", "a:b"), place)
    assert kinds(found) == [("FUSE", "fuse.mergerfs"), ("unknown", "a:b")]
    assert "user space" in found[0].cautions[-1]


def test_an_unheard_of_file_system_is_unknown_below(place: Place) -> None:
    found = layers(place.mounted("newfs", "something"), place)
    assert kinds(found) == [("file system", "newfs"), ("unknown", "something")]
    assert "does not say" in found[1].cautions[0]


def test_overlay_leads_to_its_upper_folder(place: Place, tmp_path: Path) -> None:
    disk(place, "sda")
    upper = tmp_path / "upper"
    upper.mkdir()
    place.mounted("ext4", "/dev/sda", at=str(tmp_path))
    merged = place.mounted("overlay", "overlay", f"rw,lowerdir=/l,upperdir={upper},workdir=/w", at="/merged")
    found = layers(merged, place)
    assert kinds(found) == [("overlay", "overlay"), ("file system", "ext4"), ("disk", "sda")]
    assert "copies the whole file" in found[0].cautions[-1]


@pytest.mark.parametrize("options", ["rw,upperdir=/not/in/this/container", "rw,lowerdir=/l"])
def test_an_overlay_whose_folders_are_not_visible(place: Place, options: str) -> None:
    found = layers(place.mounted("overlay", "overlay", options), place)
    assert [layer.kind for layer in found] == ["overlay", "unknown"]


def test_ecryptfs_leads_to_its_lower_folder(place: Place, tmp_path: Path) -> None:
    disk(place, "sda")
    place.mounted("ext4", "/dev/sda", at=str(tmp_path))
    found = layers(place.mounted("ecryptfs", str(tmp_path), at="/private"), place)
    assert kinds(found) == [("file system", "ecryptfs"), ("file system", "ext4"), ("disk", "sda")]


def test_a_loop_device_leads_to_its_file(place: Place) -> None:
    disk(place, "sda")
    place.mounted("xfs", "/dev/sda", at="/images")
    place.virtual("loop9", loop__backing_file="/images/a.img", loop__dio="0")
    place.file("/images/a.img", "loop9")
    found = layers(place.mounted("ext4", "/dev/loop9", at="/inner"), place)
    assert kinds(found) == [
        ("file system", "ext4"), ("loop", "loop9"), ("file system", "xfs"), ("disk", "sda")
    ]  # fmt: skip
    assert "page cache" in found[1].cautions[1]


def test_the_same_type_of_file_system_twice_is_listed_twice(place: Place) -> None:
    disk(place, "sda")
    place.mounted("ext4", "/dev/sda", at="/images")
    place.virtual("loop9", loop__backing_file="/images/a.img")
    place.file("/images/a.img", "loop9")
    found = layers(place.mounted("ext4", "/dev/loop9", at="/inner"), place)
    assert [layer.kind for layer in found] == ["file system", "loop", "file system", "disk"]


def test_a_file_system_below_two_loop_devices_is_listed_once(place: Place) -> None:
    disk(place, "sda")
    place.mounted("ext4", "/dev/sda", at="/images")
    for name in ("loop8", "loop9"):
        place.virtual(name, loop__backing_file=f"/images/{name}")
        place.file(f"/images/{name}", name)
    place.virtual("md0", ("loop8", "loop9"), md__level="raid0", md__raid_disks="2")
    assert [layer.kind for layer in layers("/dev/md0", place)] == ["md", "loop", "file system", "disk", "loop"]


@pytest.mark.parametrize("state", ["removed", "replaced"])
def test_a_loop_device_whose_file_is_gone(place: Place, state: str) -> None:
    path = "/images/a.img (deleted)" if state == "removed" else "/images/a.img"
    place.virtual("loop9", loop__backing_file=path, loop__dio="1")
    if state == "replaced":
        place.file(path, "loop9", same=False)
    found = layers("/dev/loop9", place)
    assert [layer.kind for layer in found] == ["loop", "unknown"]
    assert len(found[0].cautions) == 1


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
