"""What to issue when: the requests of a trace mapped onto a drive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.errors import UserError
from drivelab.trace.characterise import duration_ns, footprint_bytes
from drivelab.trace.schema import read_trace
from drivelab.units import format_size


class ScheduledRequest(NamedTuple):
    """One request of a replay."""

    time_us: int
    """After the first request of the schedule."""
    operation: str
    """`read`, `write`, `flush`, `discard` or `write-zeroes`."""
    offset_bytes: int
    length_bytes: int


@dataclass(frozen=True)
class MappingReport:
    """What it took to bring a trace onto the drive."""

    method: str
    """`exact` when all requests lie within the drive as they are, else `modulo` (offset modulo capacity)."""
    capacity_bytes: int
    logical_block_bytes: int
    requests_in_trace: int
    requests_merged: int
    """Queued requests that the block layer had merged into others before it dispatched them."""
    requests_moved: int
    requests_resized: int
    """Widened to whole logical blocks."""
    footprint_before_bytes: int
    footprint_after_bytes: int


@dataclass(frozen=True)
class Schedule:
    """The requests to issue, in the order of time."""

    frame: pd.DataFrame
    """time_us, busy_us (queue to completion in the trace, 0 where unknown), operation, offset_bytes, length_bytes,
    preflush, fua."""
    duration_s: float
    """Of the trace, from the first queued request to the last completion."""
    mapping: MappingReport
    lost: int
    """Events missing from the trace."""

    def requests(self) -> list[ScheduledRequest]:
        """Requests for an engine; a write with a preflush is a flush and a write at the same time."""
        result: list[ScheduledRequest] = []
        columns = ("time_us", "operation", "offset_bytes", "length_bytes", "preflush")
        for *fields, preflush in zip(*(self.frame[name].tolist() for name in columns), strict=True):
            if preflush:
                result.append(ScheduledRequest(fields[0], "flush", 0, 0))
            result.append(ScheduledRequest(*fields))
        return result

    def planned(self) -> dict[str, Any]:
        """Counts to compare with what an engine issued, and what the mapping did. JSON-able."""
        operation, length = self.frame["operation"], self.frame["length_bytes"]
        flushes = int((operation == "flush").sum()) + int(self.frame["preflush"].sum())
        return {
            "read_ios": int((operation == "read").sum()),
            "write_ios": int((operation == "write").sum()),
            "flush_ios": flushes,
            "discard_ios": int((operation == "discard").sum()),
            "read_bytes": int(length[operation == "read"].sum()),
            "write_bytes": int(length[operation == "write"].sum()),
            "duration_s": self.duration_s,
            "lost": self.lost,
            "mapping": asdict(self.mapping),
        }


def prepare_schedule(trace: Path, capacity_bytes: int, logical_block_bytes: int) -> Schedule:
    """Schedule of a trace file for a drive; raises UserError when the file is no trace or cannot be mapped."""
    table, provenance = read_trace(trace)
    try:
        return make_schedule(table.to_pandas(), provenance, capacity_bytes, logical_block_bytes)
    except UserError as error:
        raise UserError(f"{trace}: {error}") from None


def make_schedule(
    requests: pd.DataFrame, provenance: Mapping[str, Any], capacity_bytes: int, logical_block_bytes: int
) -> Schedule:
    """Schedule of requests (columns of drivelab.trace.schema.REQUESTS) for a drive.

    What is replayed are requests as the origin's drive got them, after merging: with direct I/O nothing merges
    them a second time. They are issued at the time at which their first part was queued.

    Raises UserError when there is nothing to read or write, or a request is longer than the drive.
    """
    merged = merge_as_dispatched(requests)
    operation = merged["operation"]
    moving = merged["length_bytes"].to_numpy(np.int64) > 0
    if not operation.isin(["read", "write"]).any():
        raise UserError("the trace holds neither reads nor writes, so there is nothing to replay")
    offset, length = merged["offset_bytes"].to_numpy(np.int64), merged["length_bytes"].to_numpy(np.int64)
    usable = capacity_bytes // logical_block_bytes * logical_block_bytes
    new_offset, new_length, exact = map_extents(offset, length, usable, logical_block_bytes)
    transfers = operation.isin(["read", "write"]).to_numpy()
    start_ns = int(merged["queue_ns"].iloc[0])
    busy_ns = (merged["complete_ns"] - merged["queue_ns"]).fillna(0)
    frame = pd.DataFrame(
        {
            "time_us": (merged["queue_ns"] - start_ns) // 1000,
            "busy_us": (busy_ns // 1000).astype(np.int64),
            "operation": operation,
            "offset_bytes": new_offset,
            "length_bytes": new_length,
            "preflush": merged["preflush"],
            "fua": merged["fua"],
        }
    ).reset_index(drop=True)
    mapping = MappingReport(
        method="exact" if exact else "modulo",
        capacity_bytes=capacity_bytes,
        logical_block_bytes=logical_block_bytes,
        requests_in_trace=len(requests),
        requests_merged=len(requests) - len(merged),
        requests_moved=int((moving & (new_offset // logical_block_bytes != offset // logical_block_bytes)).sum()),
        requests_resized=int((new_length != length).sum()),
        footprint_before_bytes=footprint_bytes(offset[transfers], length[transfers]),
        footprint_after_bytes=footprint_bytes(new_offset[transfers], new_length[transfers]),
    )
    lost = sum(dict(provenance.get("lost", {})).values())
    return Schedule(frame, duration_ns(requests) / 1e9, mapping, lost)


def merge_as_dispatched(requests: pd.DataFrame) -> pd.DataFrame:
    """Requests as dispatched: those that the block layer merged are one, where they adjoin each other."""
    frame = requests.assign(operation=requests["operation"].astype(str))
    whole = frame["dispatch_id"].notna() & (frame["pieces"] == 1) & (frame["length_bytes"] > 0)
    mergeable = whole & ~frame["preflush"] & ~frame["fua"]
    alone = frame[~mergeable]
    ordered = frame[mergeable].sort_values(["dispatch_id", "offset_bytes"], kind="stable")
    before = ordered.shift()
    follows = (ordered["dispatch_id"] == before["dispatch_id"]) & (
        ordered["offset_bytes"] == before["offset_bytes"] + before["length_bytes"]
    )
    group = (~follows).cumsum()
    first = ordered.groupby(group).first()
    first["queue_ns"] = ordered.groupby(group)["queue_ns"].min()
    first["complete_ns"] = ordered.groupby(group)["complete_ns"].max()
    first["length_bytes"] = ordered.groupby(group)["length_bytes"].sum()
    return pd.concat([first, alone]).sort_values("queue_ns", kind="stable", ignore_index=True)


def map_extents(
    offset_bytes: npt.NDArray[np.int64], length_bytes: npt.NDArray[np.int64], usable_bytes: int, block_bytes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], bool]:
    """Extents in whole blocks within `usable_bytes`, and whether none had to be moved.

    If all fit they stay where they are; else all are taken modulo the capacity, and what would reach beyond the
    end is moved back as a whole. Extents of length 0 (flushes) stay. Raises UserError for one longer than the drive.
    """
    start = offset_bytes // block_bytes * block_bytes
    end = -(-(offset_bytes + length_bytes) // block_bytes) * block_bytes
    length = np.where(length_bytes > 0, end - start, 0)
    if length.size and int(length.max()) > usable_bytes:
        raise UserError(
            f"a request of {format_size(int(length.max()))} is longer than the drive of {format_size(usable_bytes)}; "
            "replay on a larger drive"
        )
    start = np.where(length_bytes > 0, start, offset_bytes)
    if not length.size or int((start + length).max()) <= usable_bytes:
        return start, length, True
    return np.minimum(start % usable_bytes, usable_bytes - length), length, False
