"""Purge: bring a drive into the state of one that was never written, and prove it."""

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
"""By the name that users write."""


def purge(device: HeldDevice, method: str = AUTO, say: Say = lambda text, fraction: None) -> dict[str, Any]:
    """Purge a drive by one method, or with `auto` by the first of `order.methods_for` that works, and verify it.

    Returns what is to be recorded: `method`, `title`, `verified` (in words), `content`, `leaves` (see `Leaves`),
    `duration_s`, `evidence` (commands and the drive's answers) and `tried`, the methods before it with the reason why
    each was not taken. Raises UserError naming drive, method, reason and remedy when no proof could be had; `auto` then
    goes on with the next method unless the drive was spoilt.
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
            say(f"{name} was not taken: {error}", None)
    reasons = "; ".join(f"{one['method']}: {one['reason']}" for one in tried)
    raise UserError(
        f"{device.device} cannot be purged by any method ({reasons}); purge it with its maker's tool and give the "
        "protocol 'purge: none', or replace it"
    )


def _named(name: str) -> Method:
    if name not in METHODS:
        raise UserError(f"'{name}' is no method of purging; use {AUTO} or one of {', '.join(METHODS)}")
    return METHODS[name]


def _by(method: Method, device: HeldDevice, say: Say) -> dict[str, Any]:
    reason = method.unavailable(device)
    if reason is not None:
        raise UserError(f"{device.device} cannot be purged by {method.name}: {reason}")
    return {"method": method.name, "title": method.title, **purge_verified(method, device, say)}
