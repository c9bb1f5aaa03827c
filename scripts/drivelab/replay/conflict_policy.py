"""Apply the policy for overlapping requests to the records of a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.replay.conflicts import Accesses, Order, Overlaps
from drivelab.replay.engine_records import FURTHER_DEPENDENCY, MORE, OPERATION_CODES, Records, target_numbers
from drivelab.replay.volumes import Volumes
from drivelab.trace.statistics.batch import Flags, Ints, Times

_NAMED = 3
"""Conflicts that a refusal names."""


def accesses_of(operation: Ints, offset_bytes: Ints, length_bytes: Ints) -> Accesses:
    """Return what requests access; `operation` is an index into OPERATIONS."""
    return Accesses(offset_bytes, offset_bytes + length_bytes, operation != OPERATION_CODES["read"])


class ConflictPolicy:
    """Count requests that overlap in the trace and, if chosen, let them wait for each other.

    Raises UserError when a trace without completions is to be refused for overlaps.
    """

    def __init__(self, policy: str, times: Times, volumes: Volumes) -> None:
        self._policy, self._volumes = policy, volumes
        self._overlaps = Overlaps() if times.completed else None
        self._order = Order() if policy == "ordered" else None
        self._named: list[str] = []
        self._first = 0
        self._overlapping, self._waiting = (np.zeros(len(volumes.names), np.int64) for _ in range(2))
        if policy == "refused" and self._overlaps is None:
            raise UserError(
                "the trace has no completions, so it does not show which requests overlap in flight; "
                "choose conflicts as-traced or ordered"
            )

    def apply(self, records: Records, queue_ns: Ints, complete_ns: Ints) -> Records | None:
        """Count the next records of the schedule; return their further dependencies, if they wait for each other.

        Fields of `records` are changed. A request with unknown completion counts as never in flight.
        """
        operation, offset, length = (
            records[name].astype(np.int64) for name in ("operation", "offset_bytes", "length_bytes")
        )
        volume = target_numbers(records).astype(np.int64)
        accesses = accesses_of(operation, offset + self._volumes.bases_bytes[volume], length)
        if self._overlaps is not None:
            overlap = self._overlaps.of(accesses, queue_ns, complete_ns)
            self._overlapping += np.bincount(volume[overlap], minlength=self._overlapping.size)
            self._name(overlap, queue_ns, offset, length, volume)
        index = self._first + np.arange(len(records))
        self._first += len(records)
        return None if self._order is None else self._link(records, index, *self._order.of(accesses, index))

    def finish(self) -> dict[str, Any]:
        """Return the counts; raise UserError when overlaps are refused and the trace has some.

        `overlapping` is None if the trace has no completions. `waiting` is the number of requests that wait for an
        overlapping one. `volumes` has both for each volume, if the trace has several.
        """
        found = int(self._overlapping.sum())
        if self._policy == "refused" and found:
            raise UserError(
                f"{found:,} requests of the trace overlap an earlier one in flight, and one of the two "
                f"changes the data: {'; '.join(self._named)}{'; …' if found > _NAMED else ''}. The drive "
                "decides which of the two comes first; choose conflicts ordered or as-traced"
            )
        each = [
            {"overlapping": None if self._overlaps is None else overlapping, "waiting": waiting}
            for overlapping, waiting in zip(self._overlapping.tolist(), self._waiting.tolist(), strict=True)
        ]
        together = {"overlapping": None if self._overlaps is None else found, "waiting": int(self._waiting.sum())}
        volumes = {"volumes": dict(zip(self._volumes.names, each, strict=True))} if self._volumes.named else {}
        return {"policy": self._policy, **together, **volumes}

    def _name(self, overlap: Flags, queue_ns: Ints, offset: Ints, length: Ints, volume: Ints) -> None:
        for row in np.flatnonzero(overlap)[: _NAMED - len(self._named)]:
            name = f"volume {self._volumes.names[volume[row]]}: " if self._volumes.named else ""
            place = f"{format_size(int(length[row]))} at {int(offset[row])} B"
            self._named.append(f"{name}{place}, {queue_ns[row] / 1e9:.6f} s")

    def _link(self, records: Records, index: Ints, later: Ints, earlier: Ints) -> Records:
        """Store the first dependency of each record in the record, and return the others."""
        row = later - (index[0] if index.size else 0)
        self._waiting += np.bincount(target_numbers(records)[np.unique(row)], minlength=self._waiting.size)
        other = records["after"][row] != earlier + 1
        row, later, earlier = row[other], later[other], earlier[other]
        first = np.ones(row.size, np.bool_)
        first[1:] = row[1:] != row[:-1]
        first &= records["after"][row] == 0
        records["after"][row[first]] = earlier[first] + 1
        records["flags"][row[~first]] |= MORE
        further = np.zeros(int((~first).sum()), FURTHER_DEPENDENCY)
        further["index"], further["after"] = later[~first], earlier[~first] + 1
        return further
