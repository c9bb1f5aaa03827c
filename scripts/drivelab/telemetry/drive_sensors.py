"""Read the drive's sector counters, temperature and health log."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.drives import nvme, sysfs, tools
from drivelab.telemetry.sampler import FAST_S, SLOW_S, Source, number_in

_KELVIN = 273
_HWMON_PATTERNS = ("hwmon*", "hwmon/hwmon*", "device/hwmon*", "device/hwmon/hwmon*", "nvme[0-9]*/hwmon*")
"""Patterns below a block device's `device`: for an NVMe controller, for its PCI function in older kernels, for a SCSI
device, and for the controllers of an NVMe subsystem with several paths."""
_SMART_FIELDS = {
    "percent_used": ("percentage_used_pct", 1),
    "percentage_used": ("percentage_used_pct", 1),
    "avail_spare": ("available_spare_pct", 1),
    "media_errors": ("media_errors", 1),
    "data_units_written": ("smart_bytes_written", nvme.DATA_UNIT_BYTES),
    "data_units_read": ("smart_bytes_read", nvme.DATA_UNIT_BYTES),
    "warning_temp_time": ("warning_temperature_min", 1),
    "critical_comp_time": ("critical_temperature_min", 1),
    "thm_temp1_trans_count": ("thermal_1_transitions", 1),
    "thm_temp2_trans_count": ("thermal_2_transitions", 1),
    "thm_temp1_total_time": ("thermal_1_s", 1),
    "thm_temp2_total_time": ("thermal_2_s", 1),
}
"""nvme-cli's names: our field and unit (NVM Express base specification, SMART / health information log)."""
_ATA_STATISTICS = {
    (1, 24): ("smart_bytes_written", 512),
    (1, 40): ("smart_bytes_read", 512),
    (4, 8): ("media_errors", 1),
    (7, 8): ("percentage_used_pct", 1),
}
"""Page and offset of the device statistics log (ATA Command Set, Device Statistics): our field and unit."""
_STAT_FIELDS = {
    0: "reads", 2: "sectors_read", 3: "read_ms", 4: "writes", 6: "sectors_written", 7: "write_ms", 8: "in_flight",
    13: "sectors_discarded",
}  # fmt: skip
"""Index in a block device's `stat`: our field (Documentation/block/stat.rst). Requests are counted as the drive
receives them, merged or split; `read_ms` and `write_ms` are the sums of their times in block layer and drive."""


def sectors_source(name: str, sys_root: Path) -> Source:
    """Read the kernel's counters of a block device since it was attached.

    They are completed requests and their times, sectors of 512 bytes read, written and discarded, and requests in
    flight.
    """
    file = sysfs.block_dir(name, sys_root) / "stat"

    def read() -> dict[str, float]:
        fields = file.read_text().split()
        return {field: float(fields[index]) for index, field in _STAT_FIELDS.items() if index < len(fields)}

    return Source("sectors", read, prompt=True)


def hwmon_folders(name: str, sys_root: Path) -> list[Path]:
    """Return the hardware monitors below a block device."""
    device = sysfs.block_dir(name, sys_root) / "device"
    paths = (path.resolve() for pattern in _HWMON_PATTERNS for path in sorted(device.glob(pattern)))
    return list(dict.fromkeys(path for path in paths if (path / "name").is_file()))


def temperature_source(name: str, sys_root: Path) -> Source | None:
    """Read the drive's temperature sensors and warning temperature in °C.

    The first sensor is the drive's composite temperature (Documentation/hwmon/nvme and drivetemp). For SATA each
    reading is a command that drains the drive's queue, so it is read rarely.
    """
    folder = next((path for path in hwmon_folders(name, sys_root) if (path / "temp1_input").is_file()), None)
    if folder is None:
        return None
    sensors = {
        "temperature_c" if (number := _number(file.name)) == 1 else f"temperature_sensor_{number - 1}_c": file
        for file in sorted(folder.glob("temp[0-9]*_input"), key=lambda file: _number(file.name))
    }
    limit_c = _plausible(folder / "temp1_max")
    limits = {} if limit_c is None else {"temperature_limit_c": limit_c}
    alarm = folder / "temp1_alarm"

    def read() -> dict[str, float]:
        values = {field: number_in(file) / 1000 for field, file in sensors.items()} | limits
        return {**values, "temperature_alarm": number_in(alarm)} if alarm.is_file() else values

    nvme_drive = sysfs.read_text(folder / "name") == "nvme"
    return Source("temperature", read, period_s=FAST_S if nvme_drive else SLOW_S)


