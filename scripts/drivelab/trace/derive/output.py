"""Where a derived trace goes: never over its source, whole row groups, no file when nothing is left."""

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
    """Writes rows that come in small parts as whole row groups."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer
        self._parts: list[pa.Table] = []
        self._waiting = 0
        self.rows = 0

    def add(self, requests: pa.RecordBatch | pa.Table) -> None:
        """Rows after the schema REQUESTS, in the order of `queue_ns`."""
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
        """As TraceWriter.finish."""
        if self._waiting:
            self._write()
        self._writer.finish(provenance)

    def _write(self) -> None:
        table = pa.concat_tables(self._parts).cast(REQUESTS).combine_chunks()
        self._parts, self._waiting = [], 0
        # Encoded anew, or names of processes that are gone would stay in the file.
        names = table.column("process").combine_chunks().dictionary_decode().dictionary_encode()
        self._writer.write(table.set_column(REQUESTS.get_field_index("process"), REQUESTS.field("process"), names))


@contextmanager
def written(output: Path, sources: Iterable[Path]) -> Iterator[Gatherer]:
    """A derived trace to write; call `finish` within the block.

    Raises UserError when the output is one of the sources, cannot be written, or nothing was added to it.
    """
    refuse_source(output, sources)
    with writable(output), TraceWriter(output) as writer:
        yield Gatherer(writer)


def refuse_nothing(rows: int, what: str, why: str) -> None:
    """Raise UserError when no request is left."""
    if not rows:
        raise UserError(f"{what}: nothing is left of it, {why}; no file was written")
