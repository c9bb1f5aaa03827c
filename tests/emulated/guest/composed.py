"""Build subjects of every kind, let the guard judge them, and use them; print the results as JSON, by subject.

For each: `device` and `serial`; `approved`, the verdict with the right members; `wrong`, with another member, and
`identity`, with another identifier; `sibling`, the verdict while a sibling is in use (if it has one); `purged`, the
purge; `seals`, the verdicts after nothing was written, and after a member was written to beside the subject (if
possible); `composition`; `state` of an array; `untouched`, whether the content of siblings is still the same.
`trouble` is the exception of a subject that could not be set up. Arguments: names of subjects; by default all.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uses
from nodes import nodes
from passing import waiting
from sheet import row
from uses import observed, run, settle

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.drives import described, guard, node
from drivelab.drives.approved import HeldDevice
from drivelab.drives.arrays import array_state
from drivelab.drives.described import composed_wear, composition_words
from drivelab.drives.identifiers import identifier
from drivelab.drives.purge import purge
from drivelab.drives.seal import Seal, judge

(A,), (B,), (C,), (D,) = (nodes(f"EMU-{letter}") for letter in "ABCD")
SCSI, SCSI_2 = nodes("EMU-SCSI")
MEMBERS = {A: "EMU-A", B: "EMU-B", C: "EMU-C", D: "EMU-D", SCSI: "EMU-SCSI"}
MIB = 1 << 20
ONLY = ("--config", 'global/thin_check_executable="" devices/use_devicesfile=0 activation/monitoring=0')


@dataclass
class Built:
    kind: str
    device: str
    members: list[str]
    siblings: tuple[str, ...] = ()
    beside: str = ""
    """Device outside of the subject on one of its disks, which may be written to."""


def clear(*drives: str) -> None:
    for drive in drives:
        run("wipefs", "--all", "--force", "--quiet", drive)
        uses.reread(drive)
        run("blockdev", "--flushbufs", drive)
    settle()


def partitioned(*drives: str) -> list[str]:
    """Make three partitions on each drive; return the second of each."""
    for drive in drives:
        run("sfdisk", "--quiet", "--wipe", "always", drive, text="label: gpt\nsize=8MiB\nsize=48MiB\nsize=8MiB\n")
    settle()
    return [f"{drive}p2" if drive[-1].isdigit() else f"{drive}2" for drive in drives]


@contextmanager
def partition() -> Iterator[Built]:
    partitioned(A)
    yield Built("partition", f"{A}p2", [A], (f"{A}p1", f"{A}p3"), f"{A}p3")
    clear(A)


@contextmanager
def group(*drives: str, create: Callable[[], object]) -> Iterator[None]:
    parts = partitioned(*drives)
    run("lvm", "pvcreate", "--quiet", *ONLY, "-ff", "-y", *parts)
    run("lvm", "vgcreate", "--quiet", *ONLY, "group", *parts)
    create()
    settle()
    try:
        yield
    finally:
        run("lvm", "vgchange", "--quiet", *ONLY, "-a", "n", "group")
        for part in parts:
            run("wipefs", "--all", "--force", "--quiet", part)
        clear(*drives)


def lvcreate(*options: str) -> None:
    run("lvm", "lvcreate", "--quiet", *ONLY, "-y", "-W", "n", *options, "group")


@contextmanager
def striped() -> Iterator[Built]:
    def create() -> None:
        lvcreate("-Z", "n", "-n", "data", "-L", "32M", "-i", "2", "-I", "64k")
        lvcreate("-Z", "n", "-n", "other", "-L", "8M")

    with group(A, B, create=create):
        yield Built("volume", "/dev/mapper/group-data", [A, B], ("/dev/mapper/group-other", f"{A}p3"), f"{A}p3")


@contextmanager
def thin() -> Iterator[Built]:
    def create() -> None:
        lvcreate("-Z", "n", "-L", "32M", "--thinpool", "pool", "--chunksize", "64k")
        for name in ("data", "other"):
            run("lvm", "lvcreate", "--quiet", *ONLY, "-y", "-W", "n", "-n", name, "-V", "16M", "--thin", "group/pool")

    with group(A, create=create):
        yield Built("volume", "/dev/mapper/group-data", [A], ("/dev/mapper/group-other", f"{A}p3"), f"{A}p3")


@contextmanager
def encrypted() -> Iterator[Built]:
    partitioned(A)
    with uses.encrypted(f"{A}p2"):
        settle()
        yield Built("volume", "/dev/mapper/secret", [A], (f"{A}p1", f"{A}p3"), f"{A}p3")
    run("wipefs", "--all", "--force", "--quiet", f"{A}p2")
    clear(A)


@contextmanager
def array(level: str, *drives: str) -> Iterator[Built]:
    more = ["--bitmap=internal"] if level == "1" else []
    more += ["--assume-clean"] if level != "0" else []
    run("mdadm", "--create", "/dev/md0", "--run", "--quiet", f"--level={level}", f"--raid-devices={len(drives)}",
        "--metadata=1.2", *more, *drives)  # fmt: skip
    settle()
    try:
        yield Built("array", "/dev/md0", list(drives))
    finally:
        run("mdadm", "--stop", "--quiet", "/dev/md0")
        run("mdadm", "--zero-superblock", *drives)
        clear(*drives)


@contextmanager
def multipath() -> Iterator[Built]:
    sectors = int(run("blockdev", "--getsz", SCSI))
    table = f"0 {sectors} multipath 0 0 1 1 round-robin 0 2 1 {SCSI} 1 {SCSI_2} 1"
    run("dmsetup", "create", "mpatha", "--noudevsync", "--uuid", "mpath-35000c50012345678", "--table", table)
    settle()
    try:
        yield Built("volume", "/dev/mapper/mpatha", [SCSI])
    finally:
        run("dmsetup", "remove", "--noudevsync", "--retry", "mpatha")
        clear(SCSI)


@contextmanager
def over_fabrics() -> Iterator[Built]:
    """A namespace of this machine's own target, over TCP; its medium is drive D."""
    with uses.exported_to_itself(D) as device:
        settle()
        yield Built("namespace", device, [])


