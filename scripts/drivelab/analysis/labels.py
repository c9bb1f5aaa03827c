"""What workloads and metrics are called in the tables."""

from __future__ import annotations

import pandas as pd

from drivelab.plan.cell import Cell

UNITS = {
    "iops": "IOPS",
    "bandwidth_mib_s": "MiB/s",
    "mean_latency_us": "us",
    "access_time_us": "us",
    "p99_latency_us": "us",
    "p99999_latency_us": "us",
    "score": "score",
    "duration_s": "s",
}
KINDS = {
    "iops": "speed",
    "bandwidth_mib_s": "speed",
    "mean_latency_us": "time",
    "access_time_us": "time",
    "p99_latency_us": "time",
    "p99999_latency_us": "time",
    "score": "score",
    "duration_s": "time",
}
"""Whether more is better (speed, score) or less is (time)."""


def workload(
    pattern: str, block_size_bytes: int, read_share_pct: int, block_size_max_bytes: float | None = None
) -> str:
    """Name in the words of the PTS, for example `RND 4KiB 65/35`; `composite` for a mix of streams.

    `block_size_max_bytes` is missing (None or NaN) but for a cell with a range of sizes.
    """
    largest = None if pd.isna(block_size_max_bytes) else int(block_size_max_bytes)  # type: ignore[arg-type]
    return Cell(pattern, read_share_pct, block_size_bytes, 1, 1, block_size_max_bytes=largest).workload


def demand(threads: int, queue_depth: int) -> str:
    """What is added to a workload that is measured at several numbers of threads and depths, for example `T4Q32`."""
    return f"T{threads}Q{queue_depth}"


def cell_labels(places: pd.DataFrame) -> list[str]:
    """A name for each row that is unique in its recording and as short as can be.

    `places` has recording, kind, step, pattern, block_size_bytes, read_share_pct, threads, queue_depth, and may have
    block_size_max_bytes.
    The workload is enough as a rule. Threads and depth are added where they vary; then the kind of step,
    then its number, where a workload comes back in a later step.
    """
    largest = places["block_size_max_bytes"] if "block_size_max_bytes" in places else [None] * len(places)
    sizes = zip(places["pattern"], places["block_size_bytes"], places["read_share_pct"], largest, strict=True)
    loads = places[["recording", "threads", "queue_depth"]].assign(name=[workload(*one) for one in sizes])
    several = set(loads.drop_duplicates()[["recording", "name"]].value_counts().loc[lambda counts: counts > 1].index)
    taken: set[tuple[str, str]] = set()
    labels = []
    for place, label in zip(places.itertuples(), loads["name"], strict=True):
        if (place.recording, label) in several:
            label += f" {demand(place.threads, place.queue_depth)}"
        names = (label, f"{label} {place.kind}", f"{label} step {place.step}")
        name = next(name for name in names if (place.recording, name) not in taken)
        taken.add((place.recording, name))
        labels.append(name)
    return labels
