"""Select the telemetry sources for a drive on this host, or for all disks below a partition, volume or array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from drivelab.drives.approved import ApprovedDevice
from drivelab.drives.arrays import Chain
from drivelab.drives.identifiers import actual_serial
from drivelab.telemetry.drive_sensors import nvme_sources, sectors_source, smartctl_source, temperature_source
from drivelab.telemetry.host import cpu_source, frequency_source
from drivelab.telemetry.power import (
    NO_METER,
    Meter,
    drive_power_source,
    host_power_source,
    meter_source,
    processor_energy_source,
)
from drivelab.telemetry.sampler import FAST_S, Source
from drivelab.virtual import manage

_LARGEST = {"percentage_used_pct", "temperature_alarm", "power_state", "warning_temperature_min",
            "critical_temperature_min"}  # fmt: skip
"""Fields with the largest value of the members, for the whole subject."""
_SMALLEST = {"available_spare_pct"}
_TEMPERATURE, _LIMIT = "temperature_c", "temperature_limit_c"
_NO_LIMIT_C = 1000.0


def combined(sources: Mapping[str, Iterable[Source]]) -> list[Source]:
    """Return one source for each kind of source that a member has; `sources` are those of each member by its name.

    Each reading has all values of all members, with the member's name before the field (`SERIAL/temperature_c`), and
    the value of the subject, see `of_subject`.
    """
    by_name: dict[str, dict[str, Source]] = {}
    for member, several in sources.items():
        for source in several:
            by_name.setdefault(source.name, {})[member] = source
    return [_combined(name, members) for name, members in by_name.items()]


def _combined(name: str, members: Mapping[str, Source]) -> Source:
    def read() -> dict[str, float]:
        values = {member: source.read() for member, source in members.items()}
        named = {f"{member}/{field}": value for member, fields in values.items() for field, value in fields.items()}
        return named | of_subject(list(values.values()))

    first = next(iter(members.values()))
    return Source(name, read, first.period_s, first.prompt)


def of_subject(members: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the values of a subject from one reading of each member.

    Counters and powers are sums. The temperature is that of the member nearest to its limit, with this limit; without
    limits it is the highest.
    """
    readings = list(members)
    fields = dict.fromkeys(field for reading in readings for field in reading)
    values: dict[str, float] = {}
    for field in fields:
        known = [reading[field] for reading in readings if field in reading]
        choose: Callable[[list[float]], float] = max if field in _LARGEST else min if field in _SMALLEST else sum
        if not field.startswith("temperature_sensor_") and field not in (_TEMPERATURE, _LIMIT):
            values[field] = choose(known)
    warm = [reading for reading in readings if _TEMPERATURE in reading]
    if warm:
        nearest = max(warm, key=lambda reading: reading[_TEMPERATURE] - reading.get(_LIMIT, _NO_LIMIT_C))
        values |= {field: nearest[field] for field in (_TEMPERATURE, _LIMIT) if field in nearest}
    return values


def array_source(name: str, wanted: str, sys_root: Path = Path("/sys")) -> Source | None:
    """Read how many members an array lacks, how far it is synchronized, and whether it is in another state than wanted.

    Return None without an array in the subject. The state of md is also read at the edges of every cell, so that the
    end of a rebuild taints only the cells during which or after which it came.
    """
    chain = Chain.of(name, sys_root)
    if chain.state() is None:
        return None

    def read() -> dict[str, float]:
        state = chain.state()
        if state is None:
            raise OSError("the array is gone")
        synced = {} if state.synced_pct is None else {"array_synced_pct": state.synced_pct}
        return {"array_missing": float(state.missing), "array_other": float(state.state != wanted), **synced}

    return Source("array", read, period_s=FAST_S, prompt=not chain.volumes)


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
    cpu = cpu_source(proc_root, helpers, kernel_serves=name.startswith("loop"), beside=beside, sys_root=sys_root)
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
