"""Select the telemetry sources for a drive on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from drivelab.drives.approved import ApprovedDevice
from drivelab.drives.identifiers import actual_serial
from drivelab.telemetry.drive_sensors import nvme_sources, sectors_source, smartctl_source, temperature_source
from drivelab.telemetry.host import cpu_source, frequency_source
from drivelab.telemetry.log import Source
from drivelab.telemetry.members import array_source, combined
from drivelab.telemetry.power import (
    NO_METER,
    Meter,
    drive_power_source,
    host_power_source,
    meter_source,
    processor_energy_source,
)
from drivelab.virtual import manage


def sources_for(
    name: str,
    meter: Meter = NO_METER,
    helpers: Iterable[int] = (),
    beside: Callable[[], Iterable[int]] = tuple,
    sys_root: Path = Path("/sys"),
    proc_root: Path = Path("/proc"),
) -> list[Source]:
    """Return all sources of this host for the block device with a kernel name; of the host alone for an empty name.

    `helpers` are processes whose CPU time belongs to the drive, such as the server of a virtual drive. `beside` returns
    processes that measure other drives simultaneously; their CPU time is not foreign load either.
    """
    cpu = cpu_source(proc_root, helpers, kernel_serves=name.startswith("loop"), beside=beside)
    own = [sectors_source(name, sys_root), *_of_drive(name, sys_root)] if name else []
    return [cpu, *_of_host(meter, sys_root), *own]


def composed_sources(drive: ApprovedDevice, meter: Meter, wanted_state: str) -> list[Source]:
    """Return all sources of this host for a partition, volume or array: its own counters, and the sensors of its disks.

    `wanted_state` is that of an array. Simultaneous measurements do not share disks. The servers of virtual drives
    below belong to the subject.
    """
    servers = [record.pid for disk in drive.disks if (record := manage.find_by_device(f"/dev/{disk}")) is not None]
    cpu = cpu_source(Path("/proc"), servers, kernel_serves=any(disk.startswith("loop") for disk in drive.disks))
    members = {str(actual_serial(f"/dev/{disk}", disk)): _of_drive(disk, Path("/sys")) for disk in drive.disks}
    array = array_source(drive.name, wanted_state)
    return [
        cpu, sectors_source(drive.name, Path("/sys")), *_of_host(meter, Path("/sys")), *combined(members),
        *([array] if array is not None else []),
    ]  # fmt: skip


def _of_host(meter: Meter, sys_root: Path) -> list[Source]:
    candidates = [
        frequency_source(sys_root), host_power_source(sys_root), processor_energy_source(sys_root), meter_source(meter)
    ]  # fmt: skip
    return [source for source in candidates if source is not None]


def _of_drive(name: str, sys_root: Path) -> list[Source]:
    candidates = [
        temperature_source(name, sys_root), drive_power_source(name, sys_root), smartctl_source(name, sys_root)
    ]  # fmt: skip
    return [source for source in candidates if source is not None] + nvme_sources(name, sys_root)
