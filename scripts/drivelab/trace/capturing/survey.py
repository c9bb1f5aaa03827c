"""Count the events in the files of a capture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from drivelab.trace.capturing.capture_report import Counts, counted_completions
from drivelab.trace.decode import count_events
from drivelab.trace.records import cpu_files


def survey(base: Path) -> Counts:
    """Count the events of files `BASE.blktrace.CPU`; raise UserError if invalid."""
    by_cpu: dict[int, int] = {}
    ends: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for cpu, path in cpu_files(base).items():
        counts = count_events([path])
        by_cpu[cpu] = counts.events
        ends.update(data=counts.data_completions, empty=counts.empty_completions, empty_queued=counts.empty_queued)
        lost["sequence_gaps"] += counts.sequence_gaps
        lost["truncated_files"] += counts.truncated_files
    completions = counted_completions(ends["data"], ends["empty"], ends["empty_queued"])
    return Counts(by_cpu, completions, {kind: count for kind, count in lost.items() if count})
