"""NVMe Sanitize: erases all media of the NVM subsystem, with spare area and caches, and continues after a reset."""

from __future__ import annotations

import re
from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives import erasing, nvme
from drivelab.drives.approved import HeldDevice
from drivelab.drives.purge.canaries import declared_byte
from drivelab.drives.purge.method import Drives, Leaves, Method, Progress, Promise, Rank, Say, until_done
from drivelab.drives.purge.nvme_format import not_alone

_EXIT_FAILURE, _BLOCK, _OVERWRITE, _CRYPTO = 1, 2, 3, 4
"""Sanitize Action (NVM Express Base Specification 2.0, Sanitize command)."""
_CAPABILITY = {_CRYPTO: 1 << 0, _BLOCK: 1 << 1, _OVERWRITE: 1 << 2}
"""SANICAP of Identify Controller."""
_NEVER, _COMPLETED, _IN_PROGRESS, _FAILED, _COMPLETED_DEALLOCATED = range(5)
"""SSTAT bits 2:0 of the Sanitize Status log."""
_IDLE = 0xFFFF
"""SPROG while no sanitize operation is in progress; otherwise 65536ths."""


def status(log: dict[str, Any]) -> int:
    """Return SSTAT bits 2:0 from a number, or from text of nvme-cli 2 such as "(2) Sanitize in Progress."

    Raises UserError if the log has no status.
    """
    value = log.get("sstat")
    if isinstance(value, dict):
        value = value.get("status")
    if isinstance(value, str) and (match := re.match(r"\s*\(?(0x[0-9a-fA-F]+|\d+)", value)):
        value = int(match[1], 0)
    if not isinstance(value, int):
        raise UserError("the sanitize log contains no status; purge the drive with another method")
    return value & 0x7


def progress(log: dict[str, Any]) -> float | None:
    """Return the completed share of the operation, 0 to 1; None if none is in progress."""
    value = nvme.whole(log.get("sprog"))
    return None if value is None or value == _IDLE else value / 65536


def finish_running(device: HeldDevice, say: Say) -> None:
    """Wait for a sanitize operation of an earlier, interrupted purge; until it ends, the drive answers no I/O."""
    controller = nvme.controller_of(device.name)
    log = nvme.sanitize_log(controller) if controller is not None else None
    if controller is not None and log is not None and status(log) == _IN_PROGRESS:
        until_done(lambda: _ask(device, controller), say, f"{device.device}: a sanitize operation started earlier")


def _unavailable(device: HeldDevice, action: int) -> str | None:
    controller = nvme.id_ctrl(device.path)
    if controller is None:
        return "its controller does not answer Identify Controller"
    if not (nvme.whole(controller.get("sanicap")) or 0) & _CAPABILITY[action]:
        return "its controller does not support it (SANICAP)"
    other = not_alone(device)
    return f"sanitize affects all namespaces of a subsystem: {other}" if other is not None else None


def _carry_out(device: HeldDevice, say: Say, action: int) -> dict[str, Any]:
    controller = nvme.controller_of(device.name)
    if controller is None:
        raise UserError(f"{device.device} has lost its controller; check dmesg")
    arguments = ["sanitize", controller, f"--sanact={action}", "--ause"]  # --ause: allows exit from failure mode
    if action == _OVERWRITE:
        pattern = 0xFFFFFFFF if declared_byte(device) == 0xFF else 0
        arguments += ["--owpass=1", f"--ovrpat={pattern:#x}"]
    output = erasing.run(device.name, "nvme", *arguments)
    if output.status != 0:
        raise UserError(f"{device.device}: nvme sanitize was refused ({output.words}); try another method")
    until_done(lambda: _ask(device, controller), say, f"{device.device}: sanitize")
    after = _log(device, controller)
    if status(after) not in (_COMPLETED, _COMPLETED_DEALLOCATED) or not _is_of(after, action):
        raise UserError(
            f"{device.device}: the sanitize log shows no completed operation of this kind ({after}), "
            "although nvme-cli reported success; try another method"
        )
    return {"command": ["nvme", *arguments], "sanitize_log": after}


def _is_of(log: dict[str, Any], action: int) -> bool:
    """Return whether the log is about this action: SCDW10 is the command's dword 10, whose bits 2:0 are the action."""
    command = nvme.whole(log.get("cdw10_info"))
    return command is None or command & 0x7 == action


def _ask(device: HeldDevice, controller: str) -> Progress:
    log = _log(device, controller)
    now = status(log)
    if now == _FAILED:
        left = erasing.run(device.name, "nvme", "sanitize", controller, f"--sanact={_EXIT_FAILURE}")
        raise UserError(
            f"{device.device}: the drive reports that sanitize failed (SSTAT 3); "
            + ("it has left failure mode" if left.status == 0 else f"it is still in failure mode ({left.words})")
            + "; try another method, or replace the drive"
        )
    return Progress(now != _IN_PROGRESS, progress(log))


def _log(device: HeldDevice, controller: str) -> dict[str, Any]:
    log = nvme.sanitize_log(controller)
    if log is None:
        raise UserError(f"{device.device}: the sanitize log of {controller} cannot be read; power-cycle the drive")
    return log


def _method(name: str, title: str, action: int, rank: Rank) -> Method:
    return Method(
        name, title, Promise.PATTERN, Leaves.UNWRITTEN,
        lambda device: _unavailable(device, action),
        lambda device, say: _carry_out(device, say, action),
        rank, frozenset({Drives.NVME}),
    )  # fmt: skip


METHODS = (
    _method("nvme-sanitize-block", "NVMe sanitize, block erase", _BLOCK, Rank.ALL_MEDIA),
    _method("nvme-sanitize-crypto", "NVMe sanitize, cryptographic erase", _CRYPTO, Rank.KEY),
    _method(
        "nvme-sanitize-overwrite", "NVMe sanitize, one overwrite of all media", _OVERWRITE, Rank.OVERWRITE_BY_DRIVE
    ),
)
