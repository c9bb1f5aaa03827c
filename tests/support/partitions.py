"""A virtual drive with partitions, one of which is a subject."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from drivelab.plan.drive_sheet import SheetRow
from drivelab.virtual import manage

MIB = 1 << 20
UUID = "11111111-2222-4333-8444-555555555555"
TABLE = f"label: gpt\nstart=1MiB, size=4MiB\nstart=5MiB, size=6MiB, uuid={UUID}\nstart=11MiB, size=4MiB\n"


@dataclass
class Partitioned:
    drive: manage.VirtualDrive
    row: SheetRow

    def part(self, number: int) -> str:
        return f"{self.drive.device}p{number}"

    def content(self) -> bytes:
        subprocess.run(["blockdev", "--flushbufs", self.drive.device], check=True)
        return Path(self.drive.device).read_bytes()


def write(device: str, place: int) -> None:
    with Path(device).open("r+b", buffering=0) as file:
        file.seek(place)
        file.write(os.urandom(512))
        os.fsync(file.fileno())
