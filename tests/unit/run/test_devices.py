"""When a file system can be made, and how a write cache is set and restored."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.drives import write_cache as drives_write_cache
from drivelab.drives.guard import ApprovedDevice
from drivelab.drives.identified import Identity
from drivelab.drives.undo import Undo, Write
from drivelab.plan.file_system import MIB, FileSystem
from drivelab.plan.plan import Plan
from drivelab.run import file_system_device as making
from drivelab.run import guest, guest_device
from drivelab.run.write_cache import as_wanted
from drivelab.telemetry.host import siblings


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host as root with every mkfs but no modprobe, whose kernel has the file systems of the returned file."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(making, "program", lambda name: name if name == "modprobe" else f"/sbin/{name}")
    path = tmp_path / "filesystems"
    path.write_text("nodev\ttmpfs\n\text4\n\txfs\n")
    return path


def test_a_ready_host_passes(ready: Path) -> None:
    making.refuse_unready(FileSystem("xfs"), ready)


@pytest.mark.parametrize(
    ("place", "name", "value", "kind", "message"),
    [
        (os, "geteuid", lambda: 1000, "xfs", r"needs root\. Nothing was written"),
        (making, "program", str, "f2fs", r"mkfs.f2fs is not installed.*Nothing was.*apt-get install f2fs-tools"),
        (os, "geteuid", lambda: 0, "btrfs", r"has no file system btrfs.*Nothing was written"),
    ],
)
def test_a_host_that_is_not_ready_is_refused(
    ready: Path, monkeypatch: pytest.MonkeyPatch, place: object, name: str, value: object, kind: str, message: str
) -> None:
    monkeypatch.setattr(place, name, value)
    with pytest.raises(UserError, match=message):
        making.refuse_unready(FileSystem(kind), ready)


@pytest.mark.parametrize(("status", "refused"), [(0, False), (1, True)])
def test_a_module_counts(
    ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, refused: bool
) -> None:
    modprobe = tmp_path / "modprobe"
    modprobe.write_text(f'#!/bin/sh\ntest "$*" = "--dry-run --quiet btrfs" || exit 9\nexit {status}\n')
    modprobe.chmod(0o755)
    monkeypatch.setattr(making, "program", lambda name: str(modprobe if name == "modprobe" else f"/sbin/{name}"))
    if refused:
        with pytest.raises(UserError, match="has no file system"):
            making.refuse_unready(FileSystem("btrfs"), ready)
    else:
        making.refuse_unready(FileSystem("btrfs"), ready)


def test_processes_that_measure_other_files_at_the_same_time_are_no_foreign_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: list[Callable[[], object]] = []

    def sources_for(name: str, meter: object, beside: Callable[[], object]) -> list[object]:
        own.append(beside)
        return []

    monkeypatch.setattr(guest_device, "sources_for", sources_for)
    with guest.file_in(tmp_path, MIB, "test") as opened:
        for subject in ({}, {"simultaneous": ["A", "B"]}):
            guest_device.GuestDevice(opened, Plan({"drive": {"serial": "A"}, **subject}, {})).telemetry_sources()
    assert own == [tuple, siblings]


DRIVE = ApprovedDevice("/dev/sdz", "sdz", "S/N 1", None, identity=Identity("S/N 1", 512))


class Cache:
    """A fake cache_type file of sysfs."""

    def __init__(self, file: Path, word: str) -> None:
        self.file = file
        file.write_text(word)

    def state(self, name: str) -> str | None:
        return {"write back": "on", "write through": "off", "absent": "none"}.get(self.file.read_text().strip())

    def undo_of(self, device: ApprovedDevice, on: bool) -> Undo:
        return Write(str(self.file), self.file.read_text())

    def change(self, device: ApprovedDevice, on: bool) -> None:
        self.file.write_text("write back" if on else "write through")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "run"))
    cache = Cache(tmp_path / "cache_type", "write back")
    for name in ("state", "undo_of", "change"):
        monkeypatch.setattr(drives_write_cache, name, getattr(cache, name))
    return cache


def test_set_and_restored_also_after_a_failure(cache: Cache) -> None:
    with as_wanted(DRIVE, "off"):
        assert cache.state("sdz") == "off"
    assert cache.state("sdz") == "on"
    with pytest.raises(RuntimeError), as_wanted(DRIVE, "off"):
        raise RuntimeError
    assert cache.state("sdz") == "on"


@pytest.mark.parametrize(("word", "wanted"), [("write back", "on"), ("write through", "off"), ("absent", "off"),
                                              ("absent", "on"), ("write back", None)])  # fmt: skip
def test_a_write_cache_in_the_right_state_is_not_changed(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, word: str, wanted: str | None
) -> None:
    cache.file.write_text(word)
    monkeypatch.setattr(drives_write_cache, "change", lambda device, on: pytest.fail("was changed"))
    with as_wanted(DRIVE, wanted):
        assert cache.file.read_text() == word
    assert cache.file.read_text() == word


def test_a_drive_that_does_not_report_is_refused(cache: Cache) -> None:
    cache.file.write_text("?")
    with pytest.raises(UserError, match=r"/dev/sdz does not report.*write_cache: unchanged"), as_wanted(DRIVE, "off"):
        pytest.fail("was entered")


def test_the_write_cache_of_a_virtual_drive_is_not_changed(cache: Cache) -> None:
    with as_wanted(ApprovedDevice("/dev/loop0", "loop0", "V", "op7", identity=Identity("V", 512)), "off"):
        assert cache.state("") == "on"
