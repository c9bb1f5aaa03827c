"""NVMe Format NVM with a secure erase setting; LBA format, metadata and protection stay the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives import nvme, tools
from drivelab.drives.approved import HeldDevice
from drivelab.drives.purge.method import Drives, Leaves, Method, Promise, Rank, Say, SpoiltError, attended

_NAMESPACE_MANAGEMENT = 1 << 3
"""OACS of Identify Controller."""


def not_alone(device: HeldDevice) -> str | None:
    """Return why a command must not affect the drive's whole NVM subsystem; None if the drive is alone in it.

    Allocated namespaces that are attached to no controller of this host also count: they may hold data.
    """
    names = nvme.namespaces(device.name)
    if device.name not in names:
        return "the kernel does not say which other namespaces share its subsystem"
    if others := [name for name in names if name != device.name]:
        return f"it would also destroy {', '.join(others)}, which share the subsystem with {device.name}"
    controller = nvme.controller_of(device.name)
    answer = nvme.id_ctrl(device.path)
    if controller is None or answer is None:
        return "its controller does not answer"
    if (nvme.whole(answer.get("oacs")) or 0) & _NAMESPACE_MANAGEMENT:
        allocated = _allocated(controller)
        if allocated is None:
            return "its controller manages namespaces but does not list them, so there may be others"
        if allocated != 1:
            return (
                f"it would also destroy other namespaces: {allocated} are allocated, some perhaps not attached to "
                "this host"
            )
    return None


def _allocated(controller: str) -> int | None:
    answer = tools.read_json("nvme", "list-ns", controller, "--all", "--output-format=json")
    listed = answer.get("nsid_list") if answer is not None else None
    return len(listed) if isinstance(listed, list) else None


_USER_DATA, _CRYPTO = 1, 2
"""Secure Erase Settings. drivelab never uses 0, which leaves the fate of the data undefined."""
_OACS_FORMAT = 1 << 1
_FNA_FORMAT_ALL, _FNA_ERASE_ALL, _FNA_CRYPTO = 1 << 0, 1 << 1, 1 << 2
_COMMAND_TIMEOUT_MS = 24 * 3600 * 1000
"""nvme-cli's own limit of ten minutes is too short for large drives."""


@dataclass(frozen=True)
class Layout:
    """The properties that a format could change (NVM Command Set, Identify Namespace: FLBAS, DPS, NSZE)."""

    lba_format: int
    extended_metadata: int
    protection: int
    protection_first: int
    blocks: int

    @classmethod
    def from_answer(cls, answer: dict[str, Any]) -> Layout:
        flbas, dps = nvme.whole(answer.get("flbas")), nvme.whole(answer.get("dps"))
        blocks = nvme.whole(answer.get("nsze"))
        if flbas is None or dps is None or blocks is None:
            raise UserError("Identify Namespace reports no FLBAS, DPS or NSZE, so drivelab could not keep the format")
        return cls(flbas & 0xF | (flbas >> 5 & 0x3) << 4, flbas >> 4 & 1, dps & 0x7, dps >> 3 & 1, blocks)


def _unavailable(device: HeldDevice, setting: int) -> str | None:
    controller = nvme.id_ctrl(device.path)
    if controller is None:
        return "its controller does not answer Identify Controller"
    if not (nvme.whole(controller.get("oacs")) or 0) & _OACS_FORMAT:
        return "its controller does not support Format NVM (OACS bit 1)"
    reach = nvme.whole(controller.get("fna")) or 0
    if setting == _CRYPTO and not reach & _FNA_CRYPTO:
        return "its controller cannot erase cryptographically (FNA bit 2)"
    if reach & (_FNA_FORMAT_ALL | _FNA_ERASE_ALL):
        other = not_alone(device)
        if other is not None:
            return f"a format affects all namespaces of its subsystem (FNA {reach:#x}): {other}"
    return None


def _carry_out(device: HeldDevice, say: Say, setting: int) -> dict[str, Any]:
    before = _layout(device)
    arguments = [
        "format", device.path, f"--lbaf={before.lba_format}", f"--ses={setting}", f"--ms={before.extended_metadata}",
        f"--pi={before.protection}", f"--pil={before.protection_first}", f"--timeout={_COMMAND_TIMEOUT_MS}", "--force",
    ]  # fmt: skip
    output = attended(device.name, say, f"nvme format --ses={setting}", None, "nvme", *arguments)
    if output.status != 0 and "success" not in output.stdout.lower():
        raise UserError(f"{device.device}: nvme format failed ({output.words}); try another method")
    after = _layout(device)
    if after != before:
        raise SpoiltError(
            f"nvme format changed the format of {device.device} ({after} instead of {before}); "
            "restore the old format with nvme format --lbaf, and report this to the vendor"
        )
    return {"command": ["nvme", *arguments], "said": output.words, "lba_format": after.lba_format}


def _layout(device: HeldDevice) -> Layout:
    answer = nvme.id_ns(device.path)
    if answer is None:
        raise UserError(f"{device.device} does not answer Identify Namespace; power-cycle it and check dmesg")
    return Layout.from_answer(answer)


def _method(name: str, title: str, setting: int, rank: Rank) -> Method:
    return Method(
        name, title, Promise.PATTERN, Leaves.UNWRITTEN,
        lambda device: _unavailable(device, setting),
        lambda device, say: _carry_out(device, say, setting),
        rank, frozenset({Drives.NVME}),
    )  # fmt: skip


METHODS = (
    _method("nvme-format-user-data", "NVMe format with user data erase", _USER_DATA, Rank.USER_DATA),
    _method("nvme-format-crypto", "NVMe format with cryptographic erase", _CRYPTO, Rank.WEAKER_KEY),
)
