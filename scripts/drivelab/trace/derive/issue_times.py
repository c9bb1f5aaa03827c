"""Let requests begin when they were issued to the drive, instead of when they were queued."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.trace.derive.groups import ordered, queue_ns
from drivelab.trace.derive.output import derived, refuse_nothing, source_facts, written
from drivelab.trace.parquet_schema import BEGINS, ISSUE, REQUESTS, open_trace
from drivelab.trace.records import refuse_source


def issue_times(path: Path, output: Path) -> dict[str, Any]:
    """Set every `queue_ns` to the `dispatch_ns`, in bounded memory; return the entry of `derived`.

    Merged requests then begin together, a split request with its first piece. A request without a dispatch, such as an
    empty flush that shares the drive's flush, keeps its queue time. Raises UserError for a trace without dispatches,
    and for one whose requests already begin with them.
    """
    refuse_source(output, [path])
    with open_trace(path) as trace:
        if trace.provenance.get(BEGINS) == ISSUE:
            raise UserError(f"{path}: its requests already begin when they were issued; nothing to change")
        kept = 0
        with written(output, path) as gatherer:
            for batch, without in _in_new_order(ordered(trace.batches(), path)):
                kept += without
                gatherer.add(batch)
            refuse_nothing(gatherer.rows, str(path), "the trace has no request")
            if kept == gatherer.rows:
                raise UserError(f"{path}: has no dispatches, so when its requests were issued is unknown")
            facts = source_facts(path, trace.provenance, trace.rows)
            entry = {"step": "issue-times", "without_dispatch": kept, "requests": gatherer.rows, "source": facts}
            gatherer.finish(derived(trace.provenance, entry, {BEGINS: ISSUE}))
    return entry


def _in_new_order(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[pa.Table, int]]:
    """Yield rows in the order of their new times, and how many rows just read have no dispatch.

    No request is issued before it is queued, so rows up to the next batch's first queue time are in their final order.
    """
    waiting = REQUESTS.empty_table()
    for batch in batches:
        due = pc.less(waiting["queue_ns"], int(queue_ns(batch)[0]))
        yield waiting.filter(due), 0
        waiting = waiting.filter(pc.invert(due))
        # A dispatch before the queueing contradicts it, so the queue time stays. Null is skipped.
        begins = pc.max_element_wise(batch.column("dispatch_ns"), batch.column("queue_ns"))
        moved = batch.set_column(REQUESTS.get_field_index("queue_ns"), REQUESTS.field("queue_ns"), begins)
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([moved])]).unify_dictionaries()
        order = pc.sort_indices(waiting["queue_ns"])
        waiting = waiting.take(order)
        yield waiting.slice(0, 0), batch.column("dispatch_ns").null_count
    yield waiting, 0
