"""Requests of a verified replay, as the checks of its data need them.

One write follows another if it was issued after the other completed; of writes in flight together any may be the last.
The engine records an issue before it submits, and a completion after it saw it, so this never claims too much.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from drivelab.core.errors import UserError
from drivelab.replay.engine_records import OPERATION_CODES
from drivelab.replay.evaluation.requests import operation_codes
from drivelab.replay.outcome import outcome_about, read_outcome
from drivelab.trace.statistics.batch import Flags, Ints

DATA = "data"
"""Key of the outcome's metadata: seed and block size of the data, if the replay wrote it to be checked."""
NAMED = 3
"""Faults of a kind that a result describes."""
NEVER = np.iinfo(np.int64).min
PENDING = np.iinfo(np.int64).max
READ, WRITE, FLUSH, DISCARD, ZEROES = (
    OPERATION_CODES[name] for name in ("read", "write", "flush", "discard", "write-zeroes")
)


class Requests(NamedTuple):
    """Every request of a replay, in schedule order; arrays of shape (requests,)."""

    operation: Ints
    begin: Ints
    end: Ints
    issue_ns: Ints
    """NEVER if it was not issued."""
    complete_ns: Ints
    """PENDING without a successful completion."""
    fua: Flags

    @property
    def completed(self) -> Flags:
        """Whether each request completed without an error."""
        return np.asarray(self.complete_ns != PENDING, np.bool_)

    @property
    def changes(self) -> Flags:
        """Whether each request was issued and changes data."""
        changing = np.isin(self.operation, (WRITE, DISCARD, ZEROES)) & (self.end > self.begin)
        return np.asarray(changing & (self.issue_ns != NEVER), np.bool_)


def data_of(outcome: Path) -> tuple[int, int]:
    """Return seed and block size of a replay's data.

    Raises UserError when the replay did not write data to be checked.
    """
    data = outcome_about(outcome).get(DATA)
    if not data:
        raise UserError(f"{outcome}: the replay did not write data to be checked; replay again with --verify")
    return int(data["seed"]), int(data["block_bytes"])


def requests_of(outcome: Path) -> Requests:
    """Read the requests of a replay. Raises UserError when the outcome cannot be read."""
    every = read_outcome(
        outcome, ("operation", "fua", "offset_bytes", "length_bytes", "issue_ns", "complete_ns", "error")
    )
    offset, length = (every[name].to_numpy(np.int64) for name in ("offset_bytes", "length_bytes"))
    issued = every["issue_ns"].notna().to_numpy()
    completed = every["complete_ns"].notna().to_numpy() & (every["error"].to_numpy() == 0)
    issue_ns, complete_ns = (
        every[name].fillna(-1).to_numpy(np.float64).astype(np.int64) for name in ("issue_ns", "complete_ns")
    )
    return Requests(
        operation_codes(every).astype(np.int64),
        offset,
        offset + length,
        np.where(issued, issue_ns, NEVER),
        np.where(completed, complete_ns, PENDING),
        every["fua"].to_numpy(np.bool_),
    )
