"""What other processes of a test do: borrow the virtual drive `test`, or die with it."""

from __future__ import annotations

import os
import signal

from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

PAGE = 4096


def borrow_often(model: DriveModel) -> int:
    """Borrow the drive several times; return how often its device could be read until the end."""
    times = 0
    for _ in range(6):
        with manage.borrowed("test", model) as drive:
            manage.counters("test")
            descriptor = os.open(drive.device, os.O_RDONLY)
            try:
                times += os.pread(descriptor, PAGE, PAGE) == bytes(PAGE)
            finally:
                os.close(descriptor)
    return times


def borrow_and_die(model: DriveModel) -> None:
    with manage.borrowed("test", model):
        os.kill(os.getpid(), signal.SIGKILL)
