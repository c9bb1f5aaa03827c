"""Run the stages of a plan for a partition, and pack its recording.

Write facts.json: `beside`, the checksums of everything beside the partition before and after. Arguments: the drive's
by-id path, the partition's UUID. The plan is in plan.json, and the drive sheet in config/drives.tsv, of the current
folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from stages import beside, consented, stages
from uses import reread, run

from drivelab.plan.plan import Plan

DRIVE, UUID = sys.argv[1:]
TABLE = f"label: gpt\nsize=16MiB\nsize=16MiB, uuid={UUID}\nsize=16MiB\n"


def prepare(drive: str) -> None:
    """Fill the drive with random data and make three partitions, the first with a file system."""
    run("dd", "if=/dev/urandom", f"of={drive}", "bs=1M", "count=64", "oflag=direct")
    run("sfdisk", "--quiet", "--wipe", "always", drive, text=TABLE)
    run("udevadm", "settle")
    run("mke2fs", "-q", "-F", f"{drive}p1")
    subprocess.run(["sync"], check=True)
    run("udevadm", "settle")


drive = str(Path(DRIVE).resolve())
plan = Plan.read(Path("plan.json"))
prepare(drive)
before = beside(drive)
consented(plan)
stages("plan.json")
subprocess.run(["tar", "-cf", "recording.tar", str(plan.recording_path)], check=True)
Path("facts.json").write_text(json.dumps({"beside": [before, beside(drive)]}))
run("wipefs", "--all", "--force", "--quiet", drive)
reread(drive)
