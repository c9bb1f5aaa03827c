"""Loop devices over files of a test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drivelab.virtual import fuse

MIB = 1 << 20


def image(path: Path, size_mib: int) -> Path:
    """Make an empty file of this size."""
    with path.open("wb") as file:
        file.truncate(size_mib * MIB)
    return path


@contextmanager
def looped(file: Path | str, *options: str) -> Iterator[str]:
    """Attach a loop device over a file, with options of losetup; skip the test where that is not possible."""
    command = ["losetup", "--find", "--show", *options, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no loop device: {done.stderr.strip().rpartition(': ')[2]}")
    device = done.stdout.strip()
    try:
        yield device
    finally:
        # Another test may have the device open for a moment, or have it already for another file.
        assert fuse.detach_loop(device, Path(file), 60)


@contextmanager
def mounted(device: str | Path, point: Path, kind: str = "ext4", *options: str) -> Iterator[Path]:
    """Make a file system on a device, and mount it on a new folder; skip the test where the kernel cannot."""
    subprocess.run([f"mkfs.{kind}", "-q", str(device)], check=True, stdin=subprocess.DEVNULL)
    point.mkdir()
    done = subprocess.run(["mount", *options, str(device), str(point)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{kind} cannot be mounted: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)
