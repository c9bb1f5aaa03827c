"""Model of a format and of its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.trace.parquet_schema import LONGEST_REQUEST_BYTES, OPERATIONS

if TYPE_CHECKING:
    from drivelab.trace.formats.common.source import Source
    from drivelab.trace.parquet_schema import TraceFile

NO_REQUEST = -1
"""Operation of a documented row other than a request; it is counted and skipped."""
LARGEST = (1 << 63) - 1
LONGEST_NS = 1 << 62
"""Longest time span, 146 years: the sum of two fits into 64 bits."""
MOST_TICKS = 1 << 62
"""Largest time of a format, so that the difference of two fits into 64 bits."""

Whole = npt.NDArray[np.int64]


class MalformedError(Exception):
    """Why lines are malformed; the reason is exact for a single line."""


@dataclass(kw_only=True)
class ImportReport:
    """Report of an import; all counts are lines or records of the file."""

    format: str = ""
    volume: str = ""
    """Name of the volume; empty if the format has none."""
    rows: int = 0
    """Requests in the trace."""
    operations: dict[str, int] = field(default_factory=Counter)
    malformed: int = 0
    malformed_first: list[dict[str, Any]] = field(default_factory=list)
    """Number and reason of the first ten malformed lines."""
    skipped: dict[str, int] = field(default_factory=Counter)
    """Documented lines other than requests, by kind."""
    unmatched: dict[str, int] = field(default_factory=Counter)
    """Unmatched events, for formats of events."""
    other_volumes: int = 0
    """Requests of other volumes."""
    out_of_order: int = 0
    """Requests that followed one with a later time, and were sorted."""
    zero_length: int = 0
    """Reads and writes of length 0."""
    unterminated: bool = False
    """The last line has no newline. It was imported, but the file may be cut off there."""
    first_event: str | None = None
    """UTC, if the format has absolute times."""
    duration_s: float = 0.0
    """Time from the first request to the last event."""
    time_resolution_ns: int | None = None
    begins: str | None = None
    """`issue` for a file of events without queue events: requests begin at their issue."""


@dataclass(kw_only=True)
class Tally(ImportReport):
    """The report of an import while the file is read. A format may set the resolution, if coarser than its own."""

    path: Path
    limit: int
    """Most malformed lines."""
    operations: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    unmatched: Counter[str] = field(default_factory=Counter)
    unit: str = "line"
    volumes: dict[str, int] = field(default_factory=dict)
    """Requests of each volume, by the first appearance; the name is empty if the format has none."""
    first_tick: int = 0
    """Time of the first request, in ticks of the format."""
    last_ns: int = 0
    """Time of the last event, from the first request."""

    def add(self, number: int, reason: str) -> None:
        """Count a malformed line; raise UserError beyond the limit."""
        self.malformed += 1
        if len(self.malformed_first) < 10:
            self.malformed_first.append({self.unit: number, "reason": reason})
        if self.malformed <= self.limit:
            return
        remedy = f"fix the file, or allow more malformed {self.unit}s with --max-malformed N"
        if self.limit == 0:
            raise UserError(f"{self.path}: {self.unit} {number} is malformed: {reason}; {remedy}")
        shown = ", ".join(f"{line[self.unit]} ({line['reason']})" for line in self.malformed_first)
        raise UserError(f"{self.path}: more than {self.limit} malformed {self.unit}s, the first are {shown}; {remedy}")


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a trace format is called, and the meaning of its times. Its source is beside its declaration."""

    name: str
    title: str
    columns: str
    """The columns of a line, or the fields of a record."""
    units: str
    time_resolution_ns: int = 1
    """Resolution of the times, from the format or its documentation."""
    tick_ns: int = 1
    """Unit of the times."""
    epoch: int | None = None
    """Year at whose beginning the time is 0, in UTC, if the format has absolute times."""


@dataclass(frozen=True, kw_only=True)
class Format(Description):
    """A trace format that can be read."""

    looks_like: Callable[[bytes], bool]
    """Returns whether a file that begins with these bytes can have this format."""
    read: Callable[[Source, Tally], Iterator[pa.RecordBatch]]
    """Yields batches as built by `rows`, in the file's order."""
    write: Callable[[TraceFile, BinaryIO, str], ExportReport] | None = None
    """Writes a trace under the given volume name."""


