"""Purge for real: virtual drives, and loop devices over files of the test's own that do what bad drives do."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drivelab.drives import lock, node
from drivelab.drives.guard import HeldDevice
from drivelab.drives.purge import METHODS, Leaves, Method, Promise, purge
from drivelab.drives.purge.verification import purge_verified
from drivelab.errors import UserError
from drivelab.virtual import manage
from drivelab.virtual.manage import VirtualDrive

pytestmark = pytest.mark.device

MIB = 1 << 20
Attach = Callable[..., HeldDevice]


@pytest.fixture
def attach(tmp_path: Path, run_directory: Path) -> Iterator[Attach]:
    """Attaches a loop device over a new file in a folder, and detaches it after the test."""
    attached: list[str] = []

    def one(*options: str, size: int = 8 * MIB, folder: Path = tmp_path) -> HeldDevice:
        file = folder / f"{len(attached)}.img"
        with file.open("wb") as image:
            for _ in range(size // MIB):
                image.write(os.urandom(MIB))
            image.write(os.urandom(size % MIB))
        done = subprocess.run(
            ["losetup", "--find", "--show", *options, str(file)], capture_output=True, text=True, check=True
        )
        device = done.stdout.strip()
        attached.append(device)
        return held(device, "LOOP", None)

    yield one
    for device in attached:
        subprocess.run(["losetup", "--detach", device], check=True)


@pytest.fixture(autouse=True)
def _no_serial(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loop devices have none. What a test holds open is closed after it."""
    monkeypatch.setattr("drivelab.drives.purge.verification.actual_serial", lambda device, name: "LOOP")
    yield
    for opened in OPENED:
        os.close(opened.descriptor)
    OPENED.clear()


OPENED: list[node.Node] = []


def held(device: str, serial: str, virtual: str | None) -> HeldDevice:
    """A device as the guard hands it out, open until the end of the test."""
    opened = node.of_descriptor(os.open(device, os.O_RDONLY), device)
    OPENED.append(opened)
    return HeldDevice(device, opened.name, serial, virtual, opened)


def approved(drive: VirtualDrive) -> HeldDevice:
    return held(drive.device, drive.serial, drive.name)


def content(device: str) -> bytes:
    """What programs see that read through the page cache."""
    return Path(device).read_bytes()


def a_method(carry_out: Callable[[HeldDevice], object], promises: Promise = Promise.PATTERN) -> Method:
    def perform(device: HeldDevice, say: object) -> dict[str, object]:
        carry_out(device)
        return {}

    return Method("lie", "a lie", promises, Leaves.UNWRITTEN, lambda device: None, perform)


