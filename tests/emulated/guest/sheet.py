"""Rows of a drive sheet for the scripts of the emulated machines."""

from __future__ import annotations

from drivelab.drives.guard import ApprovedDevice, approve
from drivelab.plan.drive_sheet import SheetRow


def row(device: str, serial: str, *, kind: str = "drive", members: tuple[str, ...] = ()) -> SheetRow:
    return SheetRow("guest", device, serial, True, "", "drives.tsv line 2", kind=kind, members=members)


def approved(device: str, serial: str) -> ApprovedDevice:
    return approve(row(device, serial), device)
