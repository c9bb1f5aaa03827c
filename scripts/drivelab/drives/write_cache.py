"""Read and set the volatile write cache of a drive.

The setting is made in the drive itself. The block layer's `queue/write_cache` only tells the kernel whether to send
flushes; it changes nothing in the drive (Documentation/ABI/stable/sysfs-block). This module does not use it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from drivelab.core.errors import UserError
from drivelab.drives import ata, nvme, tools
from drivelab.drives.approved import ApprovedDevice
from drivelab.drives.sysfs import block_dir, read_text
from drivelab.drives.undo import Command, Undo, Write

State = Literal["on", "off", "none"]
_VWC = 0x06
"""Feature identifier Volatile Write Cache (NVM Express Base Specification 2.0)."""
_CURRENT = re.compile(r"[Cc]urrent value:\s*(0x[0-9a-fA-F]+|\d+)")
_HDPARM = re.compile(r"write-caching\s*=\s*(\d)")


def state(name: str, sys_root: Path = Path("/sys")) -> State | None:
    """Return `on`, `off`, `none` if the drive has no volatile write cache, or None if it does not say.

    Raises UserError if the program that asks the drive is not installed.
    """
    if name.startswith("nvme"):
        return _nvme_state(name, sys_root)
    return _scsi_state(name, sys_root) if name.startswith("sd") else None


def change(device: ApprovedDevice, on: bool, sys_root: Path = Path("/sys")) -> Undo | None:
    """Set the write cache and verify it by asking the drive again; return the undo, or None if nothing changed.

    To record the undo in a journal before the change, call `undo_of` first. On NVMe drives the setting belongs to the
    controller and applies to all its namespaces. Raises UserError if there is no cache to switch on, if the drive does
    not report its cache, or if it does not accept the setting.
    """
    undo = undo_of(device, on, sys_root)
    if undo is None:
        return None
    answer = _set(device, on, sys_root)
    wanted = "on" if on else "off"
    actual = state(device.name, sys_root)
    if actual != wanted:
        raise UserError(
            f"{device.device}: the write cache is {actual or 'unknown'} after it was switched {wanted} ({answer}); "
            "do not change the write cache in the study, or use another drive"
        )
    return undo


def undo_of(device: ApprovedDevice, on: bool, sys_root: Path = Path("/sys")) -> Undo | None:
    """Return what restores the write cache after `change`, or None if `change` has nothing to do; change nothing.

    Raises UserError as `change` does.
    """
    wanted = "on" if on else "off"
    before = state(device.name, sys_root)
    if before == wanted or (before == "none" and not on):
        return None
    if before is None:
        raise UserError(f"{device.device} does not report a write cache, so it cannot be switched {wanted}")
    if before == "none":
        raise UserError(
            f"{device.device} has no volatile write cache to switch on; do not change the write cache in the study"
        )
    file = _cache_type(device.name, sys_root)
    if file is not None and (text := read_text(file)) is not None:
        return Write(str(file), text)
    return Command(_command(device, not on, sys_root))


def parse_feature(text: str) -> int | None:
    """Parse the value of a feature from the output of nvme get-feature."""
    match = _CURRENT.search(text)
    return int(match[1], 0) if match is not None else None


def parse_hdparm(text: str) -> State | None:
    """Parse the output of hdparm -W."""
    if "write-caching = not supported" in text:
        return "none"
    match = _HDPARM.search(text)
    return None if match is None else "on" if match[1] == "1" else "off"


def _nvme_state(name: str, sys_root: Path) -> State | None:
    controller = nvme.controller_of(name, sys_root)
    answer = nvme.id_ctrl(controller) if controller is not None else None
    present = nvme.whole(answer.get("vwc")) if answer is not None else None
    if controller is None or present is None:
        return None
    if not present & 1:
        return "none"
    output = tools.run("nvme", "get-feature", controller, f"--feature-id={_VWC:#x}")
    value = parse_feature(output.stdout)
    return None if value is None else "on" if value & 1 else "off"


def _scsi_state(name: str, sys_root: Path) -> State | None:
    """Return the kernel's value of the caching mode page (WCE), which the kernel rereads after each change.

    For ATA drives, IDENTIFY also says whether a cache exists. hdparm reports no cache for SAS drives.
    """
    drive = ata.identify(f"/dev/{name}") if _is_ata(name, sys_root) else None
    if drive is not None and not drive.write_cache_supported:
        return "none"
    file = _cache_type(name, sys_root)
    text = read_text(file) if file is not None else None
    if text is not None:
        return "on" if text.startswith("write back") else "off"
    return parse_hdparm(tools.run("hdparm", "-W", f"/dev/{name}").stdout) if drive is not None else None


def _is_ata(name: str, sys_root: Path) -> bool:
    """Return whether a drive is ATA, also behind a SAS adapter: the translation reports the vendor ATA (SAT)."""
    return read_text(block_dir(name, sys_root) / "device/vendor") == "ATA"


def _set(device: ApprovedDevice, on: bool, sys_root: Path) -> str:
    """Set the write cache and return the answer, to quote if the setting had no effect."""
    file = _cache_type(device.name, sys_root)
    if file is None:
        return tools.run(*_command(device, on, sys_root)).words
    try:
        file.write_text("write back" if on else "write through")
    except OSError as error:
        if _is_ata(device.name, sys_root):
            return tools.run(*_hdparm(device, on)).words
        return f"the kernel does not accept it: {error.strerror}"
    return "the kernel accepted it"


def _command(device: ApprovedDevice, on: bool, sys_root: Path) -> tuple[str, ...]:
    if device.name.startswith("nvme"):
        controller = nvme.controller_of(device.name, sys_root) or device.device
        return ("nvme", "set-feature", controller, f"--feature-id={_VWC:#x}", f"--value={int(on)}")
    return _hdparm(device, on)


def _hdparm(device: ApprovedDevice, on: bool) -> tuple[str, ...]:
    return ("hdparm", f"-W{int(on)}", device.device)


def _cache_type(name: str, sys_root: Path) -> Path | None:
    """Return the kernel's file for the setting of SCSI and ATA drives; the kernel sends MODE SELECT or SET FEATURES."""
    return next(iter(sorted((block_dir(name, sys_root) / "device").resolve().glob("scsi_disk/*/cache_type"))), None)
