"""What workloads and metrics are called in the tables."""

from __future__ import annotations

import pandas as pd

from drivelab.plan.cell import Cell

UNITS = {
    "iops": "IOPS",
    "bandwidth_mib_s": "MiB/s",
    "mean_latency_us": "us",
    "p99_latency_us": "us",
    "duration_s": "s",
}
KINDS = {
    "iops": "speed",
    "bandwidth_mib_s": "speed",
    "mean_latency_us": "time",
    "p99_latency_us": "time",
    "duration_s": "time",
}
"""Whether more is better (speed, score) or less is (time)."""


def workload(pattern: str, block_size_bytes: int, read_share_pct: int) -> str:
    """Name in the words of the PTS, for example `RND 4KiB 65/35`."""
    return Cell(pattern, read_share_pct, block_size_bytes, threads=1, queue_depth=1).workload


def cell_labels(places: pd.DataFrame) -> list[str]:
    """A name for each row that is unique in its recording and as short as can be.

    `places` has recording, kind, step, pattern, block_size_bytes, read_share_pct, threads, queue_depth.
    The workload is enough as a rule. Threads and depth are added where they vary; then the kind of step,
    then its number, where a workload comes back in a later step.
    """
    columns = ["recording", "pattern", "block_size_bytes", "read_share_pct", "threads", "queue_depth"]
    loads = places[columns].drop_duplicates()
    varies = loads.groupby(columns[:4])["threads"].transform("size") > 1
    demands = set(loads[varies].itertuples(index=False, name=None))
    taken: set[tuple[str, str]] = set()
    labels = []
    for place in places.itertuples():
        label = workload(place.pattern, place.block_size_bytes, place.read_share_pct)
        if tuple(getattr(place, column) for column in columns) in demands:
            label += f" T{place.threads}Q{place.queue_depth}"
        names = (label, f"{label} {place.kind}", f"{label} step {place.step}")
        name = next(name for name in names if (place.recording, name) not in taken)
        taken.add((place.recording, name))
        labels.append(name)
    return labels