@dataclass(frozen=True)
class ExportReport:
    """Report of an export: requests in the trace, and losses by kind."""

    format: str
    requests: int
    dropped: dict[str, int]
    altered: dict[str, int]


def rows(
    *,
    line: Whole,
    time: Whole,
    operation: npt.NDArray[np.int8],
    offset_bytes: Whole,
    length_bytes: Whole,
    **more: Any,
) -> pa.RecordBatch:
    """Build a batch of requests.

    `line` is the number of the line or record, `time` the queue time in ticks of the format, `operation` an index into
    OPERATIONS or NO_REQUEST. `more` may have `response_ns` and `dispatch_delay_ns` (time from queue to completion and
    to dispatch, null if unknown), `volume`, and columns of REQUESTS (flags, process, pid, cpu, error).
    Raises MalformedError when a request is too long or ends beyond 2^63 bytes, a response exceeds LONGEST_NS, or a
    time exceeds MOST_TICKS. A flush has no extent.
    """
    flush = operation == OPERATIONS.index("flush")
    if flush.any():
        offset_bytes, length_bytes = np.where(flush, 0, offset_bytes), np.where(flush, 0, length_bytes)
    if len(time) and (int(time.max()) > MOST_TICKS or int(time.min()) < -MOST_TICKS):
        raise MalformedError("the time is beyond 2^62 of its unit")
    if len(line) and (offset_bytes > LARGEST - length_bytes).any():
        raise MalformedError("the request ends beyond 2^63 bytes")
    if len(line) and (length_bytes >= LONGEST_REQUEST_BYTES).any():
        raise MalformedError("the request is longer than 2^58 bytes")
    if "response_ns" in more and (pc.max(pa.array(more["response_ns"])).as_py() or 0) > LONGEST_NS:
        raise MalformedError("the response time is longer than 146 years")
    known = {"line": line, "time": time, "operation": operation}
    return pa.RecordBatch.from_pydict({**known, "offset_bytes": offset_bytes, "length_bytes": length_bytes, **more})


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Join batches with the same columns into one."""
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return table.to_batches()[0] if table.num_rows else batches[0]


def scaled(values: Whole, factor: int, what: str) -> Whole:
    """Multiply values by a factor; raise MalformedError on overflow."""
    if len(values) and int(values.max()) > LARGEST // factor:
        raise MalformedError(f"{what} times {factor} is beyond 2^63")
    return values * factor


def operation_codes(names: pa.DictionaryArray, meanings: Mapping[str, str | None], what: str) -> npt.NDArray[np.int8]:
    """Return each name's index into OPERATIONS; a meaning of None is NO_REQUEST.

    Raises MalformedError for other names.
    """
    codes = []
    for name in names.dictionary.to_pylist():
        if name not in meanings:
            raise MalformedError(f"{what} '{name}' is not one of {', '.join(known or 'blank' for known in meanings)}")
        meaning = meanings[name]
        codes.append(NO_REQUEST if meaning is None else OPERATIONS.index(meaning))
    chosen: npt.NDArray[np.int8] = np.array(codes, np.int8)[names.indices.to_numpy()]
    return chosen


_LETTERS = re.compile(r"(F?)(WZ|DE|[RWDNF])([FASM]*)")
_OPERATIONS = {"R": "read", "W": "write", "D": "discard", "DE": "discard", "WZ": "write-zeroes", "F": "flush", "N": ""}
_AFTER = {"F": "fua", "A": "readahead", "S": "sync", "M": "meta"}


@lru_cache(1024)
def parse_flags(letters: str) -> tuple[str, frozenset[str]]:
    """Return operation (empty for `N`, no data) and flags of the kernel's letters, such as `WFS`.

    An F before the direction is `preflush`, after it FUA. Raises MalformedError for other letters.
    """
    match = _LETTERS.fullmatch(letters)
    if match is None:
        raise MalformedError(f"'{letters[:20]}' is not an operation with flags")
    flags = {_AFTER[letter] for letter in match[3]} | ({"preflush"} if match[1] else set())
    return _OPERATIONS[match[2]], frozenset(flags)
