"""The compiled decoder (native/decode.c) as an iterator of Arrow batches."""

from __future__ import annotations

import ctypes
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from drivelab import native
from drivelab.core.errors import UserError
from drivelab.trace import records
from drivelab.trace.parquet_schema import BATCH_ROWS, FLAGS, OPERATIONS, REQUESTS

_CORRECTION = np.dtype(
    [("row", "<u8"), ("dispatch_ns", "<i8"), ("complete_ns", "<i8"), ("dispatch_id", "<i8"),
     ("error", "<u4"), ("pieces", "<u4"), ("requeues", "<u4"), ("unused", "<u4")]
)  # fmt: skip
_MOST_CORRECTIONS = 1 << 20
_MISMATCHES = (
    "dispatches", "completions", "requeues", "undispatched", "uncompleted", "time_backwards", "impossible", "forgotten",
)  # fmt: skip
_SAME_COUNTS = (
    "events", "passthrough", "device_flushes", "data_completions", "empty_completions", "empty_queued", "sequence_gaps",
    "truncated_files", "other_devices",
)  # fmt: skip
_CANNOT_READ, _NO_RECORD, _NO_MEMORY = 1, 2, 3
_GZIP = 0x8B1F
_NULLABLE = ("dispatch_ns", "complete_ns", "dispatch_id")
_FIELDS: dict[str, pa.DataType] = {
    **dict.fromkeys(
        ("queue_ns", "dispatch_ns", "complete_ns", "offset_bytes", "length_bytes", "dispatch_id"), pa.int64()
    ),
    **dict.fromkeys((*(f"has_{name}" for name in _NULLABLE), *FLAGS), pa.bool_()),
    "operation": pa.int8(),
    **dict.fromkeys(("process", "pid", "cpu", "error", "pieces", "requeues"), pa.int32()),
}
"""`struct columns` of native/decode.c, in its order, by the names in REQUESTS."""


class _Columns(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in _FIELDS]


class _Counts(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("events", "notes", "passthrough", "rows", "device_flushes")),
        *((name, ctypes.c_uint64) for name in ("data_completions", "empty_completions", "empty_queued")),
        ("by_kind", ctypes.c_uint64 * 256),
        ("mismatches", ctypes.c_uint64 * len(_MISMATCHES)),
        *((name, ctypes.c_uint64) for name in ("sequence_gaps", "truncated_files", "other_devices")),
        *((name, ctypes.c_uint32) for name in ("device", "other_device", "names", "dropped_names")),
        ("origin", ctypes.c_uint64),
    ]


@dataclass(frozen=True)
class Counts:
    """Totals of a finished decoder."""

    events: int
    events_by_action: dict[str, int]
    """By the letters of blkparse(1); all unplugs are `U`, notes are `notify`."""
    requests: int
    passthrough: int
    device_flushes: int
    data_completions: int
    """Completions with a length above 0."""
    empty_completions: int
    """Completions of length 0: ends of empty flushes and of flush sequences."""
    empty_queued: int
    """Queued empty flushes."""
    unmatched: dict[str, int]
    sequence_gaps: int
    truncated_files: int
    other_devices: int
    """Events of devices other than the decoded one."""
    origin_ns: int
    """Raw time of the first event."""


