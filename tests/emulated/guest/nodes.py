"""Find the device nodes of this machine's drives."""

from __future__ import annotations

from pathlib import Path

from drivelab.drives import sysfs


def nodes(serial: str, namespace: str = "1") -> list[str]:
    """Return the device nodes of a drive with a serial number, sorted by name: one for each path."""
    folders = sorted(Path("/sys/block").glob("*"))
    return [
        f"/dev/{folder.name}"
        for folder in folders
        if sysfs.serial(folder.name) == serial and (sysfs.read_text(folder / "nsid") or "1") == namespace
    ]
