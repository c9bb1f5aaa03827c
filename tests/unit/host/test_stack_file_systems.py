"""The mount of a path is the one that the kernel uses, and each property of it that matters is named."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from storage_places import Place

from drivelab.drives.openers import Host
from drivelab.host.stack import file_systems
from drivelab.host.stack.file_systems import CAUTIONS, Mount, describe, folder_flags, mount_of, mounts

POINTS = ["/", "/a", "/a/b", "/a/b/c", "/ab", "/d"]


def made(number: int, parent: str, point: str) -> Mount:
    return Mount(str(number), parent, "0:1", point, "ext4", "/dev/x", ("rw",))


@given(
    st.lists(st.sampled_from(POINTS), max_size=8), st.sampled_from([*POINTS, "/a/x", "/abc", "/d/e/f"]), st.randoms()
)
def test_the_mount_of_a_path_is_the_last_one_above_it(points, path, random) -> None:
    """Whatever is mounted last at or above a path hides earlier mounts, also deeper ones."""
    table = [made(1, "0", "/")]
    for number, point in enumerate(points, 2):
        table.append(made(number, mount_of(point, table).id, point))
    above = [mount for mount in table if PurePosixPath(path).is_relative_to(mount.point)]
    shuffled = random.sample(table, len(table))
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


ROWS = [
    ("btrfs", "rw", "copies on write"),
    ("zfs", "rw,xattr", "copies on write"),
    ("btrfs", "rw", "checksums, which costs"),
    ("bcachefs", "rw", "checksums, which costs"),
    ("zfs", "rw", "ARC"),
    ("f2fs", "rw", "log-structured"),
    ("btrfs", "rw,compress-force=zstd:3", "compresses (compress-force=zstd:3)"),
    ("bcachefs", "rw,compression=lz4", "compresses (compression=lz4)"),
    ("ext4", "folder:compressed", "of this folder are compressed"),
    ("squashfs", "", "compressed and read-only"),
    ("ext4", "folder:encrypted", "of this folder are encrypted"),
    ("fuse.gocryptfs", "rw", "encrypts each file"),
    ("ext4", "rw,data=journal", "all data twice"),
    ("ext4", "rw,nobarrier", "no flushes to the drive (nobarrier)"),
    ("xfs", "rw,sync", "each write waits"),
    ("xfs", "rw,strictatime", "access time"),
    ("ext4", "rw,dax=always", "dax"),
    ("xfs", "rw,logdev=/dev/sdb1", "another device (logdev=/dev/sdb1)"),
    ("ext4", "ro", "only reads"),
    ("tmpfs", "rw", "memory, not a drive"),
    ("tmpfs", "rw", "swapped out"),
]


def cautions(kind: str, options: str) -> tuple[str, ...]:
    mount = Mount("1", "0", "0:1", "/", kind, "x", tuple(options.split(",")))
    return describe(mount, "/no-such-folder", "", Host(Path("/none"), Path("/none"))).cautions


@pytest.mark.parametrize(("kind", "options", "part"), ROWS)
def test_each_property_is_named(kind: str, options: str, part: str) -> None:
    assert any(part in sentence for sentence in cautions(kind, options))


def test_each_row_of_the_table_has_a_case() -> None:
    shown = {sentence for kind, options, _ in ROWS for sentence in cautions(kind, options)}
    for row in CAUTIONS:
        beginning = row.sentence.partition("{")[0]
        assert any(sentence.startswith(beginning) for sentence in shown), row


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("ext4", "rw,relatime,discard,data=ordered,barrier,nodiscard"),
        ("xfs", "rw,noatime,attr2,logbufs=8,noquota"),
        ("vfat", "rw,errors=remount-ro"),
    ],
)
def test_ordinary_mounts_have_no_cautions(kind: str, options: str) -> None:
    assert cautions(kind, options) == ()


def test_btrfs_without_copy_on_write_has_no_checksums_either() -> None:
    for options in ("rw,nodatacow", "rw,folder:nocow"):
        assert cautions("btrfs", options) == ()
    assert len(cautions("btrfs", "rw,nodatasum")) == 1
    assert not any("It compresses" in text for text in cautions("btrfs", "rw,compress=none"))


def test_words_show_the_options_that_change_io() -> None:
    mount = Mount("1", "0", "0:1", "/", "ext4", "x", ("rw", "relatime", "acl", "discard"))
    assert (
        describe(mount, "/no-such-folder", "", Host(Path("/none"), Path("/none"))).words
        == "ext4, mounted with relatime, discard"
    )


def test_options_of_the_superblock_count(tmp_path: Path) -> None:
    """Ext4 omits its default options from mountinfo; tune2fs -o journal_data makes data=journal a default."""
    place = Place(tmp_path)
    (place.proc / "fs/ext4/sda1").mkdir(parents=True)
    (place.proc / "fs/ext4/sda1/options").write_text("rw\nbsddf\ndata=journal\n")
    mount = Mount("1", "0", "8:1", "/", "ext4", "/dev/sda1", ("rw",))
    (caution,) = describe(mount, "/no-such-folder", "sda1", place.host).cautions
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
