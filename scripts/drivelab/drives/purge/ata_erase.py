"""ATA security erase. hdparm also exits 0 after failures, so drivelab trusts only the drive's IDENTIFY data."""

from __future__ import annotations

from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives import ata, erasing
from drivelab.drives.approved import HeldDevice
from drivelab.drives.ata import Ata
from drivelab.drives.purge.method import Drives, Leaves, Method, Promise, Rank, Say, SpoiltError, attended
from drivelab.drives.sysfs import block_dir

PASSWORD = "drivelab"
"""Published, not secret: a drive that loses power during an erase must be unlocked with this password."""
_UNFREEZE = (
    "most firmware freezes drives at start: suspend the host and wake it (rtcwake --mode mem --seconds 10), or "
    "unplug the drive's power and plug it in again while the host runs"
)


def _unavailable(device: HeldDevice, *, enhanced: bool) -> str | None:
    if "/usb" in str(block_dir(device.name)):
        return "it is behind a USB bridge; many bridges lose the drive during an erase and leave it locked"
    drive = ata.identify(device.path)
    if drive is None:
        return "it is not an ATA drive, or does not answer hdparm -I"
    security = drive.security
    if not security.supported:
        return "it has no ATA security feature set"
    if enhanced and not security.enhanced_supported:
        return "it has no enhanced erase"
    if security.enabled:
        return (
            f"a password is set on it; if an interrupted purge left it, remove it with hdparm --user-master u "
            f"--security-disable {PASSWORD} {device.device}"
        )
    if security.frozen:
        return f"its security is frozen; {_UNFREEZE}"
    return None


def _carry_out(device: HeldDevice, say: Say, *, enhanced: bool) -> dict[str, Any]:
    drive = _identify(device)
    minutes = drive.security.enhanced_erase_min if enhanced else drive.security.erase_min
    _hdparm(device, "--security-set-pass")
    if not _identify(device).security.enabled:
        raise UserError(
            f"{device.device} did not accept the temporary password that an erase needs; try another method"
        )
    option = "--security-erase-enhanced" if enhanced else "--security-erase"
    try:
        text = f"ATA {'enhanced ' if enhanced else ''}security erase"
        expected_s = minutes * 60.0 if minutes else None
        output = attended(device.name, say, text, expected_s, "hdparm", *_arguments(device, option))
    finally:
        erased = _without_password(device)
    if not erased:
        raise UserError(
            f"{device.device}: the security erase failed, although hdparm says '{output.words}': the password was "
            "still set after the erase. drivelab removed the password; try another method"
        )
    return {"command": ["hdparm", *_arguments(device, option)], "said": output.words, "security": "disabled after it"}


def _without_password(device: HeldDevice) -> bool:
    """Make sure that no password is left; return whether none was set, as after a completed erase.

    Raises SpoiltError if the password stays.
    """
    try:
        if not _identify(device).security.enabled:
            return True
        _hdparm(device, "--security-disable")
        if not _identify(device).security.enabled:
            return False
    except SpoiltError:
        raise
    except UserError as error:
        raise _locked(device, str(error)) from None
    raise _locked(device, "the drive does not remove it")


def _locked(device: HeldDevice, reason: str) -> SpoiltError:
    return SpoiltError(
        f"{device.device} may still have the password '{PASSWORD}' ({reason}) and will be locked after its next power "
        f"cycle; then run hdparm --user-master u --security-unlock {PASSWORD} {device.device}, and the same with "
        "--security-disable"
    )


def _identify(device: HeldDevice) -> Ata:
    drive = ata.identify(device.path)
    if drive is None:
        raise UserError(f"{device.device} does not answer hdparm -I; power-cycle it and check dmesg")
    return drive


def _hdparm(device: HeldDevice, option: str) -> None:
    """Run hdparm and ignore its exit status, which proves nothing."""
    erasing.run(device.name, "hdparm", *_arguments(device, option))


def _arguments(device: HeldDevice, option: str) -> list[str]:
    return ["--user-master", "u", option, PASSWORD, device.path]


METHODS = (
    Method(
        "ata-erase", "ATA security erase", Promise.PATTERN, Leaves.UNWRITTEN,
        lambda device: _unavailable(device, enhanced=False),
        lambda device, say: _carry_out(device, say, enhanced=False),
        Rank.USER_DATA, frozenset({Drives.SCSI_FLASH}),
    ),
    Method(
        "ata-erase-enhanced", "ATA enhanced security erase", Promise.PATTERN, Leaves.UNWRITTEN,
        lambda device: _unavailable(device, enhanced=True),
        lambda device, say: _carry_out(device, say, enhanced=True),
        Rank.WEAKER_KEY, frozenset({Drives.SCSI_FLASH}),
    ),
)  # fmt: skip
