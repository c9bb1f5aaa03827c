"""Drive identity: QEMU's settings, read back through the kernel, udev and the drive tools."""

from __future__ import annotations

from typing import Any

import pytest
from emulation.machine import Machine

pytestmark = pytest.mark.emulated


@pytest.fixture(scope="module")
def drives(bench: Machine) -> dict[str, dict[str, Any]]:
    """Facts by serial number."""
    facts: dict[str, dict[str, Any]] = bench.run("python3 /guest/drives.py").json()
    return facts


def test_all_drives_are_found(drives: dict[str, dict[str, Any]]) -> None:
    assert sorted(drives) == ["EMU-FLASH", "EMU-NATIVE-4K", "EMU-SATA", "EMU-SHARED", "None"]
    assert {facts["holder"] for facts in drives.values()} == {None}


@pytest.mark.parametrize(
    ("serial", "expected"),
    [
        ("EMU-FLASH", {
            "model": "QEMU NVMe Ctrl", "transport": "pcie", "capacity_bytes": 4 << 20, "lba_format": "512n",
            "logical_block_bytes": 512, "physical_block_bytes": 512, "rotational": False,
            "by_id": "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-FLASH", "write_cache_state": "on",
        }),
        ("EMU-NATIVE-4K", {
            "model": "QEMU NVMe Ctrl", "transport": "pcie", "capacity_bytes": 64 << 20, "lba_format": "4Kn",
            "logical_block_bytes": 4096, "physical_block_bytes": 4096, "rotational": False,
            "by_id": "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-NATIVE-4K", "write_cache_state": "on",
        }),
        ("EMU-SATA", {
            "model": "EMULATED SATA", "firmware": "FW01", "transport": "sata", "capacity_bytes": 64 << 20,
            "lba_format": "512e", "logical_block_bytes": 512, "physical_block_bytes": 4096, "link": "1.5 Gbps",
            "rotational": False,
            "by_id": "/dev/disk/by-id/ata-EMULATED_SATA_EMU-SATA", "write_cache_state": "on",
        }),
    ],
)  # fmt: skip
def test_facts(drives: dict[str, dict[str, Any]], serial: str, expected: dict[str, Any]) -> None:
    assert {key: drives[serial][key] for key in expected} == expected


@pytest.mark.parametrize("serial", ["EMU-FLASH", "EMU-NATIVE-4K"])
def test_nvme_health(drives: dict[str, dict[str, Any]], serial: str) -> None:
    assert drives[serial]["firmware"]
    assert 0 < drives[serial]["temperature_c"] < 100
    assert drives[serial]["life_used_pct"] == 0
    assert sum(entry["in_use"] for entry in drives[serial]["lba_formats"]) == 1
