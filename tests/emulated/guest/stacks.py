"""Print the guard's verdicts on drives in use as JSON, by kind of use.

For each drive: `during` the use, `left` after the use with its signatures still there, and if that is a refusal,
`wiped` without signatures. Each is a kernel name or the refusal. `written` is what the kernel counted as written and
discarded while the guard checked the drive in use. `trouble` is the exception of a use that could not be set up.
Arguments: kinds of use; by default all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import uses
from nodes import nodes
from passing import waiting
from sheet import approved
from uses import observed, run, settle

from drivelab.core.errors import UserError
from drivelab.drives import sysfs

(A,), (B,) = nodes("EMU-A"), nodes("EMU-B")
SHARED, SHARED_2 = nodes("EMU-SHARED")
SCSI, SCSI_2 = nodes("EMU-SCSI")
SERIALS = {A: "EMU-A", B: "EMU-B", SHARED: "EMU-SHARED", SCSI: "EMU-SCSI"}
BOTH_PATHS = "multipath 0 0 1 1 round-robin 0 2 1 {node} 1 " + f"{SCSI_2} 1"


def generic(node: str, pattern: str) -> str:
    """Return the pass-through character device of a SCSI disk."""
    (device,) = Path("/sys/class/block", Path(node).name).glob(f"device/{pattern}/*")
    return f"/dev/bsg/{device.name}" if pattern == "bsg" else f"/dev/{device.name}"


Use = Callable[[], AbstractContextManager[object]]
USES: dict[str, tuple[Use, tuple[str, ...]]] = {
    "mounted": (lambda: uses.mounted(A), (A,)),
    "mounted in another mount namespace": (lambda: uses.mounted_elsewhere(A), (A,)),
    "unmounted lazily": (lambda: uses.unmounted_lazily(A), (A,)),
    "partition mounted": (lambda: uses.partition_mounted(A), (A,)),
    "logical volume on a partition": (lambda: uses.partition_with_volume(A), (A,)),
    "inactive volume group on a partition": (lambda: uses.partition_with_inactive_group(A), (A,)),
    "logical volume mounted": (lambda: uses.volume_mounted(A), (A,)),
    "logical volume active": (lambda: uses.volume(A), (A,)),
    "md member": (lambda: uses.mirrored(A, B), (A, B)),
    "dm-crypt": (lambda: uses.encrypted(A), (A,)),
    "dm-linear": (lambda: uses.mapped(A), (A,)),
    "device mapper table not active": (lambda: uses.mapping_loaded(A), (A,)),
    "bcache": (lambda: uses.cached(A, B), (A, B)),
    "bcache cache alone": (lambda: uses.cache_registered(A), (A,)),
    "btrfs of two": (lambda: uses.btrfs_mounted(A, B), (A, B)),
    "external journal": (lambda: uses.journal_of(A, B), (A, B)),
    "image of a sleeping host": (lambda: uses.hibernated(A), (A,)),
    "loop device": (lambda: uses.looped(A), (A,)),
    "loop device over a deleted node": (lambda: uses.looped_by_deleted_node(A), (A,)),
    "NVMe target": (lambda: uses.exported(A), (A,)),
    "NVMe target by another node": (lambda: uses.exported_by_second_node(A), (A,)),
    "LIO target": (lambda: uses.exported_by_lio(A), (A,)),
    "LIO target in a hidden configfs": (lambda: uses.exported_unseen(A), (A,)),
    "process": (lambda: uses.written_by_process(A), (A,)),
    "process by a deleted node": (lambda: uses.written_by_deleted_node(A), (A,)),
    "process by the ng device": (lambda: uses.written_by_process(A.replace("nvme", "ng")), (A,)),
    "process by the sg device": (lambda: uses.written_by_process(generic(SCSI, "scsi_generic")), (SCSI,)),
    "process by the bsg device": (lambda: uses.written_by_process(generic(SCSI, "bsg")), (SCSI,)),
    "process by a mapping": (lambda: uses.mapped_by_process(A), (A,)),
    "multipath of the device mapper": (lambda: uses.mapped(SCSI, BOTH_PATHS), (SCSI,)),
    "SCSI path mounted": (lambda: uses.mounted(SCSI_2), (SCSI,)),
    "SCSI path open": (lambda: uses.opened(SCSI_2, os.O_RDONLY | os.O_EXCL), (SCSI,)),
    "SCSI path by the sg device": (lambda: uses.written_by_process(generic(SCSI_2, "scsi_generic")), (SCSI,)),
    "NVMe path mounted": (lambda: uses.mounted(SHARED_2), (SHARED,)),
    "NVMe path with a mounted partition": (lambda: uses.partition_mounted(SHARED_2), (SHARED,)),
    "NVMe path is swap": (lambda: uses.swapped_on(SHARED_2), (SHARED,)),
    "NVMe path mapped": (lambda: uses.mapped(SHARED_2), (SHARED,)),
    "NVMe path has a volume": (lambda: uses.volume_mounted(SHARED_2), (SHARED,)),
    "NVMe path with a loop device": (lambda: uses.looped(SHARED_2), (SHARED,)),
    "NVMe path exported": (lambda: uses.exported(SHARED_2), (SHARED,)),
    "NVMe path written by a process": (lambda: uses.written_by_process(SHARED_2), (SHARED,)),
}


def verdict(node: str) -> str:
    """Return the kernel name if the guard approves, else the refusal."""
    try:
        return approved(node, SERIALS[node]).name
    except UserError as reason:
        return f"refused: {reason}"


def written(node: str) -> tuple[int, int]:
    wear = sysfs.wear(Path(node).name)
    return wear.sectors_written, wear.sectors_discarded


def wipe(node: str) -> None:
    run("wipefs", "--all", "--force", "--quiet", node)
    run("blockdev", "--flushbufs", node)


def observe(use: Use, drives: tuple[str, ...]) -> dict[str, object]:
    """Return the guard's verdicts on drives during a use and after it."""
    verdicts: dict[str, dict[str, object]] = {SERIALS[node]: {} for node in drives}
    started_s = time.monotonic()
    with use():
        settle()
        for node in drives:
            before = written(node)
            # No program opens the drive briefly, so the first reason is the lasting one.
            with waiting(0.0):
                verdicts[SERIALS[node]]["during"] = verdict(node)
            verdicts[SERIALS[node]]["written"] = [now - then for now, then in zip(written(node), before, strict=True)]
    for state in ("left", "wiped"):
        settle()
        for node in drives:
            of_node = verdicts[SERIALS[node]]
            if str(of_node.get("left", "refused")).startswith("refused"):  # else it cannot change by wiping
                with waiting(0.0) if state == "left" else nullcontext():
                    of_node[state] = verdict(node)
        for node in drives:
            wipe(node)
    return {**verdicts, "seconds": round(time.monotonic() - started_s, 1)}


def clear(name: str) -> None:
    for node in USES[name][1]:
        subprocess.run(["wipefs", "--all", "--force", "--quiet", node], check=False)


observed(sys.argv[1:] or USES, lambda name: observe(*USES[name]), clear)
