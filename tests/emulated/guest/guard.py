"""Print the guard's verdicts on a drive in many states as JSON: the kernel name, or the refusal.

Arguments: path under /dev/disk/by-id of a drive that may be overwritten, its serial, path of a second drive.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

from sheet import row
from uses import mapped, mounted, opened, partitioned, run, swapped_on

from drivelab.core.errors import UserError
from drivelab.drives.guard import approve

DEVICE, SERIAL, OTHER = sys.argv[1:]


def verdict(device: str = DEVICE, serial: str = SERIAL, *, destructive: bool = True) -> str:
    try:
        return approve(row(device, serial, destructive=destructive), device).name
    except UserError as reason:
        return f"refused: {reason}"


def verdicts() -> Iterator[tuple[str, str]]:
    yield "free", verdict()
    yield "wrong serial", verdict(serial="EMU-SOMETHING-ELSE")
    yield "not destructive", verdict(destructive=False)
    yield "other drive at the path", verdict(OTHER)
    yield "missing", verdict("/dev/disk/by-id/nvme-NOT-THERE")
    with mounted(DEVICE):
        yield "mounted", verdict()
    yield "file system that is not mounted", verdict()
    run("wipefs", "--all", "--quiet", DEVICE)
    with partitioned(DEVICE) as partition:
        yield "partition", verdict(partition)
        with mounted(partition):
            yield "partition mounted", verdict()
        with swapped_on(partition):
            yield "partition is swap", verdict()
        yield "partitioned", verdict()
    with swapped_on(DEVICE):
        yield "swap", verdict()
    run("wipefs", "--all", "--quiet", DEVICE)
    with mapped(DEVICE):
        yield "device mapper", verdict()
    with opened(DEVICE, os.O_RDONLY | os.O_EXCL):
        yield "held exclusively", verdict()
    yield "free again", verdict()


print(json.dumps(dict(verdicts())))
