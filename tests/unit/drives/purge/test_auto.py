"""`auto` uses the strongest method that works, and stops when another method would be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_drives import FakeNvme, reasons

from drivelab.core.errors import UserError
from drivelab.drives.purge import METHODS, SpoiltError, methods_for, purge
from drivelab.drives.purge.canaries import Geometry

NVME = (
    "nvme-sanitize-block", "nvme-format-user-data", "nvme-sanitize-crypto", "nvme-format-crypto", "trim",
    "nvme-sanitize-overwrite", "overwrite",
)  # fmt: skip
SCSI_FLASH = (
    "scsi-sanitize-block", "ata-erase", "scsi-sanitize-crypto", "ata-erase-enhanced", "trim", "scsi-format",
    "scsi-sanitize-overwrite", "overwrite",
)  # fmt: skip
BY_HOST = ("trim", "overwrite")


def test_auto_uses_the_strongest_method_and_records_the_others(nvme: FakeNvme) -> None:
    assert purge(nvme.approved)["method"] == "nvme-sanitize-block"
    nvme.controller["sanicap"] = 0
    nvme.refused = {"format"}
    result = purge(nvme.approved)
    assert result["method"] == "trim"
    assert list(reasons(result)) == list(NVME[: NVME.index("trim")])
    assert "Invalid Command Opcode" in reasons(result)["nvme-format-user-data"]


def test_auto_overwrites_only_after_all_other_methods_failed(nvme: FakeNvme) -> None:
    nvme.controller |= {"sanicap": 0x4, "oacs": 0}
    nvme.trims = False
    assert purge(nvme.approved)["method"] == "nvme-sanitize-overwrite"
    nvme.controller["sanicap"] = 0
    result = purge(nvme.approved)
    assert (result["method"], result["leaves"]) == ("overwrite", "written once")
    assert result["tried"][-2]["method"] == "trim"


def test_auto_without_a_working_method_lists_every_reason(nvme: FakeNvme, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drivelab.drives.purge.canaries.write", _denied)
    with pytest.raises(UserError, match=r"cannot be purged by any method .*nvme-sanitize-block: .*overwrite: "):
        purge(nvme.approved)


def _denied(device: str, geometry: Geometry) -> dict[int, bytes]:
    raise OSError("Operation not permitted")


@pytest.mark.parametrize("methods", [NVME, SCSI_FLASH, BY_HOST])
def test_orders_contain_known_methods_and_end_with_overwrite(methods: tuple[str, ...]) -> None:
    assert set(methods) <= set(METHODS)
    assert len(set(methods)) == len(methods)
    assert methods[-1] == "overwrite"
    wearing = [methods.index(name) for name in methods if "overwrite" in name]
    assert methods.index("trim") < min(wearing)


@pytest.mark.parametrize(
    ("name", "rotational", "methods"),
    [("nvme0n1", "0", NVME), ("sda", "0", SCSI_FLASH), ("sda", "1", BY_HOST), ("loop3", "0", BY_HOST)],
)
def test_order_depends_on_transport(tmp_path: Path, name: str, rotational: str, methods: tuple[str, ...]) -> None:
    queue = tmp_path / "class/block" / name / "queue"
    queue.mkdir(parents=True)
    (queue / "rotational").write_text(rotational)
    assert methods_for(name, tmp_path) == methods


def test_unknown_method_is_refused(nvme: FakeNvme) -> None:
    with pytest.raises(UserError, match=r"'nvme-format' is not a purge method; use auto or one of nvme-sanitize-block"):
        purge(nvme.approved, "nvme-format")


def test_changed_size_stops_auto(nvme: FakeNvme) -> None:
    def shrink() -> None:
        nvme.erase()
        nvme.capacity_bytes //= 2

    nvme.erases = shrink
    with pytest.raises(SpoiltError, match="524288 bytes in blocks of 512 instead of 1048576"):
        purge(nvme.approved)
    assert not nvme.called("nvme", "format")


def test_another_drive_at_the_same_path_stops_auto(nvme: FakeNvme) -> None:
    approved = nvme.approved

    def swap() -> None:
        nvme.erase()
        nvme.serial = "OTHER"

    nvme.erases = swap
    with pytest.raises(SpoiltError, match="is another drive"):
        purge(approved)
