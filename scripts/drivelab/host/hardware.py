"""Describe a host's board, firmware, memory, clocks and power limits, as far as the kernel tells them."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drivelab.drives.sysfs import read_text

_MEMORY_DEVICE, _END = 17, 127
"""Types of structures (SMBIOS Reference Specification 3.7.0, section 6.2)."""
_SIZE_ELSEWHERE, _UNKNOWN_SIZE, _FASTER_THAN_FIELD = 0x7FFF, 0xFFFF, 0xFFFF
_SPEED, _CONFIGURED, _CONFIGURED_LONG = 0x15, 0x20, 0x58
"""Offsets of speeds in MT/s: of the module, as configured, and as configured if beyond 65,535 (section 7.18)."""
_KINDS = {24: "DDR3", 26: "DDR4", 27: "LPDDR", 28: "LPDDR2", 29: "LPDDR3", 30: "LPDDR4", 34: "DDR5", 35: "LPDDR5"}


def hardware(sys_root: Path = Path("/sys")) -> dict[str, Any]:
    """Return the columns of the table `hosts` that the board and its firmware tell; None for what they do not.

    Memory modules need root. Sources: Documentation/ABI/testing/sysfs-class-dmi, admin-guide/pm/cpufreq and
    admin-guide/acpi/cppc_sysfs, power/powercap.
    """
    return {
        "board": _dmi(sys_root, "board_vendor", "board_name", "board_version"),
        "system": _dmi(sys_root, "sys_vendor", "product_name"),
        "bios": _dmi(sys_root, "bios_vendor", "bios_version", "bios_date"),
        "memory_modules": memory_modules(_bytes(sys_root / "firmware/dmi/tables/DMI")),
        "base_clock_mhz": _base_clock_mhz(sys_root / "devices/system/cpu/cpu0"),
        "max_clock_mhz": _kilo(sys_root / "devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"),
        "package_power_limit_w": _package_power_limit_w(sys_root / "class/powercap"),
    }


def _dmi(sys_root: Path, *names: str) -> str | None:
    words = [read_text(sys_root / "class/dmi/id" / name) for name in names]
    return " ".join(word for word in words if word) or None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _kilo(path: Path) -> float | None:
    text = read_text(path)
    return int(text) / 1000 if text and text.isdecimal() else None


def _base_clock_mhz(cpu: Path) -> float | None:
    """Return the clock that all cores hold: by intel_pstate in kHz, or by ACPI CPPC in MHz."""
    base = _kilo(cpu / "cpufreq/base_frequency")
    nominal = read_text(cpu / "acpi_cppc/nominal_freq")
    return base if base is not None else float(nominal) if nominal and nominal.isdecimal() and int(nominal) else None


def _package_power_limit_w(zones: Path) -> float | None:
    """Return the long-term limit of all processor packages together."""
    limits = []
    for zone in sorted(zones.glob("intel-rapl:[0-9]*")):
        if (read_text(zone / "name") or "").startswith("package") and read_text(zone / "enabled") != "0":
            limits += [
                read_text(zone / name.name.replace("_name", "_power_limit_uw"))
                for name in zone.glob("constraint_[0-9]_name")
                if read_text(name) == "long_term"
            ]
    known = [int(limit) for limit in limits if limit and limit.isdecimal()]
    return sum(known) / 1e6 if known and len(known) == len(limits) else None


def memory_modules(table: bytes) -> str | None:
    """Return the modules of a SMBIOS table by size, kind and configured speed, as `2 x 16 GiB DDR5 at 4800 MT/s`."""
    modules = Counter(module for module in map(_module, _structures(table)) if module)
    return ", ".join(f"{count} x {module}" for module, count in modules.items()) or None


def _structures(table: bytes) -> Iterator[bytes]:
    """Yield the formatted part of each memory device; strings follow each structure, and end with two zero bytes."""
    at = 0
    while at + 4 <= len(table):
        kind, length = table[at], table[at + 1]
        end = table.find(b"\0\0", at + length)
        if kind == _END or length < 4 or end < 0:
            return
        if kind == _MEMORY_DEVICE:
            yield table[at : at + length]
        at = end + 2


def _module(structure: bytes) -> str | None:
    """Return size, kind and speed; None for an empty socket."""
    size = _word(structure, 0x0C)
    if size in (0, _UNKNOWN_SIZE):
        return None
    mebibytes = _word(structure, 0x1C, "<I") & 0x7FFFFFFF if size == _SIZE_ELSEWHERE else size & 0x7FFF
    if size != _SIZE_ELSEWHERE and size & 0x8000:  # in KiB
        mebibytes //= 1024
    speed = _word(structure, _CONFIGURED) or _word(structure, _SPEED)
    if speed == _FASTER_THAN_FIELD:
        speed = _word(structure, _CONFIGURED_LONG, "<I")
    amount = f"{mebibytes / 1024:g} GiB" if mebibytes >= 1024 else f"{mebibytes} MiB"
    kind = _KINDS.get(structure[0x12] if len(structure) > 0x12 else 0)
    return amount + (f" {kind}" if kind else "") + (f" at {speed} MT/s" if speed else "")


def _word(structure: bytes, offset: int, form: str = "<H") -> int:
    """Return a number of a structure; 0 if an older version of the standard ends before it."""
    ends = offset + struct.calcsize(form)
    return int(struct.unpack_from(form, structure, offset)[0]) if ends <= len(structure) else 0
