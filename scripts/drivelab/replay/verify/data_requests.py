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
from drivelab.replay.outcome import outcome_about, read_outcome, volumes_of
from drivelab.replay.prefill import pieces
from drivelab.replay.survey import union
from drivelab.trace.parquet_schema import VOLUME
from drivelab.trace.statistics.batch import Flags, Ints

DATA = "data"
"""Key of the outcome's metadata: seed and block size of the data, if the replay wrote it to be checked."""
PREFILLED = "prefilled"
"""Key of DATA: the volumes whose reads a prefill with the same seed wrote before, in the order of their targets."""
NAMED = 3
"""Faults of a kind that a result describes."""
NEVER = np.iinfo(np.int64).min
PENDING = np.iinfo(np.int64).max
READ, WRITE, FLUSH, DISCARD, ZEROES = (
    OPERATION_CODES[name] for name in ("read", "write", "flush", "discard", "write-zeroes")
)


class Requests(NamedTuple):
    """Every request of a replay, in schedule order, then those of its prefill; arrays of shape (requests,)."""

    operation: Ints
    begin: Ints
    end: Ints
    issue_ns: Ints
    """NEVER if it was not issued."""
    complete_ns: Ints
    """PENDING without a successful completion."""
    fua: Flags
    here: Flags
    """Whether each is of the volume that is checked; the others count as never issued, and wrote none of its data."""
    prefill: int = 0
    """Requests of the prefill, the last ones. They completed before all others."""

    @property
    def completed(self) -> Flags:
        """Whether each request completed without an error."""
        return np.asarray(self.complete_ns != PENDING, np.bool_)

    @property
    def writes(self) -> Flags:
        """Whether each request is a write of the volume that is checked."""
        return np.asarray((self.operation == WRITE) & self.here, np.bool_)

    @property
    def changes(self) -> Flags:
        """Whether each request was issued and changes data."""
        changing = np.isin(self.operation, (WRITE, DISCARD, ZEROES)) & (self.end > self.begin)
        return np.asarray(changing & (self.issue_ns != NEVER), np.bool_)


class Data(NamedTuple):
    """What determines the data that a replay wrote."""

    seed: int
    block_bytes: int


def data_of(outcome: Path) -> Data:
    """Return what determines a replay's data.

    Raises UserError when the replay did not write data to be checked.
    """
    data = outcome_about(outcome).get(DATA)
    if not data:
        raise UserError(f"{outcome}: the replay did not write data to be checked; replay again with --verify")
    return Data(int(data["seed"]), int(data["block_bytes"]))


def requests_of(outcome: Path, volume: str | None = None) -> Requests:
    """Read the requests of a replay, for the check of one `volume` of several.

    Raises UserError when the outcome cannot be read, and if it is unclear which volume is to be checked.
    """
    names = volumes_of(outcome)
    if volume is not None and not names:
        raise UserError(f"{outcome}: the replay has one volume, without a name; remove --volume")
    if names and volume not in names:
        known = ", ".join(names)
        raise UserError(f"{outcome}: the replay has these volumes: {known}; name the one of the target with --volume")
    columns = ("operation", "fua", "offset_bytes", "length_bytes", "issue_ns", "complete_ns", "error")
    every = read_outcome(outcome, columns if volume is None else (*columns, VOLUME.name))
    here = np.ones(len(every), np.bool_) if volume is None else (every[VOLUME.name] == volume).to_numpy(np.bool_)
    offset, length = (every[name].to_numpy(np.int64) for name in ("offset_bytes", "length_bytes"))
    issued = here & every["issue_ns"].notna().to_numpy()
    completed = here & every["complete_ns"].notna().to_numpy() & (every["error"].to_numpy() == 0)
    issue_ns, complete_ns = (
        every[name].fillna(-1).to_numpy(np.float64).astype(np.int64) for name in ("issue_ns", "complete_ns")
    )
    replayed = Requests(
        operation_codes(every).astype(np.int64),
        offset,
        offset + length,
        np.where(issued, issue_ns, NEVER),
        np.where(completed, complete_ns, PENDING),
        every["fua"].to_numpy(np.bool_),
        here,
    )
    for name in (outcome_about(outcome).get(DATA) or {}).get(PREFILLED, ()):
        of_volume = np.ones(len(every), np.bool_) if not names else (every[VOLUME.name] == name).to_numpy(np.bool_)
        replayed = _prefilled(replayed, of_volume, here=not names or name == volume)
    return replayed


def _prefilled(requests: Requests, of_volume: Flags, *, here: bool) -> Requests:
    """Append the writes of the prefill for the requests of one volume, as drivelab.replay.prefill issued them."""
    reads = np.flatnonzero((requests.operation[: of_volume.size] == READ) & of_volume)
    begin, end = pieces(*union(requests.begin[reads], requests.end[reads]))
    added = Requests(
        np.full(begin.size, WRITE),
        begin,
        end,
        np.full(begin.size, NEVER + 1 if here else NEVER),
        np.full(begin.size, NEVER + 2 if here else PENDING),
        np.zeros(begin.size, np.bool_),
        np.full(begin.size, here),
    )
    columns = zip(requests[:-1], added[:-1], strict=True)
    return Requests(*map(np.concatenate, columns), prefill=requests.prefill + begin.size)  # type: ignore[arg-type,misc]
