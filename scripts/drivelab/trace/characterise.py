"""Summarise a trace in one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

FOOTPRINT_BLOCK_BYTES = 4096
_TEXTS = {"source": "backend", "application": "application"}


def row_of(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """Return a trace's row of table `traces`, from the tables of statistics.count."""
    facts = tables["trace_overview"].iloc[0]
    operations = tables["trace_operations"].set_index("operation")
    names = {"reads": "read", "writes": "write", "flushes": "flush", "discards": "discard"}
    lost = int(facts["lost"])
    return {
        "trace": str(facts["trace"]),
        **{column: "unknown" if pd.isna(facts[name]) else facts[name] for column, name in _TEXTS.items()},
        "requests": int(operations["requests"].sum()),
        **{name: int(operations.loc[operation, "requests"]) for name, operation in names.items()},
        "read_bytes": int(operations.loc["read", "bytes"]),
        "write_bytes": int(operations.loc["write", "bytes"]),
        "footprint_bytes": int(facts["footprint_bytes"]),
        "footprint_block_bytes": int(facts["footprint_block_bytes"]),
        "duration_s": float(facts["duration_s"]),
        "lossy": lost > 0,
        "lost": lost,
    }


def duration_ns(requests: pd.DataFrame) -> int:
    """Return the time from first queueing to last queueing or completion, or 0."""
    if requests.empty:
        return 0
    last = max(requests["queue_ns"].max(), requests["complete_ns"].max(skipna=True) or 0)
    return int(last - requests["queue_ns"].min())


def footprint_bytes(offset_bytes: npt.NDArray[np.int64], length_bytes: npt.NDArray[np.int64]) -> int:
    """Return the bytes of all distinct 4 KiB blocks that the extents touch."""
    used = length_bytes > 0
    first = offset_bytes[used] // FOOTPRINT_BLOCK_BYTES
    after = -(-(offset_bytes[used] + length_bytes[used]) // FOOTPRINT_BLOCK_BYTES)
    order = np.argsort(first, kind="stable")
    first, after = first[order], after[order]
    if not first.size:
        return 0
    reached = np.concatenate([first[:1], np.maximum.accumulate(after)[:-1]])
    return int(np.clip(after - np.maximum(first, reached), 0, None).sum()) * FOOTPRINT_BLOCK_BYTES
