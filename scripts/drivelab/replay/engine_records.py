"""The engine's schedule and results files: fixed-size, little-endian records.

`drivelab/native/replay/records.h` is the same in C; a test compares the two.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from drivelab.core.errors import UserError
from drivelab.trace.parquet_schema import OPERATIONS

OPERATION_CODES = {name: code for code, name in enumerate(OPERATIONS)}
FUA = 1
"""Bit of `flags`: the write must be on stable media when it completes (RWF_DSYNC)."""
LONGEST_TRANSFER_BYTES = 64 << 20
"""Limit for reads and writes, whose buffers are registered before the start. Discards and write-zeroes have none."""

SCHEDULE_MAGIC = b"DLSCHED1"
SCHEDULE_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("header_bytes", "<u4"),
        ("record_bytes", "<u4"),
        ("count", "<u8"),
        ("checksum", "<u8"),
        ("target_bytes", "<u8"),  # no request ends beyond
        ("block_bytes", "<u4"),  # offsets and lengths are multiples of it
        ("longest_bytes", "<u4"),  # longest read or write
    ]
)
SCHEDULE_RECORD = np.dtype(
    [
        ("deadline_ns", "<u8"),  # after the start; ascending
        ("offset_bytes", "<u8"),
        ("length_bytes", "<u8"),
        ("think_ns", "<u8"),  # minimum from the completion of the dependency to the issue
        ("after", "<u4"),  # 1 + index of the dependency, an earlier request; 0: none
        ("depth", "<u2"),  # most requests in flight, this one included; 0: only the engine's limit
        ("operation", "u1"),
        ("flags", "u1"),
    ]
)

RESULTS_MAGIC = b"DLRESLT1"
RESULTS_HEADER_BYTES = 4096
PREPARED, RUNNING, FINISHED, INTERRUPTED, FAILED, HUNG, TIME_IS_UP = range(7)
STATES = ("prepared", "running", "finished", "interrupted", "failed", "hung", "time is up")
"""Engine states; the last five: all completed; ended by signal, failed request, watchdog, or runtime."""
RESULTS_HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("header_bytes", "<u4"),
        ("record_bytes", "<u4"),
        ("capacity", "<u8"),  # records that the file has space for
        ("schedule_checksum", "<u8"),
        ("start_monotonic_ns", "<i8"),
        ("start_realtime_ns", "<i8"),
        ("issued", "<u8"),
        ("completed", "<u8"),
        ("failed", "<u8"),
        ("first_failed", "<u8"),  # 1 + index; 0: none
        ("end_ns", "<u8"),  # of the last completion, after the start
        ("heartbeat_ns", "<u8"),  # after the start, about twice a second
        ("most_in_flight", "<u8"),
        ("state", "<u4"),
        ("signal", "<u4"),
        ("wakeup_p50_ns", "<u8"),  # this host's wake-up delay, measured before the start
        ("wakeup_p95_ns", "<u8"),
        ("wakeup_p99_ns", "<u8"),
        ("wakeup_max_ns", "<u8"),
        ("spin_ns", "<u8"),  # the engine does not sleep for less than this
        ("plain_buffers", "<u4"),  # 1: the buffers could not be registered with io_uring
        ("threads", "<u4"),  # that issue requests
        ("watching", "<u4"),  # threads that at the end watched for completions instead of sleeping
        ("polled", "<u4"),  # 1: the driver was polled for completions
        ("kernel_thread", "<u4"),  # 1: a thread of the kernel submitted
        ("nvme", "<u4"),  # 1: requests were NVMe commands, past the block layer
    ]
)
NOT_ISSUED, ISSUED, COMPLETED = range(3)
WAITED_FOR = ("", "depth", "dependency")
"""Why a request missed its deadline, by the record's `waited`; delays of the host itself count as ""."""
RESULT_RECORD = np.dtype(
    [
        ("issue_ns", "<u8"),  # after the start
        ("complete_ns", "<u8"),
        ("result", "<i4"),  # bytes, or -errno
        ("state", "u1"),
        ("waited", "u1"),
        ("in_flight", "<u2"),  # at the issue, this one included
    ]
)

Records = npt.NDArray[np.void]


