"""Disks and mounts: what each is, and each property of it that matters; the table of outcomes has all of them."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path, PurePosixPath

import pytest
from cases import table
from hypothesis import given
from hypothesis import strategies as st
from storage_places import AHCI, Place

from drivelab.drives.openers import Host
from drivelab.host.stack import device_class as classes
from drivelab.host.stack import file_systems
from drivelab.host.stack.device_class import device_class
from drivelab.host.stack.file_systems import CAUTIONS, Mount, describe, folder_flags, mount_of, mounts
from drivelab.virtual import manage


def test_a_virtual_drive_is_no_common_loop_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = manage.VirtualDrive("op7", "S1", "/dev/loop3", 1, 1, 1, "/x", {})
    monkeypatch.setattr(manage, "find_by_device", lambda device: drive if device == "/dev/loop3" else None)
    place = Place(tmp_path)
    place.virtual("loop3")
    assert device_class("loop3", place.host) == classes.VIRTUAL_DRIVE
    assert device_class("loop4", place.host) == classes.LOOP
    assert classes.words("loop3", classes.VIRTUAL_DRIVE, place.host) == "virtual drive 'op7' of drivelab"


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


POINTS = ["/", "/a", "/a/b", "/a/b/c", "/ab", "/d"]


def made(number: int, parent: str, point: str) -> Mount:
    return Mount(str(number), parent, "0:1", point, "ext4", "/dev/x", ("rw",))


@given(
    st.lists(st.sampled_from(POINTS), max_size=8), st.sampled_from([*POINTS, "/a/x", "/abc", "/d/e/f"]), st.randoms()
)
def test_the_mount_of_a_path_is_the_last_one_above_it(points, path, random) -> None:
    """Whatever is mounted last at or above a path hides earlier mounts, also deeper ones."""
    mounted = [made(1, "0", "/")]
    for number, point in enumerate(points, 2):
        mounted.append(made(number, mount_of(point, mounted).id, point))
    above = [mount for mount in mounted if PurePosixPath(path).is_relative_to(mount.point)]
    shuffled = random.sample(mounted, len(mounted))
    assert mount_of(path, shuffled) == above[-1]


def test_without_a_root_mount_nothing_is_known() -> None:
    assert mount_of("/a", []) is None


def test_mountinfo_is_read_with_its_escapes_and_optional_fields(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.table.write_text(
        "20 1 254:1 / / rw,relatime shared:1 master:2 - ext4 /dev/root rw,discard\n"
        "21 20 0:30 /sub /my\\040disk ro,nosuid - btrfs /dev/mapper/a\\040b rw,compress=zstd:3\n"
    )
    first, second = mounts(place.host)
    assert first == Mount("20", "1", "254:1", "/", "ext4", "/dev/root", ("rw", "relatime", "discard"))
    assert second.point == "/my disk"
    assert second.source == "/dev/mapper/a b"
    assert second.options == ("ro", "nosuid", "rw", "compress=zstd:3")


def test_each_row_of_the_table_has_a_case() -> None:
    shown = {sentence for case in table("outcomes") if case["kind"] == "mount" for sentence in case["becomes"]}
    for row in CAUTIONS:
        beginning = row.sentence.partition("{")[0]
        assert any(sentence.startswith(beginning) for sentence in shown), row


def test_words_show_the_options_that_change_io() -> None:
    mount = Mount("1", "0", "0:1", "/", "ext4", "x", ("rw", "relatime", "acl", "discard"))
    words, _ = describe(mount, "/no-such-folder", "", Host(Path("/none"), Path("/none")))
    assert words == "ext4, mounted with relatime, discard"


def test_options_of_the_superblock_count(tmp_path: Path) -> None:
    """Ext4 omits its default options from mountinfo; tune2fs -o journal_data makes data=journal a default."""
    place = Place(tmp_path)
    (place.proc / "fs/ext4/sda1").mkdir(parents=True)
    (place.proc / "fs/ext4/sda1/options").write_text("rw\nbsddf\ndata=journal\n")
    mount = Mount("1", "0", "8:1", "/", "ext4", "/dev/sda1", ("rw",))
    (caution,) = describe(mount, "/no-such-folder", "sda1", place.host)[1]
    assert "data=journal" in caution


def test_flags_of_a_real_folder_are_read(tmp_path: Path) -> None:
    assert folder_flags(str(tmp_path / "missing")) == ()
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        old = fcntl.ioctl(descriptor, file_systems._FS_IOC_GETFLAGS, bytes(8))
        fcntl.ioctl(descriptor, 0x40086602, (int.from_bytes(old[:4], "little") | 0x8).to_bytes(8, "little"))
    except OSError as error:
        pytest.skip(f"the file system of {tmp_path} has no flags ({error.strerror})")
    finally:
        os.close(descriptor)
    assert folder_flags(str(tmp_path)) == ("sync",)
