"""Drive identity from fake sysfs trees, with and without the drive tools."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sysfs_drives import Machine

from drivelab.core.errors import UserError
from drivelab.drives import guard, identity, sysfs, tools

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(autouse=True)
def no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all drive tools look uninstalled, unless a test installs one."""

    def missing(program: str, *arguments: str, timeout_s: float = 60.0) -> tools.Output:
        raise UserError(f"the program {program} is not installed; install it")

    monkeypatch.setattr(tools, "run", missing)


def describe(machine: Machine, name: str) -> dict[str, Any]:
    facts = identity.describe(name, machine.sys, machine.udev, machine.by_id)
    json.dumps(facts)
    assert facts.keys() >= sysfs.describe(name, machine.sys).keys()
    return facts


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("multipath", [False, True])
def test_an_nvme_drive_without_tools(machine: Machine, multipath: bool) -> None:
    machine.nvme_drive(multipath=multipath)
    facts = describe(machine, "nvme0n1")
    assert (facts["model"], facts["serial"], facts["firmware"]) == ("EXAMPLE SSD 990", "S6Z1NJ0W123456", "4B2QJXD7")
    assert (facts["transport"], facts["link"], facts["link_max"]) == ("pcie", "8.0 GT/s PCIe x4", "16.0 GT/s PCIe x4")
    assert facts["lba_format"] == "512n"
    assert facts["temperature_c"] == 41.85
    assert facts["lba_formats"] is None
    assert facts["lifetime_bytes_written"] is None


