"""The host that a drive is attached to."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from drivelab.drives.sysfs import read_text


def describe_host(proc_root: Path = Path("/proc")) -> dict[str, Any]:
    """Return the columns of the table `hosts` that need no other program."""
    cpu = [line.partition(":")[2].strip() for line in (read_text(proc_root / "cpuinfo") or "").splitlines()
           if line.startswith("model name")]  # fmt: skip
    memory_kib = next(
        (int(line.split()[1]) for line in (read_text(proc_root / "meminfo") or "").splitlines()
         if line.startswith("MemTotal")), 0)  # fmt: skip
    return {
        "host": platform.node(),
        "kernel": platform.release(),
        "cpu": cpu[0] if cpu else platform.machine(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": memory_kib * 1024,
        "os": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
        if Path("/etc/os-release").exists()
        else "unknown",
        "python": platform.python_version(),
    }
