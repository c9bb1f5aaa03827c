"""How a file system is made, and what is checked before anything is touched."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.plan.file_system import MIB, FileSystem
from drivelab.plan.plan import Plan
from drivelab.run import file_system_device as making
from drivelab.run import guest, guest_device
from drivelab.telemetry.host import siblings

LATER = "lazy_itable_init=0,lazy_journal_init=0"


@pytest.mark.parametrize(
    ("kind", "mkfs", "arguments"),
    [
        ("ext4", (), ["-q", "-F", "-E", LATER]),
        ("ext4", ("-b", "1024"), ["-q", "-F", "-E", LATER, "-b", "1024"]),
        ("ext4", ("-E", "stride=4", "-b", "1024"), ["-q", "-F", "-E", f"{LATER},stride=4", "-b", "1024"]),
        ("ext4", ("-Estride=4", "-E", "nodiscard"), ["-q", "-F", "-E", f"{LATER},stride=4,nodiscard"]),
        ("xfs", ("-m", "reflink=0"), ["-q", "-f", "-m", "reflink=0"]),
        ("btrfs", (), ["-q", "-f"]),
        ("f2fs", ("-a", "0"), ["-q", "-f", "-a", "0"]),
    ],
)
def test_the_words_of_a_study_follow_those_that_drivelab_needs(
    kind: str, mkfs: tuple[str, ...], arguments: list[str]
) -> None:
    assert making.arguments(FileSystem(kind, mkfs)) == arguments


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
        (
            making,
            "program",
            str,
            "f2fs",
            r"mkfs.f2fs is not installed.*Nothing was.*apt-get install f2fs-tools",
        ),
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
