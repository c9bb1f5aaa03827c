"""Some requests of a trace, by what they do, who made them, and where they go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.derive.groups import DispatchGroups
from drivelab.trace.derive.values import show_range
from drivelab.trace.schema import OPERATIONS, TraceFile
from drivelab.trace.statistics.batch import Batch, Flags


@dataclass(frozen=True)
class Criteria:
    """A request suits when it suits each criterion that is given, by any of its values."""

    operations: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    range_bytes: tuple[int, int | None] | None = None
    """First byte and the one after the last; a request suits when it touches one of them, so a flush never does."""

    def as_dict(self) -> dict[str, Any]:
        """What is given, for JSON."""
        given = {"operation": self.operations, "process": self.processes, "pid": self.pids}
        said: dict[str, Any] = {name: list(values) for name, values in given.items() if values}
        return said if self.range_bytes is None else {**said, "range": show_range(*self.range_bytes)}


class Filter:
    """Keeps the requests that suit, or with `inverted` the others; times stay as they are.

    Raises UserError when no criterion is given.
    """

    name = "filter"

    def __init__(self, criteria: Criteria, *, inverted: bool = False) -> None:
        if not criteria.as_dict():
            raise UserError("nothing says what to keep; give an operation, a process, a pid or a range")
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
        kept = self._suits(batch, requests) ^ self.inverted
        self._groups.add(batch, kept)
        gone = batch.operation[~kept]
        self._dropped_requests += np.bincount(gone, minlength=len(OPERATIONS))
        np.add.at(self._dropped_bytes, gone, batch.length_bytes[~kept])
        return requests.filter(pa.array(kept))

    def facts(self) -> dict[str, Any]:
        """`found`: requests of each name or number that was asked for, other criteria aside.

        `across_the_edge`: those that suit and reach out of the range.
        """
        dropped = zip(OPERATIONS, self._dropped_requests.tolist(), self._dropped_bytes.tolist(), strict=True)
        facts = {
            **self.criteria.as_dict(),
            "not": self.inverted,
            "dropped": {name: {"requests": n, "bytes": size} for name, n, size in dropped if n},
            "found": {name: self._found[name] for name in self._asked()},
            "dispatches_cut_apart": self._groups.cut_apart,
        }
        return facts if self.criteria.range_bytes is None else {**facts, "across_the_edge": self._across}

    def changes(self, provenance: Mapping[str, Any]) -> dict[str, Any]:
        # The application took as long as it did, whichever of its requests are looked at.
        return {"duration_s": provenance.get("duration_s")}

    def nothing(self) -> str:
        absent = [name for name in self._asked() if not self._found[name]]
        return f"it has no request of {', '.join(absent)}" if absent else "no request is of the kind that was asked for"

    def _asked(self) -> list[str]:
        wanted = self.criteria
        return [
            *(f"operation {name}" for name in wanted.operations),
            *(f"process {name}" for name in wanted.processes),
            *(f"pid {number}" for number in wanted.pids),
        ]

    def _suits(self, batch: Batch, requests: pa.RecordBatch) -> Flags:
        wanted, suits = self.criteria, np.ones(batch.rows, np.bool_)
        if wanted.operations:
            suits &= self._among(
                "operation", batch.operation, {one: OPERATIONS.index(one) for one in wanted.operations}
            )
        if wanted.processes:
            column = requests.column("process")
            codes = np.asarray(column.indices.to_numpy(zero_copy_only=False))
            names = column.dictionary.to_pylist()
            numbers = {name: names.index(name) if name in names else -1 for name in wanted.processes}
            suits &= self._among("process", codes, numbers)
        if wanted.pids:
            suits &= self._among("pid", batch.ints("pid"), {str(number): number for number in wanted.pids})
        if wanted.range_bytes is not None:
            low, high = wanted.range_bytes
            suits &= (batch.length_bytes > 0) & (batch.end_bytes > low)
            beyond = batch.offset_bytes < low
            if high is not None:
                suits &= batch.offset_bytes < high
                beyond |= batch.end_bytes > high
            self._across += int((suits & beyond).sum())
        return suits

    def _among(self, kind: str, values: np.ndarray[Any, Any], wanted: Mapping[str, int]) -> Flags:
        for name, value in wanted.items():
            self._found[f"{kind} {name}"] += int((values == value).sum())
        return np.isin(values, list(wanted.values()))
