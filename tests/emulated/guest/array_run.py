"""Run the stages of a plan for an array on partitions, while it rebuilds a member.

Between the stages the rebuild writes more to the member than an array's records. During the measurement it is slow
until the journal has some cells, and then ends. Write facts.json: `beside`, the checksums of everything beside the
partitions before and after; `recovered_s`, the last Unix time before the end of the rebuild, and the first one after
it; `members`, whether the array has the same members at the end, and its `state`. Argument: the array's UUID. The plan
is in plan.json, and the drive sheet in config/drives.tsv, of the current folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from nodes import nodes
from stages import beside, consented, stages
from uses import reread, run

from drivelab.drives import sysfs
from drivelab.drives.arrays import array_state
from drivelab.plan.plan import Plan
from drivelab.recording.writer import Recording, read_journal

UUID = sys.argv[1]
DRIVES = [node for letter in "BC" for node in nodes(f"EMU-{letter}")]
TABLE = "label: gpt\nsize=8MiB\nsize=48MiB\nsize=8MiB\n"
CELLS_WHILE_SLOW = 2
SLOW_KIB_S, FAST_KIB_S = 50, 1_000_000
MIB = 1 << 20
STEP_BYTES = 12 * MIB
LAST_BYTES = 44 * MIB
"""Where the rebuild waits if the measurement takes very long; it must not end by itself."""
MD, LINK = Path("/sys/block/md0/md"), Path("/dev/md/study")


def make() -> None:
    run("mdadm", "--create", "/dev/md0", "--run", "--quiet", "--level=1", f"--raid-devices={len(parts)}",
        "--metadata=1.2", "--bitmap=none", "--assume-clean", f"--uuid={UUID}", *parts)  # fmt: skip
    LINK.parent.mkdir(exist_ok=True)
    LINK.symlink_to("/dev/md0")  # the rules of mdadm, which this machine lacks, make such a link
    run("udevadm", "settle")


def rebuild(kib_s: int, until: str) -> None:
    """Set the speed of the rebuild, and the sector at which it waits (Documentation/admin-guide/md, sync_max)."""
    for name, value in (("sync_speed_min", str(kib_s)), ("sync_speed_max", str(kib_s)), ("sync_max", until)):
        (MD / name).write_text(value)


def sector(offset_bytes: int) -> str:
    return str(offset_bytes // sysfs.SECTOR_BYTES)


def measured() -> int:
    part = Recording(plan).part
    return sum(line["event"] == "cell" for line in read_journal(part)) if (part / "journal.jsonl").exists() else 0


def end_rebuild() -> None:
    """Let the rebuild end after some cells."""
    while measured() < CELLS_WHILE_SLOW:
        time.sleep(0.1)
    rebuild(FAST_KIB_S, "max")
    before_s = time.time()
    while (MD / "sync_action").read_text().strip() == "recover":
        before_s = time.time()
        time.sleep(0.01)
    recovered_s.extend((before_s, time.time()))


def advance() -> None:
    """Let the rebuild write a step to the member, which no stage does meanwhile."""

    def written_bytes() -> int:
        return sysfs.wear(Path(parts[1]).name).sectors_written * sysfs.SECTOR_BYTES

    last_bytes = written_bytes() + STEP_BYTES - MIB
    rebuild(FAST_KIB_S, sector(steps.pop(0)))
    while written_bytes() < last_bytes:
        time.sleep(0.01)
    if not steps:
        rebuild(SLOW_KIB_S, sector(LAST_BYTES))


steps = [MIB + STEP_BYTES, MIB + 2 * STEP_BYTES]
parts = [f"{drive}p2" for drive in DRIVES]
for drive in DRIVES:
    for begin_mib, size_mib in ((0, 9), (57, 8)):
        run("dd", "if=/dev/urandom", f"of={drive}", "bs=1M", f"seek={begin_mib}", f"count={size_mib}", "oflag=direct")
    run("sfdisk", "--quiet", "--wipe", "always", drive, text=TABLE)
    run("udevadm", "settle")
make()
before = [beside(drive) for drive in DRIVES]
plan = Plan.read(Path("plan.json"))
consented(plan)
run("mdadm", "--quiet", "/dev/md0", "--fail", parts[1])
run("mdadm", "--quiet", "/dev/md0", "--remove", parts[1])
run("mdadm", "--zero-superblock", parts[1])
rebuild(SLOW_KIB_S, sector(MIB))
run("mdadm", "--quiet", "/dev/md0", "--add", parts[1])
recovered_s: list[float] = []
watcher = threading.Thread(target=end_rebuild, daemon=True)
watcher.start()
stages("plan.json", advance)
watcher.join(10)
subprocess.run(["tar", "-cf", "recording.tar", str(plan.recording_path)], check=True)
state = array_state("md0")
facts = {
    "recovered_s": recovered_s,
    "members": sorted(f"/dev/{path.name}" for path in Path("/sys/block/md0/slaves").iterdir()) == parts,
    "state": None if state is None else state.words,
    "beside": [before, [beside(drive) for drive in DRIVES]],
}
Path("facts.json").write_text(json.dumps(facts))
run("mdadm", "--stop", "--quiet", "/dev/md0")
LINK.unlink()
for drive, part in zip(DRIVES, parts, strict=True):
    run("mdadm", "--zero-superblock", part)
    run("wipefs", "--all", "--force", "--quiet", drive)
    reread(drive)
