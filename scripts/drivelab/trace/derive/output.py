"""Write a derived trace: never over a source, and no file without requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.outputs import refuse_source, writable
from drivelab.trace.schema import BATCH_ROWS, REQUESTS, TraceWriter


class Gatherer:
    """Collect small parts and write them as whole row groups."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer
        self._parts: list[pa.Table] = []
        self._waiting = 0
        self.rows = 0

    def add(self, requests: pa.RecordBatch | pa.Table) -> None:
        """Add rows of the schema REQUESTS, in `queue_ns` order."""
        table = pa.Table.from_batches([requests]) if isinstance(requests, pa.RecordBatch) else requests
        self.rows += table.num_rows
        while table.num_rows:
            room = BATCH_ROWS - self._waiting
            self._parts.append(table.slice(0, room))
            self._waiting += self._parts[-1].num_rows
            table = table.slice(room)
            if self._waiting == BATCH_ROWS:
                self._write()

    def finish(self, provenance: Mapping[str, Any]) -> None:
        """Write the rest and complete the file, as TraceWriter.finish."""
        if self._waiting:
            self._write()
        self._writer.finish(provenance)

    def _write(self) -> None:
        table = pa.concat_tables(self._parts).cast(REQUESTS).combine_chunks()
        self._parts, self._waiting = [], 0
        # Encode again, or names of removed processes would stay in the file.
        names = table.column("process").combine_chunks().dictionary_decode().dictionary_encode()
        self._writer.write(table.set_column(REQUESTS.get_field_index("process"), REQUESTS.field("process"), names))


@contextmanager
def written(output: Path, sources: Iterable[Path]) -> Iterator[Gatherer]:
    """Open a derived trace for writing; call `finish` within the block.

    Raises UserError when the output is a source or cannot be written.
    """
    refuse_source(output, sources)
    with writable(output), TraceWriter(output) as writer:
        yield Gatherer(writer)


def refuse_nothing(rows: int, source: str, why: str) -> None:
    """Raise UserError when no request is left."""
    if not rows:
        raise UserError(f"{source}: no request is left: {why}; no file was written")
