"""Select the telemetry sources for a drive on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from drivelab.telemetry.drive_sensors import nvme_sources, sectors_source, smartctl_source, temperature_source
from drivelab.telemetry.host import cpu_source, frequency_source
from drivelab.telemetry.log import Source
from drivelab.telemetry.power import (
    NO_METER,
    Meter,
    drive_power_source,
    host_power_source,
    meter_source,
    processor_energy_source,
)


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
    candidates = [
        cpu_source(proc_root, helpers, kernel_serves=name.startswith("loop"), beside=beside),
        frequency_source(sys_root),
        host_power_source(sys_root),
        processor_energy_source(sys_root),
        meter_source(meter),
    ]
    if name:
        candidates += [
            sectors_source(name, sys_root),
            temperature_source(name, sys_root),
            drive_power_source(name, sys_root),
            smartctl_source(name, sys_root),
            *nvme_sources(name, sys_root),
        ]
    return [source for source in candidates if source is not None]
