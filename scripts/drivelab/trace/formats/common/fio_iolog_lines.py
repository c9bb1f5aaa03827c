"""Shared code of fio's iolog versions (fio(1), "Trace file format"; iolog.c)."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from drivelab.trace.formats.common.request_columns import Fields
from drivelab.trace.formats.common.trace_format import Whole
from drivelab.trace.parquet_schema import OPERATIONS

ACTIONS: dict[str, str | None] = {
    "read": "read", "write": "write", "sync": "flush", "datasync": "flush", "trim": "discard", "wait": None,
}  # fmt: skip


def comments(version: int) -> Callable[[bytes], str | None]:
    """Return a function for the kind of file-management lines and of the first line."""
    stamp = rb"\d+ " if version == 3 else b""
    files = re.compile(stamp + rb"\S+ (add|open|close|unlink)")
    header = f"fio version {version} iolog".encode()

    def kind(line: bytes) -> str | None:
        if line == header:
            return "header lines"
        return "add, open and close lines" if files.fullmatch(line) else None

    return kind


def looks_like(version: int) -> Callable[[bytes], bool]:
    """Return a function that checks whether the first line names the version."""
    first = f"fio version {version} iolog".encode()
    return lambda head: head.split(b"\n", 1)[0].strip() == first


def extents(fields: Fields, operation: npt.NDArray[np.int8]) -> tuple[Whole, Whole]:
    """Return offset and length; those of a sync are 0, as fio's values mean nothing."""
    flush = operation == OPERATIONS.index("flush")
    return np.where(flush, 0, fields["offset"]), np.where(flush, 0, fields["length"])
