"""Find requests that overlap an earlier one in flight by address.

Two requests conflict if they share bytes and at least one of them writes, discards or zeroes. The drive decides which
of the two comes first.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.replay import compiled
from drivelab.replay.engine_records import OPERATION_CODES
from drivelab.trace.parquet_schema import BATCH_ROWS, OPERATIONS
from drivelab.trace.statistics.batch import Ints


class Overlaps:
    """Count requests that begin while a conflicting earlier one is in flight, batch by batch.

    Memory holds the requests in flight.
    """

    def __init__(self) -> None:
        nothing = np.zeros(0, np.int64)
        self._flying = (nothing, nothing, np.zeros(0, np.bool_), nothing)
        """Begins and ends by address, whether each changes data, and when it ends."""
        self.count = 0

    def add(self, operation: Ints, offset_bytes: Ints, length_bytes: Ints, start_ns: Ints, end_ns: Ints) -> None:
        """Add requests in the order of `start_ns`; `operation` is an index into OPERATIONS.

        A request with an end before its start is never in flight.
        """
        changes = operation != OPERATION_CODES["read"]
        new = (offset_bytes, offset_bytes + length_bytes, changes, end_ns)
        begin, end, changes, ends_ns = (np.concatenate(both) for both in zip(self._flying, new, strict=True))
        self.count += int(compiled.overlaps(begin, end, changes, ends_ns, start_ns).sum())
        if start_ns.size:
            kept = ends_ns > start_ns[-1]
            self._flying = (begin[kept], end[kept], changes[kept], ends_ns[kept])


def overlaps(requests: pd.DataFrame) -> int | None:
    """Return how many requests of an outcome began while a conflicting one was in flight, or None if none was issued.

    A request that never completed stays in flight.
    """
    columns = ["operation", "offset_bytes", "length_bytes", "issue_ns", "complete_ns"]
    issued = requests.loc[requests["issue_ns"].notna(), columns].sort_values("issue_ns", kind="stable")
    seen, never_ns = Overlaps(), np.iinfo(np.int64).max
    for first in range(0, len(issued), BATCH_ROWS):
        rows = issued.iloc[first : first + BATCH_ROWS]
        operation = pd.Categorical(rows["operation"], categories=OPERATIONS).codes.astype(np.int64)
        complete_ns = rows["complete_ns"]
        end_ns = np.where(complete_ns.isna(), never_ns, complete_ns.fillna(0).astype(np.int64))
        offset_bytes, length_bytes, issue_ns = (
            rows[name].to_numpy(np.int64) for name in ("offset_bytes", "length_bytes", "issue_ns")
        )
        seen.add(operation, offset_bytes, length_bytes, issue_ns, end_ns)
    return seen.count if len(issued) else None
