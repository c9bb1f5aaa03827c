"""Read and write a virtual drive without the page cache, and kill its server."""

from __future__ import annotations

import mmap
import os
import select
import signal
from contextlib import closing

from drivelab.virtual.manage import VirtualDrive

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
