"""Faults that only a real driver shows: drives that fail, disappear or hang below the kernel's NVMe driver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from emulation.machine import Machine, Result

from drivelab.core.errors import UserError
from drivelab.virtual import manage
from drivelab.virtual.faults import Fault

pytestmark = pytest.mark.emulated

TIMEOUT_S = 10
"""nvme_core.io_timeout of the machine."""
MEDIUM_ERROR = 61
"""ENODATA, the errno of a medium error (errno_to_blk_status in the kernel's block/blk-core.c)."""


@pytest.fixture(autouse=True)
def _faults_end(hanging: manage.VirtualDrive) -> Iterator[None]:
    """Clear faults, so that a test that fails during a hang does not affect the next test."""
    yield
    with suppress(UserError):  # the drive is gone after the last test
        manage.clear_faults(hanging.name)


def by_id(serial: str) -> str:
    return f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{serial}"


def command(serial: str, options: str) -> str:
    return (
        f"fio --name=job --filename={by_id(serial)} --direct=1 --ioengine=libaio --thread --output-format=json "
        f"{options}"
    )


def job(result: Result) -> dict[str, Any]:
    """Return the only job in fio's JSON, which may follow other text."""
    only: dict[str, Any] = json.loads(result.stdout[result.stdout.index("{") :])["jobs"][0]
    return only


def fio(machine: Machine, serial: str, options: str) -> tuple[int, dict[str, Any]]:
    """Run fio; return its exit status and the job in its JSON."""
    result = machine.run(command(serial, options), check=False)
    return result.status, job(result)


def start_writes(machine: Machine, name: str, serial: str) -> None:
    """Start endless random writes, and wait for the first of them."""
    path = f"/sys/class/block/$(basename $(readlink -f {by_id(serial)}))/stat"
    before = int(machine.run(f"awk '{{print $5}}' {path}").stdout)
    machine.start(name, command(serial, "--rw=randwrite --bs=4k --iodepth=4 --time_based --runtime=1h"))
    machine.run(f"until [ $(awk '{{print $5}}' {path}) -gt {before + 100} ]; do sleep 0.1; done")


def works(machine: Machine, serial: str) -> bool:
    status, done = fio(machine, serial, "--rw=randwrite --bs=4k --number_ios=64 --offset=4M --size=1M")
    return status == 0 and done["error"] == 0 and done["write"]["total_ios"] == 64


def assert_nothing_is_stuck(machine: Machine) -> None:
    """Wait until no process is in uninterruptible sleep, where an unfinished request would keep it."""
    machine.run("while grep -qs ') D ' /proc/[0-9]*/stat; do sleep 0.1; done")


def test_medium_error_has_its_own_errno(faulty: Machine) -> None:
    status, done = fio(faulty, "EMU-MEDIUM", "--rw=read --bs=4k --offset=1M --size=64k")
    assert status != 0
    assert done["error"] == MEDIUM_ERROR
    assert done["read"]["total_ios"] > 0
    faulty.wait_for_log("critical medium error", timeout_s=30)
    assert works(faulty, "EMU-MEDIUM")


def test_write_error_fails_the_job(faulty: Machine, hanging: manage.VirtualDrive) -> None:
    manage.set_fault(hanging.name, Fault("error", operation="write", offset_bytes=2 << 20, length_bytes=4096))
    status, done = fio(faulty, "EMU-HANG", "--rw=write --bs=4k --offset=2M --size=64k")
    assert status != 0
    assert done["error"] != 0
    manage.clear_faults(hanging.name)
    assert works(faulty, "EMU-HANG")


def test_drive_removed_during_writes_fails_the_job(faulty: Machine) -> None:
    node = faulty.run(f"readlink -f {by_id('EMU-REMOVED')}").stdout.strip()
    start_writes(faulty, "pulled", "EMU-REMOVED")
    faulty.unplug("nvme-removed")
    result = faulty.finish("pulled")
    assert result.status != 0
    assert job(result)["error"] != 0
    assert job(result)["write"]["total_ios"] > 100
    faulty.run("udevadm settle")
    assert faulty.run(f"ls -d {node} {by_id('EMU-REMOVED')}", check=False).stdout == ""
    assert "is not attached" in verdict(faulty, by_id("EMU-REMOVED"), "EMU-REMOVED")
    assert_nothing_is_stuck(faulty)

    # Another drive appears under the name of the removed drive.
    faulty.monitor.execute("device_add", driver="nvme", id="nvme-swapped", drive="swapped", serial="EMU-SWAPPED")
    faulty.run(f"until [ -b {node} ]; do sleep 0.1; done; udevadm settle")
    sentence = verdict(faulty, node, "EMU-REMOVED")
    assert "has serial EMU-SWAPPED" in sentence
    assert "the sheet says EMU-REMOVED" in sentence
    assert verdict(faulty, by_id("EMU-SWAPPED"), "EMU-SWAPPED") == node.rpartition("/")[2]


def verdict(machine: Machine, device: str, serial: str) -> str:
    return machine.run(f"python3 /guest/approve.py {device} {serial}").stdout.strip()


def hang(machine: Machine, drive: manage.VirtualDrive, name: str) -> None:
    """Let a drive hang during writes until the kernel times out and begins to reset it."""
    log_length = len(machine.kernel_log())
    start_writes(machine, name, "EMU-HANG")
    manage.set_fault(drive.name, Fault("hang"))
    machine.wait_for_log("timeout, abort", 120, log_length)
    machine.wait_for_log("timeout, reset controller", 120, log_length)


def test_kernel_times_out_a_hang_and_the_drive_recovers(faulty: Machine, hanging: manage.VirtualDrive) -> None:
    hang(faulty, hanging, "hang")
    assert manage.clear_faults(hanging.name) > 0
    faulty.run("kill -INT $(pidof fio)", check=False)  # fio may have ended with the timed-out requests
    done = job(faulty.finish("hang"))
    # The kernel fails the timed-out requests, unless they complete while it resets the drive.
    assert done["error"] != 0 or done["write"]["lat_ns"]["max"] > TIMEOUT_S * 1e9
    assert works(faulty, "EMU-HANG")
    assert_nothing_is_stuck(faulty)


def test_hang_that_ends_in_loss_fails_the_job(faulty: Machine, hanging: manage.VirtualDrive) -> None:
    """The last test of this drive, because its hanging requests are lost."""
    hang(faulty, hanging, "lost")
    manage.stop(hanging.name, force=True)
    result = faulty.finish("lost")
    assert result.status != 0
    assert job(result)["error"] != 0
    assert_nothing_is_stuck(faulty)
