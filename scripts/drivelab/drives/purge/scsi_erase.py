"""SCSI SANITIZE and FORMAT UNIT (SBC-4) with sg3_utils; also SATA drives whose adapter translates (SAT-3)."""

from __future__ import annotations

import re
from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives import erasing, scsi, tools
from drivelab.drives.approved import HeldDevice
from drivelab.drives.purge.method import Drives, Leaves, Method, Progress, Promise, Rank, Say, SpoiltError, until_done

_FORMAT_UNIT = 0x4
_PROTECTION = {0: (0, 0), 1: (2, 0), 2: (3, 0), 3: (3, 1)}
"""FMTPINFO and PFU that keep a protection type (sg_format(8), protection information)."""
_NOT_LISTED = "the drive, or the adapter in front of it, does not list the command as supported"
_PROGRESS = re.compile(r"Progress indication: (\d+(?:\.\d+)?)%")


def parse_progress(text: str) -> float | None:
    """Parse the completed share, 0 to 1, from the output of sg_requests --progress; None if it shows none."""
    match = _PROGRESS.search(text)
    return float(match[1]) / 100 if match is not None else None


def parse_protection(text: str) -> int:
    """Parse the protection type, 0 to 3, from the output of sg_readcap --long (P_TYPE is one less).

    Raises UserError if the output has no protection type.
    """
    match = re.search(r"prot_en=(\d), p_type=(\d)", text)
    if match is None:
        raise UserError("READ CAPACITY (16) reports no protection type, so drivelab could not keep the format")
    return int(match[2]) + 1 if match[1] == "1" else 0


def finish_running(device: HeldDevice, say: Say) -> None:
    """Wait for a sanitize or format of an earlier, interrupted purge; until it ends, the drive answers no I/O."""
    if parse_progress(tools.run("sg_requests", "--progress", device.path).stdout) is not None:
        until_done(lambda: _ask(device), say, f"{device.device}: a sanitize or format started earlier")


def _no_scsi(device: HeldDevice) -> str | None:
    return None if device.name.startswith("sd") else "it does not accept SCSI commands"


def _no_sanitize(device: HeldDevice, kind: str) -> str | None:
    if (reason := _no_scsi(device)) is not None:
        return reason
    return None if kind in scsi.sanitize_methods(device.path) else _NOT_LISTED


def _no_format(device: HeldDevice) -> str | None:
    if (reason := _no_scsi(device)) is not None:
        return reason
    output = tools.run("sg_opcodes", "--no-inquiry", f"--opcode={_FORMAT_UNIT:#x}", device.path)
    return None if output.status == 0 and scsi.parse_supported(output.stdout) else _NOT_LISTED


def _sanitize(device: HeldDevice, say: Say, kind: str) -> dict[str, Any]:
    pattern = ["--zero", "--count=1"] if kind == "overwrite" else []
    arguments = [f"--{kind}", *pattern, "--ause", "--early", "--quick", device.path]
    output = erasing.run(device.name, "sg_sanitize", *arguments)
    if output.status != 0:
        raise UserError(f"{device.device}: SANITIZE was refused ({output.words}); try another method")
    until_done(lambda: _ask(device), say, f"{device.device}: SCSI sanitize")
    return {"command": ["sg_sanitize", *arguments], "said": output.words}


def _format(device: HeldDevice, say: Say) -> dict[str, Any]:
    capacity = tools.run("sg_readcap", "--long", "--readonly", device.path)
    information, usage = _PROTECTION[parse_protection(capacity.stdout)]
    arguments = ["--format", f"--fmtpinfo={information}", f"--pfu={usage}", "--early", "--quick", device.path]
    output = erasing.run(device.name, "sg_format", *arguments)
    if output.status != 0:
        raise UserError(f"{device.device}: FORMAT UNIT was refused ({output.words}); try another method")
    until_done(lambda: _ask(device), say, f"{device.device}: SCSI format")
    after = tools.run("sg_readcap", "--long", "--readonly", device.path)
    if parse_protection(after.stdout) != parse_protection(capacity.stdout):
        raise SpoiltError(f"FORMAT UNIT changed the protection type of {device.device}; format the drive by hand")
    return {"command": ["sg_format", *arguments], "said": output.words}


def _ask(device: HeldDevice) -> Progress:
    """Read the progress with REQUEST SENSE; without one, TEST UNIT READY must report that the drive is ready."""
    sense = tools.run("sg_requests", "--progress", device.path)
    fraction = parse_progress(sense.stdout)
    if fraction is not None:
        return Progress(False, fraction)
    ready = tools.run("sg_turs", "--verbose", device.path)
    answers = f"{sense.stdout} {sense.stderr} {ready.stdout} {ready.stderr}".lower()
    failures = ("sanitize command failed", "format command failed", "medium format corrupted")
    if any(failure in answers for failure in failures):
        _leave_failure(device)
        raise UserError(
            f"{device.device}: the drive reports that the operation failed ({ready.words}); try another method"
        )
    return Progress(ready.status == 0)


def _leave_failure(device: HeldDevice) -> None:
    """Send EXIT FAILURE MODE, allowed because sanitize was started with AUSE; no effect after a failed format."""
    erasing.run(device.name, "sg_sanitize", "--fail", "--quick", device.path)


def _sanitizing(kind: str, title: str, promises: Promise, rank: Rank) -> Method:
    return Method(
        f"scsi-sanitize-{kind}", title, promises,
        Leaves.OVERWRITTEN if kind == "overwrite" else Leaves.UNWRITTEN,
        lambda device: _no_sanitize(device, kind),
        lambda device, say: _sanitize(device, say, kind),
        rank, frozenset({Drives.SCSI_FLASH}),
    )  # fmt: skip


METHODS = (
    # After these two a drive may answer reads with errors until a block is written (SBC-4, WABEREQ and WACEREQ).
    _sanitizing("block", "SCSI sanitize, block erase", Promise.NOTHING, Rank.ALL_MEDIA),
    _sanitizing("crypto", "SCSI sanitize, cryptographic erase", Promise.NOTHING, Rank.KEY),
    _sanitizing("overwrite", "SCSI sanitize, one overwrite with zeros", Promise.ZEROS, Rank.OVERWRITE_BY_DRIVE),
    Method(
        "scsi-format", "SCSI format unit", Promise.PATTERN, Leaves.UNWRITTEN,
        _no_format, _format, Rank.FORMAT, frozenset({Drives.SCSI_FLASH}),
    ),
)  # fmt: skip
