"""Purge: bring a drive into the never-written state, and prove it."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives.approved import HeldDevice
from drivelab.drives.composed import is_composed
from drivelab.drives.purge.method import Drives, Leaves, Method, Promise, Say, SpoiltError, drives_of
from drivelab.drives.purge.verification import purge_verified

__all__ = ["AUTO", "METHODS", "Leaves", "Method", "Promise", "SpoiltError", "purge"]

AUTO = "auto"


def _discovered() -> dict[str, Method]:
    """Return the methods of all modules of this package; raises ValueError for a name that two methods have."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    methods = [method for module in modules for method in getattr(module, "METHODS", ())]
    by_name = {method.name: method for method in sorted(methods, key=lambda method: (method.rank, method.name))}
    if len(by_name) < len(methods):
        raise ValueError(f"two purge methods have the same name: {sorted(method.name for method in methods)}")
    return by_name


METHODS = _discovered()
"""Methods by the name that users write, in the order in which `auto` tries them."""


def methods_for(name: str, sys_root: Path = Path("/sys")) -> tuple[str, ...]:
    """Return the names of the methods that `auto` tries on a drive, given by kernel name."""
    drives = drives_of(name, sys_root)
    return tuple(method.name for method in METHODS.values() if drives in method.drives)


def purge(device: HeldDevice, method: str = AUTO, say: Say = lambda text, fraction: None) -> dict[str, Any]:
    """Purge a drive with one method, or with `auto` by the first of `methods_for` that works, and verify it.

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
        f"{device.device} cannot be purged by any method ({reasons}); set 'purge: none' in the study, which labels its "
        "results as not purged, or replace the drive"
    )


def _named(name: str) -> Method:
    if name not in METHODS:
        raise UserError(f"'{name}' is not a purge method; use {AUTO} or one of {', '.join(METHODS)}")
    return METHODS[name]


def _by(method: Method, device: HeldDevice, say: Say) -> dict[str, Any]:
    if is_composed(device.kind) and Drives.PART not in method.drives:
        reason: str | None = f"it would erase more than the {device.kind}: it is a command to the whole drive"
    else:
        reason = method.unavailable(device)
    if reason is not None:
        raise UserError(f"{device.device} cannot be purged by {method.name}: {reason}")
    title = method.title.replace("whole drive", f"whole {device.kind}")
    return {"method": method.name, "title": title, **purge_verified(method, device, say)}
