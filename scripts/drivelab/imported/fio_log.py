"""Convert fio's logs, of every I/O or of averages (`log_avg_msec`), to Parquet.

A line is `time, value, direction, block size[, offset], priority[, issue time]` (fio manual, "Log File Formats", and
`flush_samples` in fio's iolog.c). The offset needs `log_offset`. The issue time needs `log_issue_time` and
`log_offset`. fio 2 wrote no priority. Averages have the block size 0 (`__add_stat_to_log` in fio's stat.c).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from drivelab.core.errors import UserError
from drivelab.trace.formats.common.lines import Lines
from drivelab.trace.formats.common.request_columns import Kind, Layout
from drivelab.trace.formats.common.source import Block, Source, open_source
from drivelab.trace.formats.common.trace_format import MalformedError, Tally

VALUES = {
    "lat": "latency_ns",
    "clat": "completion_latency_ns",
    "slat": "submission_latency_ns",
    "bw": "bandwidth_kib_s",
    "iops": "iops",
}
"""Column of the value, by the log's kind in fio's file names."""
DIRECTIONS = ("read", "write", "trim")
"""Directions, indexed by fio's number."""
METADATA_KEY = b"drivelab"
_HEAD = ("time_ms", "value", "direction", "block_size_bytes")
_LAYOUTS = {
    4: _HEAD,
    5: (*_HEAD, "priority"),
    6: (*_HEAD, "offset_bytes", "priority"),
    7: (*_HEAD, "offset_bytes", "priority", "issue_ns"),
}
_FIO_2_WITH_OFFSET = (*_HEAD, "offset_bytes")
_NAME = re.compile(rf".*_({'|'.join(VALUES)})(?:\.\d+)?\.log(?:\.gz|\.zst|\.bz2)?")
_ROW_GROUP_ROWS = 1 << 20
_PRIORITY = re.compile(r"\s*(0x[0-9a-fA-F]{1,4}|\d{1,5})\s*", re.ASCII)


@dataclass(frozen=True)
class IoLog:
    """Facts about a converted log."""

    rows: int
    columns: tuple[str, ...]
    averaged: bool
    """Whether a row is an average over `log_avg_msec`, not an I/O."""
    malformed: int
    first_malformed: tuple[tuple[int, str], ...]
    """Line number and reason of the first ten skipped lines."""


def log_kind(path: Path) -> str:
    """Return a log's kind, a key of VALUES, from a name such as `NAME_lat.3.log`. Raises UserError for other names."""
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise UserError(f"{path}: its name does not show the kind of log; name it as fio does, such as job_lat.1.log")
    return match[1]


def convert(
    path: Path, output: Path, *, kind: str | None = None, fio_2_offset: bool = False, max_malformed: int | None = 0
) -> IoLog:
    """Write the log as Parquet atomically, one row per line.

    Columns: time_ms, the value under its name in VALUES, direction, block_size_bytes, and, if the log has them,
    offset_bytes, priority (class in the upper three of its 16 bits, as in the kernel's ioprio; 0 or 1 without
    `log_prio`) and issue_ns.

    `kind` is a key of VALUES; None takes it from the file's name. `fio_2_offset` says that the last of five columns is
    the offset. Raises UserError for an unknown layout, and for more than `max_malformed` malformed lines (None: any
    number), with their numbers.
    """
    value = VALUES[kind or log_kind(path)]
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.{os.getpid()}")
    tally = Tally(path, max_malformed)
    try:
        with open_source(path) as source:
            columns = _layout(path, source.head, fio_2_offset)
            averaged = _first_line(source.head).split(b",")[3].strip() == b"0"
            facts = {"source": path.name, "value": value, "averaged": averaged}
            rows = _write(_batches(source, columns, value, tally), temporary, facts)
        if not rows:
            raise UserError(f"{path}: contains no I/O; check that it is a log of fio")
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
    named = tuple(value if name == "value" else name for name in columns)
    return IoLog(rows, named, averaged, tally.malformed, tuple(tally.first))


def _layout(path: Path, head: bytes, fio_2_offset: bool) -> tuple[str, ...]:
    """Return the log's columns, chosen by the number of fields in its first line."""
    first = _first_line(head)
    count = first.count(b",") + 1
    if fio_2_offset and count != len(_FIO_2_WITH_OFFSET):
        raise UserError(f"{path}: has {count} columns, but logs of fio 2 with an offset have 5; remove --fio-2-offset")
    if count not in _LAYOUTS:
        shown = first[:60].decode(errors="replace")
        raise UserError(
            f"{path}: begins with '{shown}', which is not a line of a fio log; name a log with lines such as "
            "'0, 81920, 0, 4096, 0'"
        )
    return _FIO_2_WITH_OFFSET if fio_2_offset else _LAYOUTS[count]


