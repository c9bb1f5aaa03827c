"""Read and write whole traces in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from drivelab.trace.parquet_schema import REQUESTS, TraceWriter, open_trace


def write_trace(requests: pa.Table, provenance: Mapping[str, Any], path: Path) -> None:
    with TraceWriter(path) as writer:
        writer.write(requests)
        writer.finish(provenance)


def read_trace(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Return all requests in `queue_ns` order and the provenance."""
    with open_trace(path) as trace:
        return pa.Table.from_batches(trace.batches(), REQUESTS), trace.provenance
