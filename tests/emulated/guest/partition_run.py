"""Run the stages of a plan for a partition, and pack its recording.

Arguments: the drive's by-id path, the partition's UUID. The plan is in plan.json, and the drive sheet in
config/drives.tsv, of the current folder.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from stages import consented, stages
from uses import reread, run

from drivelab.plan.plan import Plan

DRIVE, UUID = sys.argv[1:]
TABLE = f"label: gpt\nsize=16MiB\nsize=16MiB, uuid={UUID}\nsize=16MiB\n"


drive = str(Path(DRIVE).resolve())
plan = Plan.read(Path("plan.json"))
run("sfdisk", "--quiet", "--wipe", "always", drive, text=TABLE)
run("udevadm", "settle")
consented(plan)
stages("plan.json")
subprocess.run(["tar", "-cf", "recording.tar", str(plan.recording_path)], check=True)
Path("facts.json").write_text("{}")
run("wipefs", "--all", "--force", "--quiet", drive)
reread(drive)
