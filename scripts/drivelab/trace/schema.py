"""The trace file: one row per queued request in Parquet, with its provenance as JSON in the file's metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from drivelab.errors import UserError

OPERATIONS = ("read", "write", "flush", "discard", "write-zeroes")
PROVENANCE_KEY = b"drivelab"
FORMAT_VERSION = 1

REQUESTS = pa.schema(
    [
        pa.field("queue_ns", pa.int64(), nullable=False),
        pa.field("dispatch_ns", pa.int64()),
        pa.field("complete_ns", pa.int64()),
        pa.field("operation", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("sync", pa.bool_(), nullable=False),
        pa.field("meta", pa.bool_(), nullable=False),
        pa.field("fua", pa.bool_(), nullable=False),
        pa.field("readahead", pa.bool_(), nullable=False),
        pa.field("preflush", pa.bool_(), nullable=False),
        pa.field("offset_bytes", pa.int64(), nullable=False),
        pa.field("length_bytes", pa.int64(), nullable=False),
        pa.field("process", pa.string(), nullable=False),
        pa.field("pid", pa.int32(), nullable=False),
        pa.field("cpu", pa.int16(), nullable=False),
        pa.field("error", pa.int32(), nullable=False),
    ]
)
"""Times are ns since the first event of the trace. A null `dispatch_ns` or `complete_ns`: the trace has no such event.

An empty flush is operation `flush`, offset 0 and length 0; `preflush` and `fua` are flags of a write with data.
`process` is empty where the kernel kept no name, `error` is the errno of the completion.
"""


def write_trace(requests: pa.Table, provenance: Mapping[str, Any], path: Path) -> None:
    """Write a trace in one step: the file is there whole or not at all."""
    metadata = {PROVENANCE_KEY: json.dumps({"format": FORMAT_VERSION, **provenance}, sort_keys=True).encode()}
    table = requests.cast(REQUESTS).replace_schema_metadata(metadata)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        pq.write_table(table, part, compression="zstd", compression_level=9)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_trace(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Requests in the order of `queue_ns` and their provenance.

    Raises UserError when the file is missing, unreadable or no trace of this format.
    """
    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such trace; check the name or capture it") from None
    except (OSError, pa.ArrowInvalid) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: is no readable Parquet file ({reason}); capture or fetch it anew") from None
    provenance = json.loads((table.schema.metadata or {}).get(PROVENANCE_KEY, b"{}"))
    if provenance.get("format") != FORMAT_VERSION or not table.schema.equals(REQUESTS):
        raise UserError(f"{path}: is no trace of format {FORMAT_VERSION}; make one with 'drivelab trace decode'")
    return table, provenance
