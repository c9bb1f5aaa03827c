"""Filter requests of a trace by operation, process and address."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.core.units import format_size, parse_duration, parse_size
from drivelab.trace.derive.groups import DispatchGroups
from drivelab.trace.parquet_schema import OPERATIONS, TraceFile
from drivelab.trace.statistics.batch import Batch, Flags

_ZERO = re.compile(r"\s*0+(\.0*)?\s*(us|ms|s|min|h|d)?\s*")
_WHOLE = re.compile(r"\s*\d+\s*")


def time_ns(text: str) -> int:
    """Parse a time such as `1.5s`, `200ms`, `3min` or `0` to ns; raise UserError."""
    if _ZERO.fullmatch(text):
        return 0
    return round(parse_duration(text) * 1e9)


def byte_range(text: str) -> tuple[int, int | None]:
    """Parse `FROM..TO` to the first byte and the byte after the last.

    FROM and TO are sizes or numbers of bytes; either may be omitted. Raises UserError for other texts and empty ranges.
    """
    first, dots, last = text.partition("..")
    if not dots or not (first.strip() or last.strip()):
        raise UserError(f"range '{text}' is not FROM..TO; write it like 0..1GiB, 4096.. or ..512MiB")
    low = _bytes(first) if first.strip() else 0
    high = _bytes(last) if last.strip() else None
    if high is not None and high <= low:
        raise UserError(f"range '{text}' is empty: it ends before it begins; give a larger end")
    return low, high


def _bytes(text: str) -> int:
    return int(text) if _WHOLE.fullmatch(text) else parse_size(text.strip())


def operations(texts: Sequence[str]) -> tuple[str, ...]:
    """Parse lists such as `read,write`, each operation once; raise UserError."""
    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        if name not in OPERATIONS:
            raise UserError(f"operation '{name}' is unknown; choose from {', '.join(OPERATIONS)}")
    return tuple(dict.fromkeys(names))


def show_ns(time_ns: int) -> str:
    """Format a time exactly: `1.5 s`, `200 ms`, `3.25 us`."""
    if not time_ns:
        return "0 s"
    for unit, factor in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(time_ns) >= factor:
            whole, rest = divmod(time_ns, factor)
            digits = f"{rest:0{len(str(factor)) - 1}}".rstrip("0")
            return f"{whole}.{digits} {unit}" if digits else f"{whole} {unit}"
    return f"{time_ns} ns"


def show_range(low: int, high: int | None) -> str:
    """Format a byte range as `byte_range` parses it."""
    return f"{format_size(low)}.." + ("" if high is None else format_size(high))


@dataclass(frozen=True)
class Criteria:
    """Criteria of a filter; a request must match one value of each given criterion."""

    operations: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    range_bytes: tuple[int, int | None] | None = None
    """First byte and the byte after the last. A request matches if it touches the range; a flush never does."""

    def as_dict(self) -> dict[str, Any]:
        """Return the given criteria, for JSON."""
        given = {"operation": self.operations, "process": self.processes, "pid": self.pids}
        criteria: dict[str, Any] = {name: list(values) for name, values in given.items() if values}
        return criteria if self.range_bytes is None else {**criteria, "range": show_range(*self.range_bytes)}


class Filter:
    """Keep the requests that match, or with `inverted` the others; keep all times.

    Raises UserError when no criterion is given.
    """

    name = "filter"

    def __init__(self, criteria: Criteria, *, inverted: bool = False) -> None:
        if not criteria.as_dict():
            raise UserError("no filter criterion; give an operation, a process, a pid or a range")
        self.criteria, self.inverted = criteria, inverted
        self._groups = DispatchGroups()
        self._dropped_requests = np.zeros(len(OPERATIONS), np.int64)
        self._dropped_bytes = np.zeros(len(OPERATIONS), np.int64)
        self._found: Counter[str] = Counter()
        self._across = 0

    def begin(self, trace: TraceFile, path: Path) -> None:
        pass

    def apply(self, requests: pa.RecordBatch) -> pa.RecordBatch:
        batch = Batch(requests)
        kept = self._matches(batch, requests) ^ self.inverted
        self._groups.add(batch, kept)
        dropped = batch.operation[~kept]
        self._dropped_requests += np.bincount(dropped, minlength=len(OPERATIONS))
        np.add.at(self._dropped_bytes, dropped, batch.length_bytes[~kept])
        return requests.filter(pa.array(kept))

    def facts(self) -> dict[str, Any]:
        """Return parameters and counts.

        `found`: requests of each requested name or number, ignoring other criteria. `across_the_edge`: matching
        requests that extend beyond the range.
        """
        dropped = zip(OPERATIONS, self._dropped_requests.tolist(), self._dropped_bytes.tolist(), strict=True)
        facts = {
            **self.criteria.as_dict(),
            "not": self.inverted,
            "dropped": {name: {"requests": n, "bytes": size} for name, n, size in dropped if n},
            "found": {name: self._found[name] for name in self._requested()},
            "dispatches_cut_apart": self._groups.cut_apart,
        }
        return facts if self.criteria.range_bytes is None else {**facts, "across_the_edge": self._across}

    def changes(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        # The filter does not change the application's duration.
        return {"duration_s": provenance.get("duration_s")}

    def nothing(self) -> str:
        absent = [name for name in self._requested() if not self._found[name]]
        return f"it has no request of {', '.join(absent)}" if absent else "none matches all criteria"

    def _requested(self) -> list[str]:
        criteria = self.criteria
        return [
            *(f"operation {name}" for name in criteria.operations),
            *(f"process {name}" for name in criteria.processes),
            *(f"pid {number}" for number in criteria.pids),
        ]

    def _matches(self, batch: Batch, requests: pa.RecordBatch) -> Flags:
        criteria, matches = self.criteria, np.ones(batch.rows, np.bool_)
        if criteria.operations:
            matches &= self._matching(
                "operation", batch.operation, {name: OPERATIONS.index(name) for name in criteria.operations}
            )
        if criteria.processes:
            column = requests.column("process")
            codes = np.asarray(column.indices.to_numpy(zero_copy_only=False))
            names = column.dictionary.to_pylist()
            numbers = {name: names.index(name) if name in names else -1 for name in criteria.processes}
            matches &= self._matching("process", codes, numbers)
        if criteria.pids:
            matches &= self._matching("pid", batch.ints("pid"), {str(number): number for number in criteria.pids})
        if criteria.range_bytes is not None:
            low, high = criteria.range_bytes
            matches &= (batch.length_bytes > 0) & (batch.end_bytes > low)
            beyond = batch.offset_bytes < low
            if high is not None:
                matches &= batch.offset_bytes < high
                beyond |= batch.end_bytes > high
            self._across += int((matches & beyond).sum())
        return matches

    def _matching(self, kind: str, values: np.ndarray[Any, Any], criteria: Mapping[str, int]) -> Flags:
        for name, value in criteria.items():
            self._found[f"{kind} {name}"] += int((values == value).sum())
        return np.isin(values, list(criteria.values()))