def _number(name: str) -> int:
    return int("".join(re.findall(r"\d+", name)[:1]))


def _plausible(file: Path) -> float | None:
    """Return a limit in °C, or None for the 0 K or largest number of other drives."""
    try:
        value_c = number_in(file) / 1000
    except (OSError, ValueError):
        return None
    return value_c if 0 < value_c < 200 else None


def nvme_sources(name: str, sys_root: Path) -> list[Source]:
    """Read SMART log and power state of an NVMe drive. The result is empty for other drives or without nvme-cli."""
    controller = nvme.controller_of(name, sys_root)
    if controller is None or shutil.which("nvme") is None:
        return []
    limit_k = nvme.whole((nvme.id_ctrl(controller) or {}).get("wctemp")) or 0
    limits = {"temperature_limit_c": float(limit_k - _KELVIN)} if limit_k > _KELVIN else {}

    def read_smart() -> dict[str, float]:
        log = nvme.smart_log(controller)
        if log is None:
            raise OSError(f"nvme smart-log returned nothing for {controller}")
        return smart_fields(log) | limits

    return [
        Source("smart", read_smart, period_s=SLOW_S),
        Source("power_state", lambda: {"power_state": _power_state(controller)}, period_s=SLOW_S),
    ]


def smart_fields(log: Mapping[str, Any]) -> dict[str, float]:
    """Return the fields of an NVMe SMART log in nvme-cli's JSON."""
    values = {
        field: float(value * unit)
        for key, (field, unit) in _SMART_FIELDS.items()
        if (value := nvme.whole(log.get(key))) is not None
    }
    kelvin = nvme.whole(log.get("temperature"))
    return {**values, "temperature_c": float(kelvin - _KELVIN)} if kelvin else values


def _power_state(controller: str) -> float:
    """Return the number of the power state (feature 02h, power management); 0 is the fastest."""
    output = tools.run("nvme", "get-feature", controller, "--feature-id=2")
    match = re.search(r"[Vv]alue:\s*(?:0x)?([0-9a-fA-F]+)", output.stdout)
    if output.status != 0 or match is None:
        raise OSError(f"nvme get-feature: {output.words}")
    return float(int(match[1], 16) & 0x1F)


def smartctl_source(name: str, sys_root: Path) -> Source | None:
    """Read device statistics of a SATA or SAS drive by smartctl.

    They are read only at start and end, because they delay the drive's queue. Return None for other drives and without
    smartctl.
    """
    device = sysfs.block_dir(name, sys_root) / "device"
    if not (device / "scsi_level").exists() or shutil.which("smartctl") is None:
        return None

    def read() -> dict[str, float]:
        output = tools.run("smartctl", "--json", "-A", "-l", "devstat", "-l", "ssd", f"/dev/{name}")
        return smartctl_fields(json.loads(output.stdout))

    return Source("smartctl", read, period_s=None)


def smartctl_fields(document: Mapping[str, Any]) -> dict[str, float]:
    """Return temperature, wear and valid ATA device statistics of smartctl's JSON."""
    values: dict[str, float] = {}
    for page in document.get("ata_device_statistics", {}).get("pages", ()):
        for entry in page.get("table", ()):
            known = _ATA_STATISTICS.get((page["number"], entry["offset"]))
            if known and entry.get("flags", {}).get("valid"):
                values[known[0]] = float(entry["value"]) * known[1]
    if "scsi_percentage_used_endurance_indicator" in document:
        values["percentage_used_pct"] = float(document["scsi_percentage_used_endurance_indicator"])
    if "current" in document.get("temperature", {}):
        values["temperature_c"] = float(document["temperature"]["current"])
    return values
