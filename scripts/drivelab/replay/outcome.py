"""The outcome of a replay: a Parquet row per request, and engine metadata."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from drivelab.core.behind import Behind
from drivelab.core.errors import UserError
from drivelab.replay.engine_records import (
    COMPLETED,
    ISSUED,
    RESULT_RECORD,
    STATES,
    WAITED_FOR,
    Records,
    open_results,
)
from drivelab.replay.planner import PLANNED
from drivelab.trace.parquet_schema import BATCH_ROWS, OPERATIONS, PROVENANCE_KEY, RowsWriter, sound_batches

OUTCOME_FILE, REPORT_FILE = "outcome.parquet", "report.json"
"""Files in a replay's evidence folder: the outcome, and the report made from it
(drivelab.replay.evaluation.replay_report)."""
_RESULTS = (
    pa.field("issue_ns", pa.int64()),
    pa.field("complete_ns", pa.int64()),
    pa.field("error", pa.int32(), nullable=False),
    pa.field("waited", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    pa.field("in_flight", pa.int32(), nullable=False),
)
OUTCOME = pa.schema([*PLANNED, *_RESULTS])
"""The columns of PLANNED, plus, in ns after the start of the replay: `issue_ns` (null: not issued) and `complete_ns`
(null: never completed). `error`: an errno, 0 for none. `waited`: one of WAITED_FOR. `in_flight`: at the issue, this
request included.

A short read or write has the error EIO, like one that the drive failed.
"""
_FIXED = {"operation": OPERATIONS, "waited": WAITED_FOR}
"""Columns whose categories are the same in every file."""
_TRANSFERS = ("read", "write")


def write_outcome(planned: Path, results: Path, output: Path, about: Mapping[str, Any]) -> None:
    """Join the plan with an engine's results, row by row, in bounded memory.

    Fewer results than planned: the rest was not issued. `about` (JSON-able) is stored in the file, with the results'
    header and the metadata of `planned`: see outcome_about.

    Raises UserError when a file cannot be read or written, or is not of this version.
    """
    mapped = open_results(results)
    with _open(planned, PLANNED) as file:
        body = {
            **about,
            "prepared": _json((file.metadata.metadata or {}).get(PROVENANCE_KEY)),
            "results": {**mapped.header, "state": STATES[mapped.header["state"]]},
        }
        try:
            with RowsWriter(output, OUTCOME) as writer:
                row = 0
                with Behind() as behind:
                    for batch in sound_batches(file.iter_batches(BATCH_ROWS), planned, "replay again"):
                        behind.do(writer.write, _joined(batch, mapped.records[row : row + batch.num_rows]))
                        row += batch.num_rows
                writer.finish(body)
        except OSError as error:
            raise UserError(f"{output}: cannot be written ({error.strerror or error}); make room there") from None


def read_outcome(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read columns of OUTCOME (None: all), a row per request in schedule order.

    Nullable times are float64 with NaN; other columns keep their type; `operation`, `process` and `waited` are
    categories. Raises UserError when the file cannot be read.
    """
    with _open(path, OUTCOME) as file:
        names = list(OUTCOME.names if columns is None else columns)
        batches = sound_batches(file.iter_batches(BATCH_ROWS, columns=names), path, "replay again")
        table = pa.Table.from_batches(batches, pa.schema([OUTCOME.field(name) for name in names]))
    frame = table.unify_dictionaries().to_pandas(split_blocks=True, self_destruct=True)
    for name in names:
        if name in _FIXED:
            frame[name] = frame[name].cat.set_categories(list(_FIXED[name]))
        elif OUTCOME.field(name).nullable:
            frame[name] = frame[name].astype(np.float64)
    return frame


def outcome_about(path: Path) -> dict[str, Any]:
    """Return the metadata of an outcome file.

    `prepared`: Prepared.to_mapping. `results`: the results' header with its state as text. Plus the `about` of
    `write_outcome`. Raises UserError when the file cannot be read.
    """
    with _open(path, OUTCOME) as file:
        return _json((file.metadata.metadata or {}).get(PROVENANCE_KEY))


def _open(path: Path, schema: pa.Schema) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(path, memory_map=False, pre_buffer=False, page_checksum_verification=True)
    except (OSError, pa.ArrowInvalid) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: cannot be read ({reason}); replay again") from None
    if not file.schema_arrow.equals(schema):
        file.close()
        raise UserError(f"{path}: is of another version; replay again")
    return file


def _json(text: bytes | None) -> dict[str, Any]:
    return dict(json.loads(text)) if text else {}


def _joined(planned: pa.RecordBatch, records: Records) -> pa.Table:
    rows = planned.num_rows
    whole = np.zeros(rows, RESULT_RECORD)
    whole[: len(records)] = records
    issued, back = (whole["state"] == ISSUED) | (whole["state"] == COMPLETED), whole["state"] == COMPLETED
    result = whole["result"]
    moving = np.isin(planned.column("operation").to_numpy(zero_copy_only=False), _TRANSFERS)
    short = back & moving & (result >= 0) & (result != planned.column("length_bytes").to_numpy())
    error = np.where(back, np.where(short, errno.EIO, np.maximum(-result, 0)), 0)
    waited = np.where(issued, whole["waited"], 0).astype(np.int8)
    columns = {
        "issue_ns": pa.array(whole["issue_ns"].astype(np.int64), mask=~issued),
        "complete_ns": pa.array(whole["complete_ns"].astype(np.int64), mask=~back),
        "error": pa.array(error.astype(np.int32)),
        "waited": pa.DictionaryArray.from_arrays(waited, list(WAITED_FOR)),
        "in_flight": pa.array(np.where(issued, whole["in_flight"], 0).astype(np.int32)),
    }
    arrays = [*planned.columns, *(columns[field.name] for field in _RESULTS)]
    return pa.Table.from_arrays(arrays, schema=OUTCOME)
