"""Read SCSI and SAS drives with sg3_utils and sysfs (SPC-5, SBC-4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives import sysfs, tools
from drivelab.drives.sysfs import known, read_text

_SANITIZE = 0x48
_SERVICE_ACTIONS = {"overwrite": 1, "block": 2, "crypto": 3}
_TEMPERATURE_PAGE, _SOLID_STATE_PAGE = "0xd", "0x11"


@dataclass(frozen=True)
class Link:
    """Speed of the SAS link of a drive, as the kernel prints it, such as `12.0 Gbit`."""

    negotiated: str | None
    maximal: str | None
    width: int


def unmapped_reads_zeros(device: str) -> bool:
    """Return whether unmapped blocks read as zeros; False if the device answers no SCSI command.

    This and the readers below raise UserError if sg3_utils are not installed.
    """
    return parse_unmapped_reads_zeros(tools.run("sg_readcap", "--long", device).stdout)


def sanitize_methods(device: str) -> frozenset[str]:
    """Return the sanitize methods that the drive lists: `overwrite`, `block`, `crypto`; empty if it does not answer."""
    supported = set()
    for method, action in _SERVICE_ACTIONS.items():
        output = tools.run("sg_opcodes", "--no-inquiry", f"--opcode={_SANITIZE:#x},{action}", device)
        if output.status == 0 and parse_supported(output.stdout):
            supported.add(method)
    return frozenset(supported)


def temperature_c(device: str) -> int | None:
    """Return degrees Celsius from the drive's temperature log page; None if it has none."""
    return parse_temperature_c(tools.run("sg_logs", f"--page={_TEMPERATURE_PAGE}", device).stdout)


def percentage_used_pct(device: str) -> int | None:
    """Return the vendor's estimate of the life used, from the solid state media log page; None without that page."""
    return parse_percentage_used_pct(tools.run("sg_logs", f"--page={_SOLID_STATE_PAGE}", device).stdout)


def parse_unmapped_reads_zeros(text: str) -> bool:
    """Return lbprz of READ CAPACITY(16), from the output of `sg_readcap --long`."""
    return _number(r"lbprz=(\d)", text) == 1


def parse_supported(text: str) -> bool:
    """Return whether a drive supports a command, from the output of `sg_opcodes --opcode=…`."""
    return "Command is supported" in text


def parse_temperature_c(text: str) -> int | None:
    """Parse the output of `sg_logs --page=0xd`."""
    return _number(r"Current temperature = (\d+) C", text)


def parse_percentage_used_pct(text: str) -> int | None:
    """Parse the output of `sg_logs --page=0x11`."""
    return _number(r"Percentage used endurance indicator: *(\d+)", text)


def is_sas(name: str, sys_root: Path = Path("/sys")) -> bool:
    """Return whether a drive is attached by SAS and uses SAS; a SATA drive behind a SAS adapter does not."""
    device = _end_device(name, sys_root)
    protocols = read_text(sys_root / "class/sas_device" / device.name / "target_port_protocols") if device else None
    return protocols is not None and "ssp" in protocols


def sas_link(name: str, sys_root: Path = Path("/sys")) -> Link | None:
    """Return speed and number of the SAS phys that a drive is attached by; None if there are none."""
    device = _end_device(name, sys_root)
    if device is None:
        return None
    phys = sorted(path.name for path in device.parent.glob("phy-*"))
    if not phys:
        return None
    directory = sys_root / "class/sas_phy" / phys[0]
    return Link(known(directory / "negotiated_linkrate"), known(directory / "maximum_linkrate"), len(phys))


def _end_device(name: str, sys_root: Path) -> Path | None:
    """Return the drive's end device, such as `…/port-6:0/end_device-6:0`; None without a SAS adapter."""
    for parent in sysfs.block_dir(name, sys_root).parents:
        if parent.name.startswith("end_device-"):
            return parent
    return None


def _number(pattern: str, text: str) -> int | None:
    match = re.search(pattern, text)
    return int(match[1]) if match else None
