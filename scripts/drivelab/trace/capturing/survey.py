"""Counts of the events in the files of a capture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from drivelab.trace.capturing.report import Counts
from drivelab.trace.decode import count_events
from drivelab.trace.records import cpu_files


def survey(base: Path) -> Counts:
    """Counts of the files `BASE.blktrace.CPU`; raises UserError for files that are no such records."""
    by_cpu: dict[int, int] = {}
    completions = 0
    lost: Counter[str] = Counter()
    for cpu, path in cpu_files(base).items():
        counts = count_events([path])
        by_cpu[cpu] = counts.events
        completions += counts.data_completions
        lost["sequence_gaps"] += counts.sequence_gaps
        lost["truncated_files"] += counts.truncated_files
    return Counts(by_cpu, completions, {kind: count for kind, count in lost.items() if count})
