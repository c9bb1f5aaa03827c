"""Make each file system on a drive and measure a file on it; print the facts as JSON, by type.

Arguments: path, serial. The guard approves the drive for each type, so also with the file system before it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sheet import row

from drivelab.core.errors import CellFailed, UserError
from drivelab.drives import sysfs
from drivelab.drives.guard import held
from drivelab.fio.result import read_result
from drivelab.plan.cell import Cell
from drivelab.plan.file_system import LEAST_BYTES, FileSystem
from drivelab.plan.plan import Plan
from drivelab.run import file_system_device as making
from drivelab.run import guest
from drivelab.run.guest_device import GuestDevice
from drivelab.trace.capturing import mounts

MIB = 1 << 20
FILE_SHARE = 0.1
READ = Cell("random", 100, 4096, threads=1, queue_depth=4, runtime_s=0.5)
COMMIT = Cell("sequential", 0, 4096, threads=1, queue_depth=1, runtime_s=0.5, synchronous=True)


def measured(kind: str, path: str, serial: str) -> dict[str, Any]:
    spec = FileSystem(kind, mount=("noatime",), file_share=FILE_SHARE)
    making.refuse_unready(spec)
    facts: dict[str, Any] = {}
    with held(row(path, serial), path) as (drive, hold), hold.released():
        size = spec.file_bytes(sysfs.capacity_bytes(drive.name))
        facts |= making.make(spec, drive.device)
        with (
            mounts.mounted(kind, drive.device, options=spec.mount) as mount,
            guest.file_in(mount, size, kind) as opened,
        ):
            facts["mount_options"] = making.options_of(mount)
            plan = Plan({"drive": {"serial": serial}}, {})
            device = GuestDevice(replace(opened, disk=drive.name), plan, lambda: None)
            fill = Cell("sequential", 0, MIB, threads=1, queue_depth=4, volume_bytes=size)
            for name, cell in (("fill", fill), ("read", READ), ("commit", COMMIT)):
                before = sysfs.wear(drive.name).sectors_written
                with TemporaryDirectory() as folder:
                    device.run(cell, Path(folder), 1, lambda _: None)
                    facts[name] = read_result(Path(folder), cell).bytes
                device.flush()
                facts[f"{name}_written"] = 512 * (sysfs.wear(drive.name).sectors_written - before)
    return facts


results: dict[str, Any] = {}
for kind in LEAST_BYTES:
    subprocess.run(["udevadm", "settle"], check=True)  # udev locks a drive while it looks for file systems
    try:
        results[kind] = measured(kind, *sys.argv[1:])
    except (UserError, CellFailed) as reason:
        results[kind] = {"error": str(reason)}
results["mounted"] = [line for line in Path("/proc/mounts").read_text().splitlines() if "/mount." in line]
print(json.dumps(results))
