"""Query the requests of a trace with SQL, in bounded memory, after checking them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.trace.parquet_schema import BATCH_ROWS, TraceFile, has_queue_times, open_trace
from drivelab.trace.statistics import footprint
from drivelab.trace.statistics.batch import Batch, Ints, Times
from drivelab.trace.statistics.streams import KINDS, MOVES, in_steps

_CONFIG: dict[str, Any] = {
    "memory_limit": "1GB",  # what does not fit goes to a file
    "threads": 2,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
_TRACE = """
    CREATE TEMP VIEW trace AS
    SELECT * EXCLUDE (dispatch_ns, ends_early),
           CASE WHEN dispatch_ns >= queue_ns AND coalesce(dispatch_ns <= complete_ns, true) THEN dispatch_ns END
               AS dispatch_ns,
           ends_early OR coalesce(dispatch_ns < queue_ns OR dispatch_ns > complete_ns, false) AS backwards,
           offset_bytes + length_bytes AS end_bytes,
           operation IN ('read', 'write') AND length_bytes > 0 AS transfer,
           (queue_ns - ({first_ns})) // {width_ns} AS nth
    FROM (SELECT * EXCLUDE (complete_ns, process, pid, cpu),
                 CASE WHEN complete_ns >= queue_ns THEN complete_ns END AS complete_ns,
                 coalesce(complete_ns < queue_ns, false) AS ends_early
          FROM requests)"""
"""The requests in `queue_ns` order. A time that contradicts an earlier one is null. `nth`: number of the interval."""
_SPACE = None if "TMPDIR" in os.environ or not os.access("/var/tmp", os.W_OK) else "/var/tmp"
"""Folder for temporary files: /tmp may be in memory (file-hierarchy(7))."""
MOST = 200


@dataclass(frozen=True)
class Intervals:
    """`count` intervals of `width_ns` from `origin_ns`; the last may be shorter.

    They cover the trace and its last instant, whose length is the resolution of the times.
    """

    origin_ns: int
    width_ns: int
    count: int
    span_ns: int

    @classmethod
    def of(cls, origin_ns: int, duration_ns: int, resolution_ns: int) -> Intervals:
        """Return at most MOST intervals, each a multiple of the resolution.

        So every interval has the same number of instants.
        """
        span_ns = duration_ns + resolution_ns
        width_ns = -(-span_ns // (MOST * resolution_ns)) * resolution_ns
        return cls(origin_ns, width_ns, -(-span_ns // width_ns), span_ns)

    def number(self, times_ns: Ints) -> Ints:
        """Return the interval of each time within the trace."""
        return (times_ns - self.origin_ns) // self.width_ns

    def edges_ns(self) -> Ints:
        """Return the edges in ns from the origin, shape (count + 1,)."""
        return np.minimum(np.arange(self.count + 1) * self.width_ns, self.span_ns)


class Requests:
    """The requests of a trace, as views of a database: `requests` as in the file, `trace` with sound times, `moves`.

    `moves` has the reads and writes of data with columns `sequential` and `strict`: see statistics.streams.
    """

    def __init__(self, file: TraceFile, path: str, database: duckdb.DuckDBPyConnection) -> None:
        self.file, self._database = file, database  # the file, for what SQL does worse
        self.provenance = file.provenance
        self.resolution_ns = int(file.provenance.get("time_resolution_ns") or 1)
        self.has_queue_times = has_queue_times(file.provenance)
        self.times = Times()
        for requests in file.batches():
            self.times.add_times(Batch(requests))
        first_ns = self.times.first_ns
        self.intervals = Intervals.of(first_ns, self.times.duration_ns, self.resolution_ns)
        database.execute(f"CREATE TEMP VIEW requests AS SELECT * FROM read_parquet('{path}')")
        database.execute(_TRACE.format(first_ns=first_ns, width_ns=self.intervals.width_ns))
        database.execute(MOVES)

    def rows(self, sql: str) -> pd.DataFrame:
        """Return the result of a query; its whole numbers are exact, also beyond 64 bits."""
        result = self._database.execute(sql)
        names = [column[0] for column in result.description or ()]
        return pd.DataFrame(result.fetchall(), columns=names)

    def row(self, sql: str) -> dict[str, Any]:
        """Return the only row of a query's result."""
        (values,) = self.rows(sql).to_dict("records")
        return {str(name): value for name, value in values.items()}

    def arrow(self, sql: str) -> Iterator[pa.RecordBatch]:
        """Yield the result of a query in batches."""
        return iter(self._database.sql(sql).to_arrow_reader(BATCH_ROWS))

    @cached_property
    def kinds(self) -> tuple[pd.DataFrame, int]:
        """Requests by operation, length and sequentiality, and the step of the lengths: see streams.in_steps."""
        self._database.execute(KINDS)
        return in_steps(self.rows)

    @cached_property
    def footprint(self) -> tuple[pd.DataFrame, int]:
        """Blocks touched in each interval, in columns of `footprint.touched_blocks`, and the size of a block."""
        words, shift = footprint.touched_words(self._database)
        batches, intervals = self.file.batches(footprint.COLUMNS), self.intervals
        return footprint.touched_blocks(batches, words, shift, intervals.number, intervals.count), 1 << shift


@contextmanager
def opened(path: Path) -> Iterator[Requests]:
    """Open a trace for queries. Memory does not grow with the trace; what does not fit goes to a temporary file.

    Raises UserError when the file is not a trace, is damaged, or has no or impossible requests.
    """
    with open_trace(path) as file, tempfile.TemporaryDirectory(prefix="drivelab-trace-", dir=_SPACE) as folder:
        if not file.rows:
            raise UserError(f"{path}: the trace has no request to characterise; capture for longer")
        link = Path(folder) / "trace.parquet"  # DuckDB would read a pattern in the name
        link.symlink_to(path.resolve())
        try:
            with duckdb.connect(config={**_CONFIG, "temp_directory": folder}) as database:
                yield Requests(file, str(link), database)
        except UserError as error:
            text = str(error)
            raise UserError(text if text.startswith(str(path)) else f"{path}: {text}") from None
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise UserError(
                f"{path}: cannot be queried ({reason}); free space in {Path(folder).parent}, or name another folder "
                "in TMPDIR"
            ) from None