def fill(device: str) -> None:
    with Path(device).open("r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())


def silent(text: str, fraction: float | None) -> None: ...


def test_trim_leaves_a_virtual_drive_without_a_mapped_page(drive: VirtualDrive) -> None:
    fill(drive.device)
    assert manage.counters("test")["mapped_pages"] > 0
    result = purge(approved(drive), "trim")
    assert (result["method"], result["leaves"], result["tried"]) == ("trim", "unwritten", [])
    assert "canaries are gone" in result["verified"]
    assert "zeros" in result["content"]
    assert manage.counters("test")["mapped_pages"] == 0
    assert not any(content(drive.device))


def test_overwrite_writes_every_page_of_a_virtual_drive_once(drive: VirtualDrive) -> None:
    fill(drive.device)
    told: list[float] = []
    before = manage.counters("test")["host_write_bytes"]
    result = purge(
        approved(drive), "overwrite", lambda text, fraction: told.append(fraction) if fraction is not None else None
    )
    counters = manage.counters("test")
    assert result["leaves"] == "written once"
    assert not any(content(drive.device))
    assert told == sorted(told)
    assert told[-1] == 1.0
    written = counters["host_write_bytes"] - before
    assert drive.capacity_bytes < written < drive.capacity_bytes + 80 * 4096  # canaries and the trial of writing


def test_auto_takes_trim_first(drive: VirtualDrive) -> None:
    result = purge(approved(drive))
    assert (result["method"], result["tried"]) == ("trim", [])


@pytest.mark.parametrize("method", ["trim", "overwrite"])
@pytest.mark.parametrize("size", [8 * MIB, 5 * MIB + 3 * 512, 4096])
def test_loop_device_of_any_size(attach: Attach, method: str, size: int) -> None:
    device = attach(size=size)
    purge(device, method)
    assert not any(content(device.device))


def test_auto_falls_back_on_overwriting_where_there_is_no_trim(attach: Attach, tmp_path: Path) -> None:
    """ramfs cannot punch holes, so a loop device over a file in it offers no discard."""
    folder = tmp_path / "ramfs"
    folder.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", str(folder)], check=True)
    try:
        device = attach(folder=folder)
        with pytest.raises(UserError, match=r"cannot be purged by trim: .*offers no TRIM"):
            purge(device, "trim")
        assert any(content(device.device))
        result = purge(device)
        assert result["method"] == "overwrite"
        assert [one["method"] for one in result["tried"]] == ["trim"]
        assert "no TRIM" in result["tried"][0]["reason"]
        assert not any(content(device.device))
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_drive_that_keeps_everything_is_found_out(attach: Attach) -> None:
    device = attach()
    # One in each of 64 parts, the first chunk and the last, of which chance may take one twice.
    told = rf"{device.device} is not purged by lie .*: (6[456]) of \1 canaries still read back"
    with pytest.raises(UserError, match=told):
        purge_verified(a_method(lambda one: None, Promise.NOTHING), device, silent)


def test_drive_that_keeps_a_part_is_found_out(attach: Attach) -> None:
    def three_quarters(one: HeldDevice) -> None:
        subprocess.run(["blkdiscard", "--force", f"--length={6 * MIB}", one.device], capture_output=True, check=True)

    with pytest.raises(UserError, match=r"canaries still read back, the first at byte 6\d{6}"):
        purge_verified(a_method(three_quarters), attach(), silent)


def test_other_data_instead_of_zeros_is_found_out(attach: Attach) -> None:
    device = attach()
    with pytest.raises(UserError, match="do not read as 0x00"):
        purge_verified(a_method(lambda one: fill(one.device), Promise.ZEROS), device, silent)
    assert "read" in purge_verified(a_method(lambda one: fill(one.device), Promise.NOTHING), device, silent)["verified"]


def test_read_only_drive_is_refused_before_the_purge(attach: Attach) -> None:
    device = attach("--read-only")
    before = content(device.device)
    with pytest.raises(UserError, match=r"cannot be written to before the purge.*write-protected"):
        purge(device, "trim")
    assert content(device.device) == before


def test_drive_that_takes_no_writes_any_more_is_found_out(attach: Attach) -> None:
    def overwrite_and_lock(one: HeldDevice) -> None:
        METHODS["overwrite"].carry_out(one, silent)
        subprocess.run(["blockdev", "--setro", one.device], check=True)

    device = attach()
    try:
        with pytest.raises(UserError, match="afterwards the drive fails"):
            purge_verified(a_method(overwrite_and_lock, Promise.ZEROS), device, silent)
    finally:
        subprocess.run(["blockdev", "--setrw", device.device], check=True)  # the flag would outlive the loop device


def test_change_of_size_is_found_out(attach: Attach) -> None:
    def shrink(one: HeldDevice) -> None:
        backing = Path(f"/sys/block/{one.name}/loop/backing_file").read_text().strip()
        os.truncate(backing, 4 * MIB)
        subprocess.run(["losetup", "--set-capacity", one.device], check=True)

    with pytest.raises(UserError, match="4194304 bytes in blocks of 512 instead of 8388608"):
        purge_verified(a_method(shrink), attach(), silent)


@pytest.mark.parametrize("held", [True, False])
def test_stale_partitions_vanish(attach: Attach, held: bool) -> None:
    """A stage holds the drive with O_EXCL, and the kernel does not read the table of a held drive again."""
    device = attach("--partscan")
    subprocess.run(["addpart", device.device, "1", "2048", "2048"], check=True)  # no kernel need know any table for it
    stale = Path(f"/sys/block/{device.name}/{device.name}p1")
    assert stale.exists()
    if held:
        hold = lock.Hold(device.path, "test", device.device)
        purge(device, "trim")
        hold.close()
    else:
        purge(device, "trim")
    assert not stale.exists()


def test_readers_through_the_page_cache_see_the_purged_drive(attach: Attach) -> None:
    device = attach()
    with Path(device.device).open("rb", buffering=0) as reader:  # keeps the cache alive
        assert any(reader.read(MIB))
        purge(device, "trim")
        reader.seek(0)
        assert not any(reader.read(MIB))
