"""The file of origins: for each block that a replay reads, the write that its data came from.

`drivelab/native/replay/origins.c` fills it. First there is a 64-bit place for each request of the schedule: the number
of blocks that earlier requests read. Behind it, aligned, there is a 64-bit word for each such block: 0 if it was not
looked at, 1 + `request << BLOCK_BITS | block of the request` for data of a write, or one of the codes below.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from drivelab.core.errors import UserError
from drivelab.core.units import format_amount
from drivelab.replay.engine_records import OPERATION_CODES, open_schedule
from drivelab.replay.verify.written_data import BLOCK_BITS
from drivelab.trace.statistics.batch import Flags, Ints, Words

ORIGINS = "origins.bin"
UNSEEN = 0
FOREIGN, ZEROES, MIXED = (np.uint64(1 << 63 | code) for code in range(3))
"""None of the replay's data; only zeroes; some words of the replay's writes, but not one whole block."""
_ALIGNED_BYTES = 64 << 10
_BATCH = 1 << 20
_READ = OPERATION_CODES["read"]
_BLOCK_MASK = np.uint64((1 << BLOCK_BITS) - 1)


def first_blocks(operation: Ints, length_bytes: Ints, block_bytes: int, before: int = 0) -> Ints:
    """Return how many blocks requests read before each request; shape (requests + 1,), the last is the total."""
    count = np.where(operation == _READ, length_bytes // block_bytes, 0)
    return np.concatenate([[before], before + np.cumsum(count)])


def make_origins(path: Path, schedule: Path) -> None:
    """Create the file for a schedule, with its disk space reserved.

    It takes 8 B for each request and for each block of a read. Raises UserError without enough space.
    """
    mapped = open_schedule(schedule)
    total = 0
    with path.open("wb") as file:
        for first in range(0, len(mapped.records), _BATCH):
            batch = mapped.records[first : first + _BATCH]
            operation, length = (batch[name].astype(np.int64) for name in ("operation", "length_bytes"))
            places = first_blocks(operation, length, mapped.header["block_bytes"], total)
            file.write(places[:-1].astype("<u8").tobytes())
            total = int(places[-1])
        start = _start(len(mapped.records))
        try:
            os.posix_fallocate(file.fileno(), 0, start + 8 * total)
        except OSError as error:
            raise UserError(
                f"{path}: comparing the reads of this replay needs {format_amount(start + 8 * total)} here "
                f"({error.strerror}); make room, or replay without verification"
            ) from None


def read_origins(path: Path, requests: int) -> Words:
    """Return the words of all blocks, mapped; shape (blocks,). Raises UserError when the file cannot be read."""
    try:
        if path.stat().st_size == _start(requests):
            return np.empty(0, np.uint64)
        return np.memmap(path, "<u8", "r", offset=_start(requests))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: the origins of reads cannot be read ({error}); replay again") from None


def written_by(words: Words) -> tuple[Flags, Ints, Ints]:
    """Return which words name a write, the write's request, and the number of the block in it; each of their shape."""
    known = (words != UNSEEN) & (words < FOREIGN)
    number = np.where(known, words - np.uint64(1), np.uint64(0))
    return known, (number >> np.uint64(BLOCK_BITS)).astype(np.int64), (number & _BLOCK_MASK).astype(np.int64)


def _start(requests: int) -> int:
    return (8 * requests // _ALIGNED_BYTES + 1) * _ALIGNED_BYTES
