"""What the guard says of a drive in many states, as JSON: the kernel name where it approves, else its sentence.

Arguments: path under /dev/disk/by-id of a drive to be written to, its serial, path of a second drive.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sheet import row

from drivelab.drives.guard import approve
from drivelab.errors import UserError

DEVICE, SERIAL, OTHER = sys.argv[1:]
MOUNT_POINT = "/mnt"


def verdict(device: str = DEVICE, serial: str = SERIAL, *, destructive: bool = True) -> str:
    try:
        return approve(row(device, serial, destructive=destructive), device).name
    except UserError as reason:
        return f"refused: {reason}"


def run(*command: str, text: str | None = None) -> None:
    subprocess.run(command, input=text, text=True, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def mounted(node: str) -> Iterator[None]:
    run("mke2fs", "-q", "-F", "-t", "ext4", node)
    run("mount", node, MOUNT_POINT)
    try:
        yield
    finally:
        run("umount", MOUNT_POINT)


@contextmanager
def swapped_on(node: str) -> Iterator[None]:
    run("mkswap", node)
    run("swapon", node)
    try:
        yield
    finally:
        run("swapoff", node)


@contextmanager
def mapped(node: str) -> Iterator[None]:
    run("dmsetup", "create", "held", "--noudevsync", "--table", f"0 2048 linear {node} 0")
    try:
        yield
    finally:
        run("dmsetup", "remove", "--noudevsync", "--retry", "held")


@contextmanager
def opened(node: str, flags: int) -> Iterator[None]:
    descriptor = os.open(node, flags)
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def partitioned() -> Iterator[str]:
    """Two partitions; gives the second."""
    run("sfdisk", "--quiet", "--wipe", "always", DEVICE, text="label: gpt\nsize=8MiB\nsize=40MiB\n")
    run("udevadm", "settle")
    name = Path(DEVICE).resolve()
    try:
        yield f"{name}p2" if name.name[-1].isdigit() else f"{name}2"
    finally:
        run("wipefs", "--all", "--force", "--quiet", DEVICE)
        run("blockdev", "--rereadpt", DEVICE)
        run("udevadm", "settle")


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
    with partitioned() as partition:
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
