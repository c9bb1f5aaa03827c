"""Read power from sensors, processor energy counters, and an external meter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.drives import sysfs, tools
from drivelab.telemetry.drive_sensors import hwmon_folders
from drivelab.telemetry.sampler import SLOW_S, Source, number_in

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Meter:
    """An external power meter: a CSV file that another program extends, or a command."""

    csv: Path | None = None
    """The last field of each line is the power in watts; lines without a number, such as headings, are ignored."""
    command: tuple[str, ...] = ()
    """Program and arguments; the first number in its output is the power in watts."""

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> Meter:
        """Return the meter of a study; an empty mapping means no meter."""
        return cls(Path(body["csv"]) if "csv" in body else None, tuple(body.get("command", ())))


NO_METER = Meter()


def drive_power_source(name: str, sys_root: Path) -> Source | None:
    """Read the power in W that the drive reports to the kernel."""
    files = [file for folder in hwmon_folders(name, sys_root) for file in sorted(folder.glob("power[0-9]*_input"))]
    return Source("drive_power", lambda: {"drive_power_w": _watts(files)}) if files else None


def host_power_source(sys_root: Path) -> Source | None:
    """Read the host's power in W (Documentation/hwmon/acpi_power_meter)."""
    folders = [
        folder
        for folder in sorted((sys_root / "class/hwmon").glob("hwmon*"))
        if sysfs.read_text(folder / "name") == "power_meter"
    ]
    files = [file for folder in folders for file in sorted(folder.glob("power[0-9]*_average"))]
    return Source("host_power", lambda: {"host_power_w": _watts(files)}, period_s=SLOW_S) if files else None


def _watts(files: list[Path]) -> float:
    """Return the sum in watts; hwmon files are in microwatts."""
    return sum(number_in(file) for file in files) / 1e6


def processor_energy_source(sys_root: Path) -> Source | None:
    """Read the energy of the processor packages in J (Documentation/power/powercap)."""
    zones = [
        zone
        for zone in sorted((sys_root / "class/powercap").glob("intel-rapl:*"))
        if (sysfs.read_text(zone / "name") or "").startswith("package") and sysfs.read_text(zone / "energy_uj")
    ]
    counters = [_Unwrapped(zone / "energy_uj", zone / "max_energy_range_uj") for zone in zones]
    if not counters:
        return None
    return Source("processor_energy", lambda: {"processor_energy_j": sum(c.read() for c in counters) / 1e6})


class _Unwrapped:
    """A wrapping counter, read as one that only rises."""

    def __init__(self, file: Path, range_file: Path) -> None:
        self._file, self._range = file, number_in(range_file)
        self._last, self._total = number_in(file), 0.0

    def read(self) -> float:
        value = number_in(self._file)
        self._total += (value - self._last) % self._range
        self._last = value
        return self._total


def meter_source(meter: Meter) -> Source | None:
    """Read the meter's mean in W since the last reading. The source has no reading if the meter gave no value."""
    if meter.csv is not None:
        return Source("meter", _AppendedCsv(meter.csv).read)
    if meter.command:
        return Source("meter", lambda: {"meter_power_w": _printed(meter.command)}, period_s=SLOW_S)
    return None


def _printed(command: tuple[str, ...]) -> float:
    output = tools.run(command[0], *command[1:], timeout_s=SLOW_S)
    match = _NUMBER.search(output.stdout)
    if output.status != 0 or match is None:
        raise OSError(f"{command[0]}: {output.words}")
    return float(match[0])


class _AppendedCsv:
    """Reader of lines appended from now on. A file that becomes shorter is read from its start."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = path.stat().st_size if path.exists() else 0

    def read(self) -> dict[str, float]:
        if not self._path.exists():
            return {}
        with self._path.open("rb") as file:
            if self._path.stat().st_size < self._position:
                self._position = 0
            file.seek(self._position)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._position += len(whole) + len(newline)
        watts = [
            value for line in whole.decode(errors="replace").splitlines() if (value := _last_field(line)) is not None
        ]
        return {"meter_power_w": sum(watts) / len(watts)} if watts else {}


def _last_field(line: str) -> float | None:
    field = line.rpartition(",")[2].strip()
    return float(field) if _NUMBER.fullmatch(field) else None
