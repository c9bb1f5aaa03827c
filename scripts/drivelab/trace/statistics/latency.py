"""Measure times between events of a request: Q2C, Q2D and D2C as in btt."""

from __future__ import annotations

import pandas as pd

from drivelab.trace.schema import OPERATIONS
from drivelab.trace.statistics.batch import UNKNOWN, Batch
from drivelab.trace.statistics.bins import LogHistogram

PHASES = ("Q2C", "Q2D", "D2C")
"""Queued to completed, queued to dispatched, dispatched to completed."""


class Latency:
    """Histograms by operation and phase, without requests that lack an event."""

    def __init__(self) -> None:
        self.histograms = {(name, phase): LogHistogram() for name in OPERATIONS for phase in PHASES}

    def add(self, batch: Batch) -> None:
        times = {"Q": batch.queue_ns, "D": batch.dispatch_ns, "C": batch.complete_ns}
        for phase in PHASES:
            begin, end = times[phase[0]], times[phase[2]]
            known = (begin != UNKNOWN) & (end != UNKNOWN)
            for number, operation in enumerate(OPERATIONS):
                chosen = known & (batch.operation == number)
                self.histograms[operation, phase].add((end - begin)[chosen])

    def frame(self) -> pd.DataFrame:
        """Return a row for each non-empty bin."""
        rows = [
            (operation, phase, *filled_bin)
            for (operation, phase), histogram in self.histograms.items()
            for filled_bin in histogram.bins()
        ]
        return pd.DataFrame(rows, columns=["operation", "phase", "low_ns", "high_ns", "requests"])
