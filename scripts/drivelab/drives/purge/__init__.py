"""Purge: bring a drive into the never-written state, and prove it."""

from __future__ import annotations

from typing import Any

from drivelab.drives.guard import HeldDevice
from drivelab.drives.purge import ata_erase, by_host, nvme_format, nvme_sanitize, scsi_erase
from drivelab.drives.purge.method import Leaves, Method, Promise, SpoiltError
from drivelab.drives.purge.order import methods_for
from drivelab.drives.purge.verification import purge_verified
from drivelab.drives.purge.waiting import Say
from drivelab.errors import UserError

__all__ = ["AUTO", "METHODS", "Leaves", "Method", "Promise", "SpoiltError", "purge"]

AUTO = "auto"
METHODS: dict[str, Method] = {
    method.name: method
    for module in (nvme_format, nvme_sanitize, ata_erase, scsi_erase, by_host)
    for method in module.METHODS
}
"""Methods by the name that users write."""


def purge(device: HeldDevice, method: str = AUTO, say: Say = lambda text, fraction: None) -> dict[str, Any]:
    """Purge a drive with one method, or with `auto` by the first of `order.methods_for` that works, and verify it.

    Returns the facts to record: `method`, `title`, `verified` (in words), `content`, `leaves` (see `Leaves`),
    `duration_s`, `evidence` (commands and the drive's answers) and `tried`, the earlier methods with the reason why
    each failed. Raises UserError with drive, method, reason and remedy if the purge is not proved. `auto` then tries
    the next method, unless the purge left the drive altered (SpoiltError).
    """
    if method != AUTO:
        return _by(_named(method), device, say) | {"tried": []}
    tried: list[dict[str, str]] = []
    for name in methods_for(device.name):
        try:
            return _by(METHODS[name], device, say) | {"tried": tried}
        except SpoiltError:
            raise
        except UserError as error:
            tried.append({"method": name, "reason": str(error)})
            say(f"{name} was not used: {error}", None)
    reasons = "; ".join(f"{attempt['method']}: {attempt['reason']}" for attempt in tried)
    raise UserError(
        f"{device.device} cannot be purged by any method ({reasons}); purge it with the vendor's tool and set "
        "'purge: none' in the protocol, or replace the drive"
    )


def _named(name: str) -> Method:
    if name not in METHODS:
        raise UserError(f"'{name}' is not a purge method; use {AUTO} or one of {', '.join(METHODS)}")
    return METHODS[name]


def _by(method: Method, device: HeldDevice, say: Say) -> dict[str, Any]:
    reason = method.unavailable(device)
    if reason is not None:
        raise UserError(f"{device.device} cannot be purged by {method.name}: {reason}")
    return {"method": method.name, "title": method.title, **purge_verified(method, device, say)}
