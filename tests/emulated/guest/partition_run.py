"""Run the stages of a plan for a partition, and pack its recording; print what happened to the partition's siblings.

Arguments: the drive's by-id path, the partition's UUID. The plan is in plan.json, and the drive sheet in
config/drives.tsv, of the current folder.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from uses import reread, run

from drivelab.cli.main import main
from drivelab.plan.plan import Plan
from drivelab.run import consent

DRIVE, UUID = sys.argv[1:]
TABLE = f"label: gpt\nsize=16MiB\nsize=16MiB, uuid={UUID}\nsize=16MiB\n"


def siblings(drive: str) -> dict[str, str]:
    """Return the checksums of everything outside of the second partition, by partition or end of the drive."""
    run("blockdev", "--flushbufs", drive)
    content = Path(drive).read_bytes()
    begin, size = (int(Path("/sys/class/block", f"{Path(drive).name}p2", name).read_text()) * 512
                   for name in ("start", "size"))  # fmt: skip
    parts = {"before": content[:begin], "after": content[begin + size :]}
    return {name: hashlib.md5(part).hexdigest() for name, part in parts.items()}


def prepare(drive: str) -> None:
    """Fill the drive with random data and make three partitions, the first with a file system."""
    run("dd", "if=/dev/urandom", f"of={drive}", "bs=1M", "count=64", "oflag=direct")
    run("sfdisk", "--quiet", "--wipe", "always", drive, text=TABLE)
    run("udevadm", "settle")
    run("mke2fs", "-q", "-F", f"{drive}p1")
    subprocess.run(["sync"], check=True)
    run("udevadm", "settle")


def consented(plan: Plan) -> None:
    study: Any = SimpleNamespace(results=Path(plan.context["results"]), path=Path("none"), name="partition", consent=())
    study.results.mkdir(parents=True)
    consent.require(study, [consent.Drive(plan.drive, str(plan.subject["drive"]["serial"]))], yes=True)


def stages() -> None:
    """Run the commands that the workflow's rules run."""
    for arguments in (
        ["purge", "plan.json", "--seal", "purged.json"],
        ["precondition", "plan.json", "--after", "purged.json", "--seal", "conditioned.json"],
        ["measure", "plan.json", "--after", "conditioned.json"],
    ):
        status = cast(int, main(arguments))
        if status:
            sys.exit(status)


drive = str(Path(DRIVE).resolve())
plan = Plan.read(Path("plan.json"))
prepare(drive)
before = siblings(drive)
consented(plan)
stages()
subprocess.run(["tar", "-cf", "recording.tar", str(plan.recording_path)], check=True)
Path("siblings.json").write_text(json.dumps({"before": before, "after": siblings(drive)}))
run("wipefs", "--all", "--force", "--quiet", drive)
reread(drive)
