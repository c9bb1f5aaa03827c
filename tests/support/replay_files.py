"""Build replay schedules and targets, and run the replay engine on them."""

from __future__ import annotations

import fcntl
import mmap
import os
import stat
import struct
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from captures import running

from drivelab.replay import engine_records, native
from drivelab.replay.engine_records import (
    OPERATION_CODES,
    SCHEDULE_RECORD,
    Records,
    ScheduleWriter,
    make_results,
    open_results,
    open_schedule,
)
from drivelab.replay.native import EngineOptions

BLOCK = 4096
_DISK_SEQUENCE = 0x80081280
"""BLKGETDISKSEQ of linux/fs.h."""


def make_records(rows: Iterable[Mapping[str, Any]]) -> Records:
    """Return records from fields of SCHEDULE_RECORD, `operation` as a name or code; default: read the first block."""
    rows = list(rows)
    schedule = np.zeros(len(rows), SCHEDULE_RECORD)
    for record, row in zip(schedule, rows, strict=True):
        operation = row.get("operation", "read")
        record["operation"] = OPERATION_CODES.get(operation, operation)
        record["length_bytes"] = 0 if row.get("operation") == "flush" else BLOCK
        for name, value in row.items():
            if name != "operation":
                record[name] = value
    return schedule


def write_schedule(path: Path, made: Records, target_bytes: int = 1 << 20, block_bytes: int = BLOCK) -> Path:
    with ScheduleWriter(path, target_bytes, block_bytes) as writer:
        writer.write(made)
    return path


def identity(path: str | Path) -> str:
    """Return the present identity of a target, in the engine's format."""
    status = Path(path).stat()
    if stat.S_ISREG(status.st_mode):
        return f"file {status.st_dev}:{status.st_ino}"
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        sequence = str(struct.unpack("Q", fcntl.ioctl(descriptor, _DISK_SEQUENCE, bytes(8)))[0])
    except OSError:
        sequence = "-"
    finally:
        os.close(descriptor)
    return f"block {os.major(status.st_rdev)}:{os.minor(status.st_rdev)} {sequence}"


@dataclass(frozen=True)
class Ran:
    """The results of an engine run."""

    status: int
    words: str
    report: dict[str, Any]
    results: Records
    schedule: Records

    @property
    def issued(self) -> Records:
        issued: Records = self.results[self.results["state"] != engine_records.NOT_ISSUED]
        return issued


class Engine:
    """Replays schedules on a target, with files in one folder."""

    def __init__(self, folder: Path, target: str | Path, program: Path | None = None) -> None:
        self.folder, self.target, self.program = folder, str(target), program
        self.target_bytes = capacity(target)
        self._runs = 0

    def prepare(self, made: Records, options: EngineOptions, block_bytes: int = BLOCK, **more: str) -> list[str]:
        """Write the files of a run and return the engine's command line; `more` changes options in it."""
        self._runs += 1
        path = self.folder / f"{self._runs}.schedule"
        schedule = write_schedule(path, made, self.target_bytes, block_bytes)
        header = open_schedule(schedule).header
        directory = self.folder / f"run{self._runs}"
        directory.mkdir()
        make_results(directory / native.RESULTS, header["count"], header["checksum"])
        words = native.command(self.target, identity(self.target), schedule, directory / native.RESULTS, options)
        for name, value in more.items():
            words[words.index(f"--{name.replace('_', '-')}") + 1] = value
        return words if self.program is None else [str(self.program), *words[1:]]

    def start(self, made: Records, options: EngineOptions | None = None, **more: Any) -> subprocess.Popen[str]:
        return start(self.prepare(made, options or EngineOptions(watchdog_s=30), **more))

    def run(self, made: Records, options: EngineOptions | None = None, **more: Any) -> Ran:
        return self.ended(self.start(made, options, **more))

    def run_rows(self, *rows: Mapping[str, Any], **more: Any) -> Ran:
        return self.run(make_records(rows), **more)

    def ended(self, process: subprocess.Popen[str]) -> Ran:
        """Wait for the last started engine and return its results."""
        _, words = process.communicate()
        directory = self.folder / f"run{self._runs}"
        schedule = open_schedule(self.folder / f"{self._runs}.schedule")
        results = np.array(open_results(directory / native.RESULTS).records)
        report = native.engine_report(directory)
        return Ran(process.returncode, words, report, results, schedule.records)

    def live_header(self) -> dict[str, Any]:
        """Return the present header of the last started engine's results."""
        return open_results(self.folder / f"run{self._runs}" / native.RESULTS).header


def engines_of(schedule: Path) -> list[int]:
    """Return the processes with this schedule in their command."""
    return running(str(schedule))


def start(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def capacity(path: str | Path) -> int:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def direct_read(path: str | Path, offset: int = 0, length: int | None = None) -> bytes:
    """Return the content of the target, without the page cache."""
    length = capacity(path) - offset if length is None else length
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, length)
    try:
        assert os.preadv(descriptor, [buffer], offset) == length
        return buffer[:]
    finally:
        os.close(descriptor)
        buffer.close()


def direct_io_trouble(folder: Path) -> str | None:
    """Return why files of a folder cannot be targets, or None."""
    path = folder / "probe"
    path.write_bytes(bytes(BLOCK))
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT))
    except OSError as error:
        return f"files in {folder} have no direct I/O ({error.strerror})"
    finally:
        path.unlink()
    return None