def checksum(records: Records, first: int = 0, before: int = 0) -> int:
    """Return the sum of (2 i + 1) w_i modulo 2^64 over all 64-bit words w.

    Any altered or moved word changes the sum. For partial sums, `first` is the index of the first record given and
    `before` the sum of all earlier records.
    """
    words = np.ascontiguousarray(records).view("<u8")
    start = first * records.dtype.itemsize // 8
    factors = np.arange(start, start + len(words), dtype="<u8") * np.uint64(2) + np.uint64(1)
    with np.errstate(over="ignore"):
        return (before + int((words * factors).sum(dtype="<u8"))) & (2**64 - 1)


class ScheduleWriter:
    """Write a schedule batch by batch; a failed `with` block leaves no file."""

    def __init__(self, path: Path, target_bytes: int, block_bytes: int) -> None:
        self._path = path
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._target_bytes, self._block_bytes = target_bytes, block_bytes
        self.count = self.checksum = self._longest = 0

    def __enter__(self) -> Self:
        self._file = self._part.open("wb")
        self._file.write(bytes(SCHEDULE_HEADER.itemsize))
        return self

    def write(self, records: Records) -> None:
        """Append records of SCHEDULE_RECORD."""
        self.checksum = checksum(records, self.count, self.checksum)
        moving = records["length_bytes"][records["operation"] <= OPERATION_CODES["write"]]
        self._longest = max(self._longest, int(moving.max(initial=0)))
        self._file.write(np.ascontiguousarray(records).tobytes())
        self.count += len(records)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None:
                header = np.zeros(1, SCHEDULE_HEADER)
                header[0] = (SCHEDULE_MAGIC, SCHEDULE_HEADER.itemsize, SCHEDULE_RECORD.itemsize, self.count,
                             self.checksum, self._target_bytes, self._block_bytes, self._longest)  # fmt: skip
                self._file.seek(0)
                self._file.write(header.tobytes())
                self._file.close()
                self._part.replace(self._path)
        finally:
            self._file.close()
            self._part.unlink(missing_ok=True)


@dataclass(frozen=True)
class Mapped:
    """A memory-mapped file of records."""

    header: dict[str, Any]
    records: Records


def open_schedule(path: Path) -> Mapped:
    """Open a schedule; the engine verifies the checksum.

    Raises UserError when the file is invalid or incomplete.
    """
    return _open(path, "schedule", SCHEDULE_MAGIC, SCHEDULE_HEADER, SCHEDULE_RECORD, SCHEDULE_HEADER.itemsize, "count")


def open_results(path: Path) -> Mapped:
    """Open the results of a running or ended engine.

    Raises UserError when the file is invalid or incomplete.
    """
    return _open(path, "results", RESULTS_MAGIC, RESULTS_HEADER, RESULT_RECORD, RESULTS_HEADER_BYTES, "capacity")


def make_results(path: Path, capacity: int, schedule_checksum: int) -> None:
    """Create an empty results file with its disk space reserved.

    Raises OSError without enough space.
    """
    header = np.zeros(1, RESULTS_HEADER)
    header["magic"], header["header_bytes"], header["record_bytes"] = (
        RESULTS_MAGIC, RESULTS_HEADER_BYTES, RESULT_RECORD.itemsize)  # fmt: skip
    header["capacity"], header["schedule_checksum"] = capacity, schedule_checksum
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, RESULTS_HEADER_BYTES + capacity * RESULT_RECORD.itemsize)
        file.write(header.tobytes())


def _open(
    path: Path, kind: str, magic: bytes, header: np.dtype[np.void], record: np.dtype[np.void], start: int, count: str
) -> Mapped:
    try:
        content = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: the replay's {kind} cannot be read ({error}); replay again") from None
    if len(content) < header.itemsize or bytes(content[: len(magic)]) != magic:
        raise UserError(f"{path}: is not a replay's {kind}; replay again")
    fields = content[: header.itemsize].view(header)[0]
    values = {name: fields[name].item() for name in header.names or () if name != "magic"}
    end = start + values[count] * record.itemsize
    if len(content) != end or values["record_bytes"] != record.itemsize:
        raise UserError(f"{path}: the replay's {kind} is cut off or of another version; replay again")
    return Mapped(values, content[start:end].view(record))
