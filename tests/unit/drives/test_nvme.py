"""nvme-cli output of NVMe drives, and the controller and character device of a namespace.

JSON samples: nvme-cli 2.3, emulated. The character device belongs to the approved namespace, or nothing is sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.core.errors import UserError
from drivelab.drives import nvme, tools
from drivelab.drives.approved import HeldDevice
from drivelab.drives.identified import Identity
from drivelab.drives.node import Node

SAMPLES = Path(__file__).parent / "samples"

SMART_1 = {
    "critical_warning": 0, "temperature": 311, "avail_spare": 100, "spare_thresh": 10, "percent_used": 3,
    "data_units_read": 81234567, "data_units_written": 98765432.0, "power_on_hours": 4321, "media_errors": 0,
    "temperature_sensor_1": 311,
}  # fmt: skip
"""Output of nvme-cli 1.x: counters are numbers, one of them a float."""


def sample(name: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((SAMPLES / f"nvme2_{name}.json").read_text())
    return body


def test_health_is_equal_in_both_nvme_cli_versions() -> None:
    old = nvme.parse_smart(SMART_1)
    assert old.temperature_c == 38
    assert (old.available_spare_pct, old.percentage_used_pct) == (100, 3)
    assert old.bytes_written == 98_765_432 * 512_000
    assert nvme.parse_smart({key: str(value).removesuffix(".0") for key, value in SMART_1.items()}) == old


def test_health_of_an_emulated_drive() -> None:
    new = nvme.parse_smart(sample("smart_log"))
    assert new.temperature_c == 50
    assert new.bytes_written is not None


def test_unreported_health_is_none() -> None:
    assert nvme.parse_smart({}) == nvme.Smart(None, None, None, None)
    assert nvme.parse_smart({"temperature": 0}).temperature_c is None


@pytest.mark.parametrize(("name", "index", "data_bytes"), [("id_ns", 0, 512), ("id_ns_4kn", 4, 4096)])
def test_the_format_in_use(name: str, index: int, data_bytes: int) -> None:
    formats = nvme.parse_lba_formats(sample(name))
    assert len(formats) == 8
    used = [entry for entry in formats if entry.in_use]
    assert [(entry.index, entry.data_bytes, entry.metadata_bytes) for entry in used] == [(index, data_bytes, 0)]


def test_formats_beyond_the_sixteenth_and_unused_ones() -> None:
    """The two high bits of the index are bits 5 and 6 of flbas; bit 4 is the place of the metadata."""
    entries = [{"ds": 0, "ms": 0, "rp": 0}] * 18
    entries[0], entries[17] = {"ds": 9, "ms": 0, "rp": 2}, {"ds": 12, "ms": 8, "rp": 0}
    formats = nvme.parse_lba_formats({"flbas": 0b0011_0001, "lbafs": entries})
    assert formats == [nvme.LbaFormat(0, 512, 0, "good", False), nvme.LbaFormat(17, 4096, 8, "best", True)]


@given(st.integers(0, 2**63), st.sampled_from([int, str, "{:,}".format]))
def test_whole_numbers_of_all_versions(number: int, write: Any) -> None:
    assert nvme.whole(write(number)) == number


@given(st.one_of(st.none(), st.booleans(), st.text(alphabet="x-+. "), st.lists(st.integers()), st.just(float("nan"))))
def test_other_values_are_not_numbers(value: Any) -> None:
    assert nvme.whole(value) is None


def test_a_log_nested_under_the_device_name() -> None:
    flat = {"sprog": 65535, "sstat": {"global_erased": 1, "status": "(1) Most recent sanitize completed"}}
    assert nvme.unwrap({"/dev/nvme0": flat}) == flat
    assert nvme.unwrap(flat) == flat


def test_readers_run_nvme_cli(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []

    def read_json(*command: str) -> dict[str, Any] | None:
        commands.append(command)
        return {"nvme0": {"sprog": 0}} if "sanitize-log" in command else SMART_1 if "smart-log" in command else None

    monkeypatch.setattr(tools, "read_json", read_json)
    assert nvme.sanitize_log("/dev/nvme0") == {"sprog": 0}
    assert nvme.lifetime_bytes_written("/dev/nvme0") == 98_765_432 * 512_000
    assert nvme.id_ctrl("/dev/nvme0") is None
    assert nvme.id_ns("/dev/nvme0n1") is None
    assert commands[0] == ("nvme", "sanitize-log", "/dev/nvme0", "--output-format=json")


def controller(sys_root: Path, name: str, subsystem: str, state: str = "live") -> Path:
    directory = sys_root / f"devices/pci0000:00/{name}-pci/nvme/{name}"
    directory.mkdir(parents=True)
    (directory / "state").write_text(f"{state}\n")
    top = sys_root / "devices/virtual/nvme-subsystem" / subsystem
    top.mkdir(parents=True, exist_ok=True)
    (top / name).symlink_to(directory)
    for kind, path in (("nvme", directory), ("nvme-subsystem", top)):
        link = sys_root / "class" / kind / path.name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(path)
    return directory


def namespace(sys_root: Path, parent: Path, name: str, nsid: int = 1) -> None:
    directory = parent / name
    directory.mkdir()
    (directory / "device").symlink_to(parent)
    (directory / "nsid").write_text(f"{nsid}\n")
    link = sys_root / "class/block" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(directory)


def test_a_namespace_directly_below_its_controller(tmp_path: Path) -> None:
    drive, other = controller(tmp_path, "nvme0", "nvme-subsys0"), controller(tmp_path, "nvme1", "nvme-subsys1")
    for number in (1, 2, 10):
        namespace(tmp_path, drive, f"nvme0n{number}", number)
    namespace(tmp_path, other, "nvme1n1")
    assert nvme.controller_of("nvme0n1", tmp_path) == "/dev/nvme0"
    assert nvme.namespaces("nvme0n2", tmp_path) == ["nvme0n1", "nvme0n2", "nvme0n10"]
    assert nvme.namespaces("nvme1n1", tmp_path) == ["nvme1n1"]
    assert nvme.namespace_id("nvme0n10", tmp_path) == 10


def test_with_multipath_numbers_of_drive_and_controller_are_unrelated(tmp_path: Path) -> None:
    controller(tmp_path, "nvme2", "nvme-subsys5", state="connecting")
    alive = controller(tmp_path, "nvme3", "nvme-subsys5")
    subsystem = tmp_path / "devices/virtual/nvme-subsystem/nvme-subsys5"
    namespace(tmp_path, subsystem, "nvme5n1")
    namespace(tmp_path, subsystem, "nvme5n2", 2)
    namespace(tmp_path, alive, "nvme5c3n1")
    assert nvme.controller_of("nvme5n1", tmp_path) == "/dev/nvme3"
    assert nvme.namespaces("nvme5n1", tmp_path) == ["nvme5n1", "nvme5n2"]


@pytest.mark.parametrize("name", ["sda", "nvme0", "nvme0c0n1", "nvme0n1p1", "nvme9n1"])
def test_other_devices_have_no_controller(tmp_path: Path, name: str) -> None:
    assert nvme.controller_of(name, tmp_path) is None
    assert nvme.namespaces(name, tmp_path) == []


@pytest.fixture
def null() -> Iterator[int]:
    descriptor = os.open("/dev/null", os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def held(name: str, descriptor: int) -> HeldDevice:
    opened = Node(descriptor, name, "259:0", "1")
    return HeldDevice(f"/dev/{name}", name, "S1", None, opened, identity=Identity("S1", 512))


@pytest.mark.parametrize(
    ("release", "crashes"),
    [("6.1.0-56-amd64", True), ("6.4.16", True), ("6.5.0", False), ("6.18.44-x", False), ("10.0", False), ("x", True)],
)
def test_polling_for_commands_needs_a_kernel(release: str, crashes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(release=release))
    assert nvme.can_crash(polled=True, nvme=True) == crashes
    assert not nvme.can_crash(polled=False, nvme=True)
    assert not nvme.can_crash(polled=True, nvme=False)


@pytest.mark.parametrize(
    ("name", "node", "reason"),
    [
        ("loop0", None, "/dev/loop0 is not a whole NVMe namespace"),
        ("nvme0n1", None, r"ng0n1, which passes NVMe commands to /dev/nvme0n1, cannot be opened \(No such file"),
        ("nvme0n1", "/dev/null", "/dev/ng0n1 is not the character device of /dev/nvme0n1. Nothing was written"),
        ("nvme0n1", "a file", "/dev/ng0n1 is not the character device of /dev/nvme0n1. Nothing was written"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, null: int, name: str, node: str | None, reason: str) -> None:
    if node is not None:
        (tmp_path / "ng0n1").symlink_to(node if node == "/dev/null" else __file__)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(UserError, match=reason):
        nvme.open_character_device(held(name, null), dev=tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before, "nothing stays open"
