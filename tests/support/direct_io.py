"""Read and write a virtual drive without the page cache, kill its server, and borrow it in other processes."""

from __future__ import annotations

import mmap
import os
import select
import signal
from contextlib import closing

from drivelab.virtual import manage
from drivelab.virtual.manage import VirtualDrive
from drivelab.virtual.model import DriveModel

PAGE = 4096


def write(device: str, offset: int, data: bytes) -> None:
    descriptor = os.open(device, os.O_WRONLY | os.O_DIRECT)
    with closing(mmap.mmap(-1, len(data))) as buffer:
        buffer[:] = data
        try:
            assert os.pwritev(descriptor, [buffer], offset) == len(data)
        finally:
            os.close(descriptor)


def read(device: str, offset: int, length: int) -> bytes:
    descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT)
    with closing(mmap.mmap(-1, length)) as buffer:
        try:
            assert os.preadv(descriptor, [buffer], offset) == length
            return buffer[:]
        finally:
            os.close(descriptor)


def kill_server(drive: VirtualDrive) -> None:
    descriptor = os.pidfd_open(drive.pid)
    os.kill(drive.pid, signal.SIGKILL)
    select.select([descriptor], [], [])
    os.close(descriptor)


def borrow_often(model: DriveModel) -> int:
    """Borrow the drive `test` several times; return how often its device could be read until the end."""
    times = 0
    for _ in range(6):
        with manage.borrowed("test", model) as drive:
            manage.counters("test")
            times += read(drive.device, PAGE, PAGE) == bytes(PAGE)
    return times


def borrow_and_die(model: DriveModel) -> None:
    with manage.borrowed("test", model):
        os.kill(os.getpid(), signal.SIGKILL)