def test_an_nvme_drive_with_tools(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.nvme_drive()

    def run(program: str, verb: str, device: str, form: str) -> tools.Output:
        assert (verb, device) in {("id-ns", "/dev/nvme0n1"), ("smart-log", "/dev/nvme0")}
        return tools.Output(0, (SAMPLES / f"nvme2_{verb.replace('-', '_')}.json").read_text(), "")

    monkeypatch.setattr(tools, "run", run)
    facts = describe(machine, "nvme0n1")
    assert (facts["temperature_c"], facts["life_used_pct"]) == (50, 0)
    assert {
        "index": 0,
        "data_bytes": 512,
        "metadata_bytes": 0,
        "relative_performance": "best",
        "in_use": True,
    } in facts["lba_formats"]


def test_a_sata_drive_with_names_truncated_by_scsi(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.sata_drive(sata_spd="3.0 Gbps", hw_sata_spd_limit="6.0 Gbps")
    facts = describe(machine, "sda")
    assert (facts["transport"], facts["link"], facts["link_max"]) == ("sata", "3.0 Gbps", "6.0 Gbps")
    assert (facts["model"], facts["firmware"]) == ("EXAMPLE SSD 860", "4B6Q")
    assert (facts["serial"], facts["lba_format"], facts["temperature_c"]) == ("S3Z8NB0K123456A", "512e", 31.0)
    (machine.udev / "b8:0").write_text("S:disk/by-id/x\nE:ID_MODEL=EXAMPLE_SSD_860_1TB\nE:ID_REVISION=RVT04B6Q\n")
    facts = describe(machine, "sda")
    assert (facts["model"], facts["firmware"]) == ("EXAMPLE SSD 860 1TB", "RVT04B6Q")
    answer = (SAMPLES / "hdparm_ssd.txt").read_text().replace("860 1TB", "861 1TB")
    monkeypatch.setattr(tools, "run", lambda *_: tools.Output(0, answer, ""))
    assert describe(machine, "sda")["model"] == "EXAMPLE SSD 861 1TB"


def test_the_adapter_of_a_sata_or_sas_drive_is_named(machine: Machine) -> None:
    machine.sata_drive()
    assert describe(machine, "sda")["controller"] is None, "no PCI function tells"
    adapter = machine.write(machine.sys / "devices/pci0000:00/0000:00:17.0", **{"class": "0x010601"}, vendor="0x8086",
                            device="0xa352")  # fmt: skip
    assert describe(machine, "sda")["controller"] == "no driver, PCI 8086:a352"
    (adapter / "driver").symlink_to(machine.write(machine.sys / "bus/pci/drivers/ahci"))
    assert describe(machine, "sda")["controller"] == "ahci, PCI 8086:a352"


def test_who_made_a_drive(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """By number alone without systemd's database, and by name with it."""
    answers: dict[str, str] = {}

    def query(program: str, *arguments: str) -> tools.Output:
        if program != "systemd-hwdb":
            raise UserError("not installed")
        return tools.Output(0, answers.get(arguments[-1], ""), "")

    monkeypatch.setattr(tools, "run", query)
    machine.sata_drive()
    assert describe(machine, "sda")["manufacturer"] is None
    machine.write(machine.sys / "class/block/sda/device", wwid="naa.5002538e40a1b2c3")
    assert describe(machine, "sda")["manufacturer"] == "OUI 002538"
    answers["OUI:002538"] = "ID_OUI_FROM_DATABASE=Samsung Electronics\n"
    assert describe(machine, "sda")["manufacturer"] == "Samsung Electronics (OUI 002538)"
    machine.nvme_drive()
    machine.write(machine.sys / "class/block/nvme0n1/device/device", vendor="0x8086")
    assert describe(machine, "nvme0n1")["manufacturer"] == "PCI vendor 8086"
    answers["pci:v00008086*"] = "X=1\nID_VENDOR_FROM_DATABASE=Intel Corporation\n"
    assert describe(machine, "nvme0n1")["manufacturer"] == "Intel Corporation (PCI vendor 8086)"


def test_an_nvme_drive_is_its_own_controller(machine: Machine) -> None:
    machine.nvme_drive()
    machine.write(machine.sys / "devices/pci0000:00/0000:01:00.0", **{"class": "0x010802"})
    assert describe(machine, "nvme0n1")["controller"] is None


def test_unknown_speeds_are_none(machine: Machine) -> None:
    machine.sata_drive(sata_spd="<unknown>", hw_sata_spd_limit="<unknown>")
    facts = describe(machine, "sda")
    assert (facts["link"], facts["link_max"]) == (None, None)


def test_a_sas_drive(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.sas_drive()
    facts = describe(machine, "sdb")
    assert (facts["transport"], facts["link"], facts["link_max"]) == ("sas", "12.0 Gbit x1", "22.5 Gbit x1")
    assert (facts["model"], facts["temperature_c"]) == ("SASDRIVE", None)

    def run(program: str, page: str, device: str) -> tools.Output:
        name = {"--page=0xd": "temperature", "--page=0x11": "solid_state"}[page]
        return tools.Output(0, (SAMPLES / f"sg_logs_{name}.txt").read_text(), "")

    monkeypatch.setattr(tools, "run", run)
    facts = describe(machine, "sdb")
    assert (facts["temperature_c"], facts["life_used_pct"]) == (38, 3)


def test_mappings_and_raids_are_described(machine: Machine) -> None:
    machine.whole("dm-0", "virtual/block", dm__name="vg-root")
    machine.whole("md127", "virtual/block", md__level="raid1")
    assert (describe(machine, "dm-0")["model"], describe(machine, "dm-0")["transport"]) == ("vg-root", "dm")
    assert (describe(machine, "md127")["model"], describe(machine, "md127")["transport"]) == ("raid1", "md")


def test_a_flash_card(machine: Machine) -> None:
    machine.disk("mmcblk0", "mmc0/mmc0:0001", device__name="SC64G", device__fwrev="0x8", device__serial="0xd34db33f")
    facts = describe(machine, "mmcblk0")
    assert (facts["model"], facts["serial"], facts["transport"]) == ("SC64G", "0xd34db33f", "mmc")


def test_only_whole_disks_are_listed(machine: Machine) -> None:
    for name in ("sdb", "sda", "sdaa", "vda", "mmcblk0", "dm-10", "dm-2", "md0", "nvme10n1", "nvme9n1"):
        machine.whole(name, "listed")
    for name in ("ram0", "zram0", "sr0", "fd0", "mmcblk0boot0", "mmcblk0rpmb", "loop0"):
        machine.whole(name, "not")
    machine.whole("sda1", "listed/sda", partition="1")
    machine.whole("nvme10c0n1", "hidden", hidden="1")
    machine.whole("nbd0", "not", size="0")
    machine.whole("loop1", "virtual", loop__backing_file="/var/image")
    assert identity.whole_disks(machine.sys) == [
        "dm-2", "dm-10", "loop1", "md0", "mmcblk0", "nvme9n1", "nvme10n1", "sda", "sdb", "sdaa", "vda",
    ]  # fmt: skip


def test_the_most_descriptive_path_pins_a_drive(machine: Machine) -> None:
    machine.nvme_drive()
    assert describe(machine, "nvme0n1")["by_id"] is None
    expected = ["nvme-eui.0025385b", "nvme-EXAMPLE_SSD_990_S6Z1NJ0W123456_1", "nvme-EXAMPLE_SSD_990_S6Z1NJ0W123456"]
    for name in expected:
        machine.link(name, "nvme0n1")
        machine.link(f"{name}-part1", "nvme0n1p1")
        assert describe(machine, "nvme0n1")["by_id"] == str(machine.by_id / name)
    machine.link("nvme-OTHER_S1", "nvme1n1")
    assert describe(machine, "nvme0n1")["by_id"] == str(machine.by_id / expected[-1])


def test_namespaces_that_share_a_serial_number(machine: Machine) -> None:
    machine.nvme_drive(multipath=True)
    second = machine.whole("nvme0n2", "virtual/nvme-subsystem/nvme-subsys0", nsid="2")
    (second / "device").symlink_to(second.parent)
    machine.link("nvme-EXAMPLE_SSD_990_S6Z1NJ0W123456", "nvme0n2")
    machine.link("nvme-nvme.144d-5336-00000002", "nvme0n2")
    assert describe(machine, "nvme0n2")["by_id"] == str(machine.by_id / "nvme-nvme.144d-5336-00000002")
    machine.link("nvme-EXAMPLE_SSD_990_S6Z1NJ0W123456_2", "nvme0n2")
    assert describe(machine, "nvme0n2")["by_id"] == str(machine.by_id / "nvme-EXAMPLE_SSD_990_S6Z1NJ0W123456_2")
    ambiguous = [link for link in machine.by_id.iterdir() if identity.is_ambiguous(str(link), "nvme0n2", machine.sys)]
    assert [link.name for link in ambiguous] == ["nvme-EXAMPLE_SSD_990_S6Z1NJ0W123456"]
    assert not identity.is_ambiguous("/dev/nvme0n2", "nvme0n2", machine.sys)


def test_link_to_the_only_namespace_is_not_ambiguous(machine: Machine) -> None:
    machine.nvme_drive()
    assert not identity.is_ambiguous("/dev/disk/by-id/nvme-EXAMPLE_SSD_990_S6Z1NJ0W123456", "nvme0n1", machine.sys)


LINKS = [
    "ata-EXAMPLE_SSD_860_1TB_S3Z8NB0K123456A", "scsi-SATA_EXAMPLE_SSD_860_S3Z8NB0K123456A", "scsi-35002538e4",
    "wwn-0x5002538e4",
]  # fmt: skip
"""Best first."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.sets(st.sampled_from(LINKS), min_size=1))
def test_names_with_the_serial_number_come_first(tmp_path: Path, names: set[str]) -> None:
    machine = Machine(Path(mkdtemp(dir=tmp_path)))
    machine.sata_drive()
    for name in names:
        machine.link(name, "sda")
    assert describe(machine, "sda")["by_id"] == str(machine.by_id / min(names, key=LINKS.index))


@pytest.mark.parametrize(
    ("logical", "physical", "word"),
    [
        (512, 512, "512n"),
        (512, 4096, "512e"),
        (4096, 4096, "4Kn"),
        (512, 16384, "512e"),
        (4096, 16384, "4Kn"),
        (520, 520, "520"),
    ],
)
def test_lba_format_names(machine: Machine, logical: int, physical: int, word: str) -> None:
    machine.whole("sda", queue__logical_block_size=str(logical), queue__physical_block_size=str(physical))
    assert sysfs.blocks("sda", machine.sys) == {"physical_block_bytes": physical, "lba_format": word}


def test_a_by_id_link_to_itself_is_ignored(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (machine.by_id / "ata-LOOP").symlink_to("ata-LOOP")
    (machine.by_id / "ata-DISK_S1").symlink_to("../../sdz")
    assert identity.by_id("sdz", "S1", machine.sys, machine.by_id) == str(machine.by_id / "ata-DISK_S1")


@pytest.mark.parametrize(
    ("files", "kind"),
    [({"queue__rotational": "1", "queue__zoned": "host-aware"}, (True, "host-aware")),
     ({"queue__zoned": "none"}, (False, "none")), ({}, (False, None))],
)  # fmt: skip
def test_the_kernel_tells_a_hard_disk_and_its_zones(
    machine: Machine, files: dict[str, str], kind: tuple[bool, str | None]
) -> None:
    machine.whole("sda", "pci/ata1", **files)
    facts = describe(machine, "sda")
    assert (facts["rotational"], facts["zoned"]) == kind


@pytest.mark.parametrize(("zoned", "refused"), [("host-managed", True), ("host-aware", False), ("none", False)])
def test_zones_that_the_host_must_manage_are_refused(machine: Machine, zoned: str, refused: bool) -> None:
    machine.whole("sda", "pci/ata1", queue__zoned=zoned)
    if not refused:
        guard.refuse_zones("here", "sda", machine.sys)
        return
    with pytest.raises(UserError, match=r"^here is host-managed zoned storage"):
        guard.refuse_zones("here", "sda", machine.sys)


def test_an_unknown_drive_is_refused() -> None:
    with pytest.raises(UserError, match="there is no block device nosuch; run lsblk"):
        identity.attached_name("/dev/nosuch")
