"""Run the stages of a plan for a whole drive, and pack its recording.

Write facts.json, with `commands_node`: the character device for the drive's NVMe commands. Argument: the drive's by-id
path. The plan is in plan.json, and the drive sheet in config/drives.tsv, of the current folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from stages import consented, stages

from drivelab.drives.nvme import character_name
from drivelab.plan.plan import Plan

plan = Plan.read(Path("plan.json"))
consented(plan)
stages("plan.json")
subprocess.run(["tar", "-cf", "recording.tar", str(plan.recording_path)], check=True)
Path("facts.json").write_text(json.dumps({"commands_node": character_name(Path(sys.argv[1]).resolve().name)}))