class Decoder:
    """Decode the files of a capture, one per CPU, in bounded memory."""

    def __init__(
        self, files: Sequence[Path], processes: Mapping[int, str] | None = None, first_sector: int = 0,
        device: int | None = None, from_dispatch: bool = False, corrections: npt.NDArray[np.void] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:  # fmt: skip
        """Open the files.

        `processes` are names missing in the files; offsets count from `first_sector`. `device` is the number of the
        device to decode, as in the records; without it, all events must belong to one device. With `from_dispatch`,
        requests begin with their dispatch, for a trace without queue events. `corrections` are those of an earlier
        decoder of the same files. `batch_rows` is a multiple of 8.
        """
        self._batch_rows = batch_rows
        self._files = list(files)
        self._device = device
        self._library = _library()
        paths = (ctypes.c_char_p * len(files))(*(os.fsencode(path) for path in files))
        self._corrections = np.empty(0, _CORRECTION) if corrections is None else corrections  # the decoder uses them
        self._decoder = self._library.decoder_open(
            paths, len(files), first_sector, device or 0, from_dispatch,
            self._corrections.ctypes.data, len(self._corrections),
        )  # fmt: skip
        if not self._decoder:
            raise UserError("too little memory to decode a trace; close other programs")
        for pid, name in (processes or {}).items():
            self._library.decoder_name(self._decoder, pid, name.encode()[:15])
        self._names = _strings([""])
        self._operations = _strings(OPERATIONS)
        self._columns = [
            {name: np.zeros(batch_rows * kind.bit_width // 8, np.uint8) for name, kind in _FIELDS.items()}
            for _ in range(2)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._library.decoder_close(self._decoder)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield at most `batch_rows` requests at a time, in order of their begin, in the schema REQUESTS.

        A batch is valid until the second one after it. Raises UserError for files not of blktrace, unknown versions,
        another byte order, and events of several devices.
        """
        for columns in cycle(self._columns):
            pointers = _Columns(*(columns[name].ctypes.data for name in _FIELDS))
            count = self._library.decoder_next(self._decoder, ctypes.byref(pointers), self._batch_rows)
            if count < 0:
                raise self._error()
            self._refuse_several_devices()
            if count == 0:
                return
            yield self._batch(columns, count)

    def _batch(self, columns: Mapping[str, npt.NDArray[np.uint8]], count: int) -> pa.RecordBatch:
        arrays = {}
        for name in REQUESTS.names:
            valid = pa.py_buffer(columns[f"has_{name}"]) if name in _NULLABLE else None
            arrays[name] = pa.Array.from_buffers(_FIELDS[name], count, [valid, pa.py_buffer(columns[name])])
        for name, words in (("operation", self._operations), ("process", self._known_names())):
            arrays[name] = pa.DictionaryArray.from_arrays(arrays[name], words, safe=False)
        return pa.RecordBatch.from_arrays([arrays[name] for name in REQUESTS.names], schema=REQUESTS)

    def finish(self) -> Counts:
        """Decode all files without their rows; return totals."""
        for _ in self.batches():
            pass
        return self.counts()

    def counts(self) -> Counts:
        """Return totals; complete after the last batch."""
        counts = self._counts()
        by_action = Counter({"notify": counts.notes})
        for kind, count in enumerate(counts.by_kind):
            by_action[records.ACTIONS[kind] if 0 < kind < len(records.ACTIONS) else f"action {kind}"] += count
        unmatched = dict(zip(_MISMATCHES, counts.mismatches, strict=True)) | {"process_names": counts.dropped_names}
        return Counts(
            **{name: getattr(counts, name) for name in _SAME_COUNTS},
            events_by_action={name: count for name, count in sorted(by_action.items()) if count},
            requests=counts.rows,
            unmatched={kind: int(count) for kind, count in sorted(unmatched.items()) if count},
            origin_ns=counts.origin,
        )

    def corrections(self) -> npt.NDArray[np.void]:
        """Return the last state of rows that changed after their batch, as `_CORRECTION`, for another decoder.

        Raises UserError if there are too many.
        """
        count = ctypes.c_uint64()
        address = self._library.decoder_corrections(self._decoder, ctypes.byref(count))
        if count.value > _MOST_CORRECTIONS:
            raise UserError(
                f"{self._files[0].parent}: {count.value} requests completed after half a million later requests "
                "were queued; no drive does that; capture again"
            )
        if not count.value:
            return np.empty(0, _CORRECTION)
        raw = ctypes.string_at(address, count.value * _CORRECTION.itemsize)
        rows = np.frombuffer(raw, _CORRECTION)
        _, last = np.unique(rows["row"][::-1], return_index=True)
        return rows[len(rows) - 1 - last]

    def _known_names(self) -> pa.Array:
        count = self._counts().names
        if count != len(self._names):
            raw = ctypes.string_at(self._library.decoder_names(self._decoder), count * records.NAME_BYTES)
            names = (raw[at : at + records.NAME_BYTES] for at in range(0, len(raw), records.NAME_BYTES))
            self._names = _strings([name.split(b"\0")[0].decode(errors="replace") for name in names])
        return self._names

    def _counts(self) -> _Counts:
        counts = _Counts()
        self._library.decoder_counts(self._decoder, ctypes.byref(counts))
        return counts

    def _refuse_several_devices(self) -> None:
        counts = self._counts()
        if self._device is None and counts.other_devices:
            devices = " and ".join(records.device_name(number) for number in (counts.device, counts.other_device))
            raise UserError(
                f"{self._files[0]}: has events of the devices {devices}; choose one with --device MAJOR:MINOR"
            )

    def _error(self) -> UserError:
        file, byte, detail = ctypes.c_uint(), ctypes.c_uint64(), ctypes.c_uint32()
        error = self._library.decoder_error(self._decoder, *(ctypes.byref(value) for value in (file, byte, detail)))
        path = self._files[file.value]
        if error == _NO_RECORD and byte.value == 0 and detail.value & 0xFFFF == _GZIP:
            packed = shlex.quote(str(path))
            return UserError(f"{path}: is compressed with gzip; unpack it first: gunzip < {packed} > unpacked")
        if error == _NO_RECORD:
            return UserError(f"{path}: {records.wrong_magic(detail.value)} at byte {byte.value}; capture again")
        if error == _CANNOT_READ:
            return UserError(
                f"{path}: cannot be read at byte {byte.value} ({os.strerror(detail.value)}); check the file"
            )
        return UserError("too little memory to decode a trace; close other programs")


def _strings(values: Sequence[str]) -> pa.Array:
    """Build a string array without `pa.array`, which would slowly import pandas."""
    data = [value.encode() for value in values]
    offsets = np.cumsum([0, *map(len, data)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(data), pa.py_buffer(offsets), pa.py_buffer(b"".join(data)))


def _library() -> ctypes.CDLL:
    library = native.load()
    pointer, u64 = ctypes.c_void_p, ctypes.c_uint64
    signatures: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "decoder_open": (pointer, (pointer, ctypes.c_uint, u64, ctypes.c_uint32, ctypes.c_bool, pointer, u64)),
        "decoder_close": (None, (pointer,)),
        "decoder_name": (ctypes.c_bool, (pointer, ctypes.c_uint32, ctypes.c_char_p)),
        "decoder_next": (ctypes.c_int64, (pointer, pointer, u64)),
        "decoder_counts": (None, (pointer, pointer)),
        "decoder_names": (pointer, (pointer,)),
        "decoder_error": (ctypes.c_uint, (pointer, pointer, pointer, pointer)),
        "decoder_corrections": (pointer, (pointer, pointer)),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
