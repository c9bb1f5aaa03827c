"""Purge and write cache of emulated NVMe and SATA drives, verified on the virtual drive below."""

from __future__ import annotations

import json
from typing import Any

import pytest
from emulation.machine import Machine

from drivelab.virtual import manage
from drivelab.virtual.model import PAGE_BYTES

pytestmark = pytest.mark.emulated

FLASH = "/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_EMU-FLASH"
SATA = "/dev/disk/by-id/ata-EMULATED_SATA_EMU-SATA"


def write(machine: Machine, size_mib: int, *options: str) -> None:
    """Write this much data, by default at random."""
    text = machine.run(f"/guest/iops.sh {FLASH} {size_mib} {' '.join(options)}").stdout
    job = json.loads(text[text.index("{") :])["jobs"][0]
    assert (job["error"], job["write"]["io_bytes"]) == (0, size_mib << 20)


def purge(machine: Machine, device: str, serial: str, method: str) -> dict[str, Any]:
    done: dict[str, Any] = machine.run(f"python3 /guest/purge.py {device} {serial} {method}", 120).json()
    return done


def wear_out(machine: Machine) -> None:
    """Write the whole drive, then overwrite it at random until it has no empty flash."""
    write(machine, 4, "--rw=write", "--bs=128k")
    write(machine, 2)


def write_amplification(before: dict[str, int], after: dict[str, int]) -> float:
    written = after["host_write_bytes"] - before["host_write_bytes"]
    return (after["nand_write_bytes"] - before["nand_write_bytes"]) / written


def test_format_restores_the_fresh_state(bench: Machine, flash: manage.VirtualDrive) -> None:
    """Mapped pages and write amplification are those of the virtual drive."""
    wear_out(bench)
    worn_out = manage.counters(flash.name)
    write(bench, 1)
    assert worn_out["mapped_pages"] == flash.capacity_bytes // PAGE_BYTES
    assert write_amplification(worn_out, manage.counters(flash.name)) > 2

    done = purge(bench, FLASH, "EMU-FLASH", "nvme-format-user-data")
    assert done["method"] == "nvme-format-user-data"
    assert "canaries are gone" in done["verified"]
    purged = manage.counters(flash.name)
    assert purged["mapped_pages"] <= 1

    write(bench, 1)
    assert write_amplification(purged, manage.counters(flash.name)) == 1


def test_auto_uses_the_format_and_records_the_stronger_methods(bench: Machine, flash: manage.VirtualDrive) -> None:
    done = purge(bench, FLASH, "EMU-FLASH", "auto")
    assert done["method"] == "nvme-format-user-data"
    assert [attempt["method"] for attempt in done["tried"]] == ["nvme-sanitize-block"]
    assert "SANICAP" in done["tried"][0]["reason"]
    assert manage.counters(flash.name)["mapped_pages"] <= 1


@pytest.mark.parametrize(
    ("device", "serial", "method", "reason"),
    [(FLASH, "EMU-FLASH", "nvme-sanitize-block", "SANICAP"), (SATA, "EMU-SATA", "ata-erase", "no ATA security")],
)
def test_unsupported_method_is_refused(bench: Machine, device: str, serial: str, method: str, reason: str) -> None:
    assert f"cannot be purged by {method}" in (error := purge(bench, device, serial, method)["error"])
    assert reason in error


def test_hdparm_reports_success_for_an_erase_without_effect(bench: Machine) -> None:
    """This is why drivelab does not trust exit statuses."""
    bench.run(f"printf kept | dd of={SATA} bs=4 conv=notrunc,fsync")
    bench.run(f"hdparm --user-master u --security-set-pass x {SATA}")
    bench.run(f"hdparm --user-master u --security-erase x {SATA}")
    assert bench.run(f"blockdev --flushbufs {SATA}; head -c 4 {SATA}").stdout == "kept"


def test_auto_trims_sata_and_removes_its_partitions(bench: Machine) -> None:
    bench.run(f"echo 'size=8MiB' | sfdisk --quiet --label gpt {SATA} && udevadm settle && test -b {SATA}-part1")
    done = purge(bench, SATA, "EMU-SATA", "auto")
    assert done["method"] == "trim"
    assert {"ata-erase", "scsi-sanitize-block"} <= {attempt["method"] for attempt in done["tried"]}
    bench.run("udevadm settle")
    assert bench.run(f"ls {SATA}-part1 /dev/sda1", check=False).stdout == ""
    assert bench.run(f"head -c 4096 {SATA} | tr -d '\\0' | wc -c").stdout.strip() == "0"


@pytest.mark.parametrize(("device", "serial"), [(FLASH, "EMU-FLASH"), (SATA, "EMU-SATA")])
def test_write_cache_is_switched_and_restored(bench: Machine, device: str, serial: str) -> None:
    states = bench.run(f"python3 /guest/write_cache.py {device} {serial}").json()
    assert (states["before"], states["changed"], states["after"]) == ("on", "off", "on"), states