def _first_line(head: bytes) -> bytes:
    return next((line for line in head.splitlines() if line.strip()), b"")


def _batches(source: Source, columns: tuple[str, ...], value: str, tally: Tally) -> Iterator[pa.RecordBatch]:
    lines = Lines(_Conversion(columns, value))
    for pieces in lines.read(source, tally):
        yield from pieces


def _write(batches: Iterator[pa.RecordBatch], path: Path, facts: dict[str, Any]) -> int:
    """Write batches and return the number of rows. Encodings per column halve the size and are faster."""
    rows, writer = 0, None
    try:
        for batch in batches:
            if writer is None:
                few = [name for name in batch.schema.names if name in ("direction", "block_size_bytes", "priority")]
                schema = batch.schema.with_metadata({METADATA_KEY: json.dumps(facts)})
                delta_encoded = {
                    name: "DELTA_BINARY_PACKED" for name in schema.names if name not in (*few, "offset_bytes")
                }
                writer = pq.ParquetWriter(
                    path,
                    schema,
                    compression="zstd",
                    compression_level=1,
                    use_dictionary=few,
                    column_encoding=delta_encoded,
                )
            writer.write_batch(batch, row_group_size=_ROW_GROUP_ROWS)
            rows += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


class _Conversion:
    """Convert blocks of lines to batches; a slow parser handles what Arrow refuses."""

    def __init__(self, columns: tuple[str, ...], value: str) -> None:
        self._columns = columns
        self._names = [value if name == "value" else name for name in columns]
        self._layout = Layout({name: Kind.NAME if name == "priority" else Kind.WHOLE for name in columns})

    def __call__(self, block: Block) -> pa.RecordBatch:
        """Return the batch for a block; raises MalformedError for a malformed line."""
        # Arrow reads 0x10 as 16, which is valid only in the priority: the slow parser takes such and malformed blocks.
        plain = None if b"x" in block.data or b"X" in block.data else self._plain(block.data)
        if plain is None:
            fields = self._layout.parse(block)
            columns = [pa.array(_priority(fields[n]) if n == "priority" else fields[n]) for n in self._columns]
        else:
            columns = plain
        for name, values in zip(self._columns, columns, strict=True):
            _check(name, values)
        codes = columns[2].cast(pa.int8())
        columns[2] = pa.DictionaryArray.from_arrays(codes, pa.array(DIRECTIONS))
        at = self._columns.index("priority") if "priority" in self._columns else None
        if at is not None:
            columns[at] = columns[at].cast(pa.int32())
        return pa.record_batch(columns, names=self._names)

    def _plain(self, data: bytes) -> list[pa.Array] | None:
        """Return the columns of lines with only decimal numbers. Return None if Arrow finds anything else."""
        try:
            table = csv.open_csv(
                pa.BufferReader(data),
                csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(self._columns)),
                csv.ParseOptions(quote_char=False, double_quote=False, escape_char=False),
                csv.ConvertOptions(column_types=dict.fromkeys(self._columns, pa.int64()), null_values=[]),
            ).read_all()
        except pa.ArrowInvalid:
            return None
        return list(table.combine_chunks().to_batches()[0].columns) if table.num_rows else None


def _check(name: str, values: pa.Array) -> None:
    """Raise MalformedError for a number outside the column's range."""
    ends = pc.min_max(values).as_py()
    if ends["min"] < 0:
        raise MalformedError(f"{name} is negative")
    most = {"direction": len(DIRECTIONS) - 1, "priority": 0xFFFF}.get(name)
    if most is not None and ends["max"] > most:
        row = int(np.argmax(values.to_numpy() > most))
        hint = "; if it is an offset, give --fio-2-offset" if name == "priority" else ""
        raise MalformedError(f"{name} is {values[row].as_py()}, more than {most}{hint}", row)


def _priority(texts: pa.DictionaryArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return priorities as numbers; they are decimal or, with `log_prio`, hexadecimal."""
    numbers = []
    for place, text in enumerate(texts.dictionary.to_pylist()):
        if not _PRIORITY.fullmatch(text):
            row = int(np.argmax(texts.indices.to_numpy() == place))
            raise MalformedError(f"priority '{text[:40]}' is not a 16-bit number", row)
        numbers.append(int(text, 0) if text.lower().startswith("0x") else int(text))
    chosen: np.ndarray[tuple[int], np.dtype[np.int64]] = np.array(numbers, np.int64)[texts.indices.to_numpy()]
    return chosen
