"""Linux capabilities of this process, which a container may withhold from root (capabilities(7))."""

from __future__ import annotations

import functools
from pathlib import Path

IPC_LOCK = 14
"""Lock memory beyond RLIMIT_MEMLOCK."""
SYS_NICE = 23
"""Leave the idle class of the scheduler (sched(7))."""


@functools.cache
def has(capability: int) -> bool:
    """Return whether this process has a capability, by its number in linux/capability.h, in effect."""
    status = Path("/proc/self/status").read_text()
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> capability & 1)
