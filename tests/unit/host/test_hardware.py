"""What board, firmware, memory, clocks and power limits are read as."""

from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from drivelab.host.hardware import hardware, memory_modules


def device(size: int, kind: int = 34, speed: int = 5600, configured: int = 4800, extended: int = 0) -> bytes:
    """Return a memory device as of SMBIOS 2.8 (40 bytes), with two strings."""
    body = bytearray(40)
    body[:4] = bytes([17, 40, 1, 0])
    struct.pack_into("<H", body, 0x0C, size)
    body[0x12] = kind
    struct.pack_into("<H", body, 0x15, speed)
    struct.pack_into("<I", body, 0x1C, extended)
    struct.pack_into("<H", body, 0x20, configured)
    return bytes(body) + b"DIMM 0\0Vendor\0\0"


END = bytes([127, 4, 0, 0, 0, 0])
BOARD = bytes([2, 4, 0, 0]) + b"A board\0\0"


def test_modules_are_counted_by_size_kind_and_configured_speed() -> None:
    table = BOARD + device(16384) + device(16384) + device(0) + device(8192, configured=0) + END + device(512)
    assert memory_modules(table) == "2 x 16 GiB DDR5 at 4800 MT/s, 1 x 8 GiB DDR5 at 5600 MT/s"


def test_sizes_beyond_the_field_and_in_kibibytes() -> None:
    table = device(0x7FFF, 26, extended=65536, configured=3200) + device(0x8000 | 4096, 0, 0, 0) + END
    assert memory_modules(table) == "1 x 64 GiB DDR4 at 3200 MT/s, 1 x 4 MiB"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(table: bytes) -> None:
    memory_modules(table)


def test_a_host_that_tells_nothing(tmp_path: Path) -> None:
    assert set(hardware(tmp_path).values()) == {None}


def test_a_host_that_tells_all(tmp_path: Path) -> None:
    files = {
        "class/dmi/id/board_vendor": "ASUSTeK",
        "class/dmi/id/board_name": "PRIME Z590",
        "class/dmi/id/bios_version": "1017",
        "class/dmi/id/bios_date": "07/12/2021",
        "devices/system/cpu/cpu0/cpufreq/base_frequency": "3500000",
        "devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq": "5300000",
        "class/powercap/intel-rapl:0/name": "package-0",
        "class/powercap/intel-rapl:0/constraint_0_name": "long_term",
        "class/powercap/intel-rapl:0/constraint_0_power_limit_uw": "125000000",
        "class/powercap/intel-rapl:0/constraint_1_name": "short_term",
        "class/powercap/intel-rapl:0/constraint_1_power_limit_uw": "251000000",
        "class/powercap/intel-rapl:0:0/name": "core",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "firmware/dmi/tables").mkdir(parents=True)
    (tmp_path / "firmware/dmi/tables/DMI").write_bytes(device(16384) + END)
    assert hardware(tmp_path) == {
        "board": "ASUSTeK PRIME Z590",
        "system": None,
        "bios": "1017 07/12/2021",
        "memory_modules": "1 x 16 GiB DDR5 at 4800 MT/s",
        "base_clock_mhz": 3500.0,
        "max_clock_mhz": 5300.0,
        "package_power_limit_w": 125.0,
    }


def test_the_nominal_clock_of_cppc(tmp_path: Path) -> None:
    folder = tmp_path / "devices/system/cpu/cpu0/acpi_cppc"
    folder.mkdir(parents=True)
    (folder / "nominal_freq").write_text("2450\n")
    assert hardware(tmp_path)["base_clock_mhz"] == 2450.0
