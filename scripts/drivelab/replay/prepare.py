"""Prepare a replay: X.schedule for the engine, X.planned.parquet for evaluation.

Three passes over the trace, in batches: find merged requests, survey the extent, plan each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.replay import survey
from drivelab.replay.choice import ReplayChoice
from drivelab.replay.dependencies import Dependencies
from drivelab.replay.dispatched import Dispatched
from drivelab.replay.mapping import Mapper, MappingReport
from drivelab.replay.planned import PlannedWriter
from drivelab.replay.planner import COLUMNS, Planner
from drivelab.replay.records import ScheduleWriter
from drivelab.replay.timing import Clock, Depths
from drivelab.trace.outputs import refuse_source, writable
from drivelab.trace.schema import TraceFile, open_trace


@dataclass(frozen=True)
class Prepared:
    """A trace prepared for a drive."""

    schedule: Path
    planned: Path
    requests: int
    """Records of the schedule."""
    choice: ReplayChoice
    mapping: MappingReport
    trace_duration_s: float
    """Time from the first queueing to the last queueing or completion."""
    issue_span_s: float
    """Time from the first deadline to the last; without deadlines, from first to last arrival in the trace."""
    idle_removed_s: float
    """Total time cut from gaps above the idle cap."""
    lost: int
    """Events missing from the trace."""
    provenance: Mapping[str, Any]
    """Provenance of the trace."""
    counts: Mapping[str, Mapping[str, int]]

    def planned_counts(self) -> dict[str, dict[str, int]]:
        """Return records and bytes of every operation of OPERATIONS."""
        return {operation: dict(count) for operation, count in self.counts.items()}

    def to_mapping(self) -> dict[str, Any]:
        """Return all but the paths, JSON-able."""
        return {
            "requests": self.requests,
            "choice": self.choice.to_mapping(),
            "timing": self.choice.timing.words(),
            "dependencies": self.choice.dependencies,
            "mapping": self.mapping.to_mapping(),
            "trace_duration_s": self.trace_duration_s,
            "issue_span_s": self.issue_span_s,
            "idle_removed_s": self.idle_removed_s,
            "lost": self.lost,
            "provenance": dict(self.provenance),
            "planned": self.planned_counts(),
        }


def prepare(trace: Path, stem: Path, choice: ReplayChoice, capacity_bytes: int, logical_block_bytes: int) -> Prepared:
    """Write `stem`.schedule and `stem`.planned.parquet for a drive.

    The replay issues requests as the traced drive received them, after merging. A write with a preflush becomes a flush
    and a write that waits for it. Reads and writes longer than LONGEST_TRANSFER_BYTES become several with one deadline.

    Raises UserError when the file is not a trace, is damaged, has no reads or writes, or cannot be replayed on this
    drive with these settings. Then neither file is written.
    """
    schedule, planned = (stem.with_name(f"{stem.name}{suffix}") for suffix in (".schedule", ".planned.parquet"))
    for output in (schedule, planned):
        refuse_source(output, [trace])
    with writable(schedule), open_trace(trace) as file:
        try:
            return _prepare(file, schedule, planned, choice, capacity_bytes, logical_block_bytes)
        except UserError as error:
            text = str(error)
            raise UserError(text if text.startswith(str(trace)) else f"{trace}: {text}") from None


def _prepare(
    file: TraceFile, schedule: Path, planned: Path, choice: ReplayChoice, capacity_bytes: int, block_bytes: int
) -> Prepared:
    requests = Dispatched(file)
    gap_bytes = choice.mapping.gap_bytes if choice.mapping.method == "compact" else None
    surveyed = survey.survey(requests.batches(survey.COLUMNS), block_bytes, gap_bytes)
    if not surveyed.transfers:
        raise UserError("the trace holds neither reads nor writes, so there is nothing to replay")
    clock, dependencies = Clock(choice.timing, surveyed), Dependencies(choice.dependencies, surveyed)
    planner = Planner(
        Mapper(choice.mapping, surveyed, capacity_bytes, block_bytes),
        clock,
        Depths(choice.timing, surveyed),
        dependencies,
        has_deadlines=choice.timing.has_deadlines,
    )
    with PlannedWriter(planned) as rows:
        with ScheduleWriter(schedule, capacity_bytes, block_bytes) as records:
            for batch in requests.batches(COLUMNS):
                for part in planner.plan(batch):
                    records.write(part.records)
                    rows.write(part.rows)
            dependencies.finish()
        span_ns = planner.span_ns if choice.timing.has_deadlines else surveyed.last_queue_ns - surveyed.first_ns
        prepared = Prepared(
            schedule=schedule,
            planned=planned,
            requests=records.count,
            choice=choice,
            mapping=planner.report(file.rows, requests.merged),
            trace_duration_s=(surveyed.last_ns - surveyed.first_ns) / 1e9,
            issue_span_s=span_ns / 1e9,
            idle_removed_s=clock.idle_removed_ns / 1e9,
            lost=sum(dict(file.provenance.get("lost", {})).values()),
            provenance=file.provenance,
            counts=planner.counts(),
        )
        rows.finish(prepared.to_mapping())
    return prepared
