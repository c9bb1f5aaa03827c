"""Count flags, errors, splits, requeues and missing events by operation."""

from __future__ import annotations

import numpy as np

from drivelab.trace.schema import FLAGS, OPERATIONS
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags, Ints

COLUMNS = (*FLAGS, "errors", "split", "requeued", "without_dispatch", "without_completion")


class Operations:
    """Counts by operation, batch by batch."""

    def __init__(self) -> None:
        self.counts: dict[str, Ints] = {name: np.zeros(len(OPERATIONS), np.int64) for name in COLUMNS}
        self.backwards = 0
        self.errors: dict[int, int] = {}

    def add(self, batch: Batch) -> None:
        error = batch.ints("error")
        selections: dict[str, Flags] = {
            **{name: batch.flag(name) for name in FLAGS},
            "errors": error != 0,
            "split": batch.ints("pieces") > 1,
            "requeued": batch.ints("requeues") > 0,
            "without_dispatch": batch.dispatch_ns == UNKNOWN,
            "without_completion": batch.complete_ns == UNKNOWN,
        }
        for name, chosen in selections.items():
            self.counts[name] += np.bincount(batch.operation[chosen], minlength=len(OPERATIONS))
        self.backwards += batch.backwards
        for code, count in zip(*np.unique(error[error != 0], return_counts=True), strict=True):
            self.errors[int(code)] = self.errors.get(int(code), 0) + int(count)

    def total(self, name: str) -> int:
        return int(self.counts[name].sum())
