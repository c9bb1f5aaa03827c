"""What a trace holds, in one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

FOOTPRINT_BLOCK_BYTES = 4096


def characterise(requests: pd.DataFrame, provenance: Mapping[str, Any], trace: str) -> pd.DataFrame:
    """One row of the table `traces` for a trace named `trace`.

    `requests` has the columns of drivelab.trace.schema.REQUESTS. `duration_s` runs from the first queued request
    to the last queued or completed one. `footprint_bytes` is what reads and writes touch.
    """
    operation = requests["operation"].astype(str)
    length = requests["length_bytes"]
    lost = sum(dict(provenance.get("lost", {})).values())
    moved = requests[operation.isin(["read", "write"])]
    return pd.DataFrame(
        {
            "trace": trace,
            "source": str(provenance.get("backend", "unknown")),
            "application": str(provenance.get("application", "unknown")),
            "requests": len(requests),
            "reads": int((operation == "read").sum()),
            "writes": int((operation == "write").sum()),
            "flushes": int((operation == "flush").sum()),
            "discards": int((operation == "discard").sum()),
            "read_bytes": int(length[operation == "read"].sum()),
            "write_bytes": int(length[operation == "write"].sum()),
            "footprint_bytes": footprint_bytes(
                moved["offset_bytes"].to_numpy(np.int64), moved["length_bytes"].to_numpy(np.int64)
            ),
            "duration_s": duration_ns(requests) / 1e9,
            "lossy": lost > 0,
            "lost": lost,
        },
        index=[0],
    )


def duration_ns(requests: pd.DataFrame) -> int:
    """From the first queued request to the last queued or completed one; 0 for no requests."""
    if requests.empty:
        return 0
    last = max(requests["queue_ns"].max(), requests["complete_ns"].max(skipna=True) or 0)
    return int(last - requests["queue_ns"].min())


def footprint_bytes(offset_bytes: npt.NDArray[np.int64], length_bytes: npt.NDArray[np.int64]) -> int:
    """Bytes in the distinct 4 KiB blocks that the extents touch, each block counted once and whole."""
    used = length_bytes > 0
    first = offset_bytes[used] // FOOTPRINT_BLOCK_BYTES
    after = -(-(offset_bytes[used] + length_bytes[used]) // FOOTPRINT_BLOCK_BYTES)
    order = np.argsort(first, kind="stable")
    first, after = first[order], after[order]
    if not first.size:
        return 0
    reached = np.concatenate([first[:1], np.maximum.accumulate(after)[:-1]])
    return int(np.clip(after - np.maximum(first, reached), 0, None).sum()) * FOOTPRINT_BLOCK_BYTES
