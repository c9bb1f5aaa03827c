"""Real purges: of virtual drives, and of loop devices over test files that behave like bad drives."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from loops import looped

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.drives import identified, node
from drivelab.drives.guard import HeldDevice
from drivelab.drives.purge import METHODS, Leaves, Method, Promise, purge
from drivelab.drives.purge.method import Drives, Rank
from drivelab.drives.purge.verification import purge_verified
from drivelab.virtual import manage
from drivelab.virtual.manage import VirtualDrive

pytestmark = pytest.mark.device

MIB = 1 << 20
Attach = Callable[..., HeldDevice]


@pytest.fixture
def attach(tmp_path: Path, run_directory: Path) -> Iterator[Attach]:
    """Return a function that attaches a loop device over a new file; it is detached after the test."""
    numbers = count()
    with ExitStack() as stack:

        def attach_one(*options: str, size: int = 8 * MIB, folder: Path = tmp_path) -> HeldDevice:
            file = folder / f"{next(numbers)}.img"
            file.write_bytes(os.urandom(size))
            return held(stack.enter_context(looped(file, *options)), "LOOP", None)

        yield attach_one
        close_opened()


@pytest.fixture(autouse=True)
def _no_serial(monkeypatch: pytest.MonkeyPatch, run_directory: Path) -> Iterator[None]:
    """Loop devices have no serial, so replace it. Close what a test holds open before the drives are stopped."""
    monkeypatch.setattr("drivelab.drives.purge.verification.actual_serial", lambda device, name: "LOOP")
    yield
    close_opened()


OPENED: list[node.Node] = []


def close_opened() -> None:
    while OPENED:
        os.close(OPENED.pop().descriptor)


def held(device: str, serial: str, virtual: str | None) -> HeldDevice:
    """Return a device like those of the guard, open until the end of the test."""
    opened = node.of_descriptor(os.open(device, os.O_RDONLY), device)
    OPENED.append(opened)
    return HeldDevice(device, opened.name, serial, virtual, opened, identity=identified.read(opened.name, serial))


def approved(drive: VirtualDrive) -> HeldDevice:
    return held(drive.device, drive.serial, drive.name)


def content(device: str) -> bytes:
    """Return the content that programs read through the page cache."""
    return Path(device).read_bytes()


def a_method(carry_out: Callable[[HeldDevice], object], promises: Promise = Promise.PATTERN) -> Method:
    def perform(device: HeldDevice, say: object) -> dict[str, object]:
        carry_out(device)
        return {}

    nothing, no_drives = Rank.TRIM, frozenset[Drives]()
    return Method("fake", "a fake", promises, Leaves.UNWRITTEN, lambda device: None, perform, nothing, no_drives)


def fill(device: str) -> None:
    with Path(device).open("r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())


def refill(device: HeldDevice) -> None:
    fill(device.device)


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
    shares: list[float] = []
    before = manage.counters("test")["host_write_bytes"]
    result = purge(
        approved(drive), "overwrite", lambda text, fraction: shares.append(fraction) if fraction is not None else None
    )
    counters = manage.counters("test")
    assert result["leaves"] == "written once"
    assert not any(content(drive.device))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    written = counters["host_write_bytes"] - before
    assert drive.capacity_bytes < written < drive.capacity_bytes + 80 * 4096  # canaries and the write test


def test_auto_takes_trim_first(drive: VirtualDrive) -> None:
    result = purge(approved(drive))
    assert (result["method"], result["tried"]) == ("trim", [])


@pytest.mark.parametrize("method", ["trim", "overwrite"])
@pytest.mark.parametrize("size", [8 * MIB, 5 * MIB + 3 * 512, 4096])
def test_loop_device_of_any_size(attach: Attach, method: str, size: int) -> None:
    device = attach(size=size)
    purge(device, method)
    assert not any(content(device.device))


def test_auto_overwrites_without_trim(attach: Attach, tmp_path: Path) -> None:
    """ramfs cannot punch holes, so a loop device over a file in it does not support discard."""
    folder = tmp_path / "ramfs"
    folder.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", str(folder)], check=True)
    try:
        device = attach(folder=folder)
        with pytest.raises(UserError, match=r"cannot be purged by trim: .*does not support TRIM"):
            purge(device, "trim")
        assert any(content(device.device))
        result = purge(device)
        assert result["method"] == "overwrite"
        assert [attempt["method"] for attempt in result["tried"]] == ["trim"]
        assert "does not support TRIM" in result["tried"][0]["reason"]
        assert not any(content(device.device))
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_drive_that_keeps_everything_is_detected(attach: Attach) -> None:
    device = attach()
    # 64 random chunks, the first and the last; random ones may coincide with these.
    message = rf"{device.device} is not purged by fake .*: (6[456]) of \1 canaries still read back"
    with pytest.raises(UserError, match=message):
        purge_verified(a_method(lambda device: None, Promise.NOTHING), device, silent)


def test_drive_that_keeps_a_part_is_detected(attach: Attach) -> None:
    def three_quarters(device: HeldDevice) -> None:
        subprocess.run(["blkdiscard", "--force", f"--length={6 * MIB}", device.device], capture_output=True, check=True)

    with pytest.raises(UserError, match=r"canaries still read back, the first at byte 6\d{6}"):
        purge_verified(a_method(three_quarters), attach(), silent)


def test_other_data_instead_of_zeros_is_detected(attach: Attach) -> None:
    device = attach()
    with pytest.raises(UserError, match="should read as 0x00"):
        purge_verified(a_method(refill, Promise.ZEROS), device, silent)
    assert "read" in purge_verified(a_method(refill, Promise.NOTHING), device, silent)["verified"]


def test_read_only_drive_is_refused_before_the_purge(attach: Attach) -> None:
    device = attach("--read-only")
    before = content(device.device)
    with pytest.raises(UserError, match=r"cannot be written to before the purge.*write-protected"):
        purge(device, "trim")
    assert content(device.device) == before


def test_drive_that_becomes_read_only_is_detected(attach: Attach) -> None:
    def overwrite_and_lock(device: HeldDevice) -> None:
        METHODS["overwrite"].carry_out(device, silent)
        subprocess.run(["blockdev", "--setro", device.device], check=True)

    device = attach()
    try:
        with pytest.raises(UserError, match="the drive fails after the purge"):
            purge_verified(a_method(overwrite_and_lock, Promise.ZEROS), device, silent)
    finally:
        subprocess.run(["blockdev", "--setrw", device.device], check=True)  # the flag would outlive the loop device


def test_change_of_size_is_detected(attach: Attach) -> None:
    def shrink(device: HeldDevice) -> None:
        backing = Path(f"/sys/block/{device.name}/loop/backing_file").read_text().strip()
        os.truncate(backing, 4 * MIB)
        subprocess.run(["losetup", "--set-capacity", device.device], check=True)

    with pytest.raises(UserError, match="4194304 bytes in blocks of 512 instead of 8388608"):
        purge_verified(a_method(shrink), attach(), silent)


@pytest.mark.parametrize("held", [True, False])
def test_stale_partitions_are_removed(attach: Attach, held: bool) -> None:
    """A stage holds the drive with O_EXCL, and the kernel does not reread the partition table of a held drive."""
    device = attach("--partscan")
    subprocess.run(["addpart", device.device, "1", "2048", "2048"], check=True)  # needs no partition table
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
