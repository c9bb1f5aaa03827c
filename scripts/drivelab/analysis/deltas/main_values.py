"""Which of the values of a cell that say the same represents them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from drivelab.analysis.deltas.inference import TWINS, compared
from drivelab.core.grouping import grouped
from drivelab.tables.labels import known_by_throughput


@dataclass(frozen=True)
class Value:
    """What identifies a value of a comparison, and what is said about it."""

    place: Hashable
    """Measurement, or compared drive."""
    cell_label: str
    metric: str
    said: Hashable = None
    """Verdict and reasons: a twin with others is shown by itself."""


def main_values(
    values: Sequence[Value], tracked: frozenset[tuple[Hashable, str, str]] = frozenset()
) -> dict[int, list[int]]:
    """Return the positions of the values to show, each with the positions of the twins that say the same.

    IOPS, throughput and mean latency of a cell are one comparison. The main one is the tracked metric, else throughput
    for large blocks and IOPS for small blocks, else the first present. `tracked` has (place, cell label, metric). Cells
    keep their order, and so do the other values of a cell, after the main one.
    """
    cells = grouped(range(len(values)), lambda position: (values[position].place, values[position].cell_label))
    shown: dict[int, list[int]] = {}
    for (place, label), positions in cells.items():
        twins = [position for position in positions if compared(label, values[position].metric) == TWINS[0]]
        known_by = "bandwidth_mib_s" if known_by_throughput(label) else TWINS[0]
        ranked = sorted(twins, key=lambda position: (
            (place, label, values[position].metric) not in tracked, values[position].metric != known_by))  # fmt: skip
        main = (ranked or positions)[0]
        same = [position for position in twins if position != main and values[position].said == values[main].said]
        shown[main] = same
        shown |= {position: [] for position in positions if position != main and position not in same}
    return shown