SUBJECTS: dict[str, Callable[[], AbstractContextManager[Built]]] = {
    "partition": partition,
    "striped volume": striped,
    "thin volume": thin,
    "dm-crypt": encrypted,
    "RAID 0": lambda: array("0", A, B),
    "RAID 1": lambda: array("1", A, B),
    "RAID 5": lambda: array("5", A, B, C),
    "RAID 10": lambda: array("10", A, B, C, D),
    "multipath": multipath,
    "namespace over fabrics": over_fabrics,
}


def verdict(built: Built, serial: str, members: list[str], *, passing_s: float = 0.0) -> str:
    """Return `approved` or the refusal."""
    names = tuple(sorted(MEMBERS.get(member, member) for member in members))
    try:
        with waiting(passing_s):
            guard.approve(row(built.device, serial, kind=built.kind, members=names), built.device)
    except UserError as reason:
        return f"refused: {reason}"
    return "approved"


def digest(device: str) -> str:
    run("blockdev", "--flushbufs", device)  # the page cache would hide what was written by another way
    return hashlib.md5(Path(device).read_bytes()).hexdigest()


def held(built: Built, serial: str) -> AbstractContextManager[tuple[HeldDevice, object]]:
    names = tuple(sorted(MEMBERS[member] for member in built.members))
    return guard.held(row(built.device, serial, kind=built.kind, members=names), built.device)


def use(built: Built, serial: str) -> dict[str, object]:
    """Purge the subject, write to it, and judge its seal; then write beside it, and judge the seal again."""
    before = [digest(sibling) for sibling in built.siblings]
    reasons: list[str] = []
    with held(built, serial) as (device, _):
        purged = purge(device, "auto")
        with Path(device.path).open("r+b", buffering=0) as file:
            file.write(b"drivelab" * 8192)
        subprocess.run(["sync"], check=True)
        if device.disks:
            seal = Seal("purge", device.identity, "P", composed_wear(device), "now")
            reasons.append(judge(seal, "purge", device.identity, "P", composed_wear(device)).reason)
    untouched = before == [digest(sibling) for sibling in built.siblings]
    if built.beside:
        run("dd", "if=/dev/urandom", f"of={built.beside}", "bs=4096", "count=1", "seek=8", "oflag=direct")
        with held(built, serial) as (device, _):
            reasons.append(judge(seal, "purge", device.identity, "P", composed_wear(device)).reason)
    return {"purged": purged, "seals": reasons, "untouched": untouched}


def observe(build: Callable[[], AbstractContextManager[Built]]) -> dict[str, object]:
    started_s = time.monotonic()
    with build() as built, node.opened(built.device) as opened:
        serial = str(identifier(built.kind, opened.name))
        result: dict[str, object] = {"device": built.device, "serial": serial}
        listed = (described.facts(opened.name) if built.kind != "namespace" else None) or {}
        result["listed"] = {key: listed.get(key) for key in ("kind", "serial", "members", "pin", "reason")}
        result["approved"] = verdict(built, serial, built.members, passing_s=lock.PASSING_S)
        result["identity"] = verdict(built, "X" + serial[1:], built.members)
        result["wrong"] = [verdict(built, serial, built.members[1:]), verdict(built, serial, [*built.members, "EMU-X"])]
        if built.siblings:
            with uses.mounted(built.siblings[0]):
                result["sibling"] = verdict(built, serial, built.members)
            settle()
        result["composition"] = composition_words(opened.name)
        state = array_state(opened.name)
        result["state"] = None if state is None else state.words
        if built.kind == "array" and state is not None and len(built.members) > 2:
            run("mdadm", "--quiet", "/dev/md0", "--fail", built.members[-1])
            # The kernel looks for a spare, and says `recover` meanwhile (md_error in drivers/md/md.c).
            while Path("/sys/block/md0/md/sync_action").read_text() != "idle\n":
                time.sleep(0.01)
            failed = array_state(opened.name)
            result["failed"] = [None if failed is None else failed.words, verdict(built, serial, built.members)]
        result |= use(built, serial)
    return {**result, "seconds": round(time.monotonic() - started_s, 1)}


observed(sys.argv[1:] or SUBJECTS, lambda name: observe(SUBJECTS[name]), lambda name: clear(*MEMBERS))
