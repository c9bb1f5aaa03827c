"""Separate one volume from a trace of several, with the times of the whole trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError, suggestion
from drivelab.trace.derive.groups import ordered
from drivelab.trace.derive.output import derived, refuse_nothing, source_facts, written
from drivelab.trace.parquet_schema import VOLUME, VOLUMES_KEY, open_trace
from drivelab.trace.records import refuse_source

STEP = "volume"


def one_volume(path: Path, output: Path, name: str) -> dict[str, Any]:
    """Keep the requests of one volume, in bounded memory; return the entry of `derived`.

    All times stay, so volumes that are separated from one trace keep its time base. Raises UserError for a trace of one
    volume, and for one without this volume.
    """
    refuse_source(output, [path])
    with open_trace(path, several=True) as trace:
        if name not in trace.volumes:
            has = suggestion(name, list(trace.volumes)) if trace.volumes else "it has one volume, without a name"
            raise UserError(f"{path}: has no volume '{name}'; {has}")
        with written(output, path) as gatherer:
            for batch in ordered(trace.batches(), path):
                requests = pa.Table.from_batches([batch])
                kept = requests.filter(pc.equal(requests[VOLUME.name].cast(pa.string()), name))
                gatherer.add(kept.drop_columns([VOLUME.name]))
            refuse_nothing(gatherer.rows, str(path), f"volume '{name}' has none")
            facts = source_facts(path, trace.provenance, trace.rows)
            entry = {"step": STEP, "volume": name, "requests": gatherer.rows, "source": facts}
            gatherer.finish(derived(trace.provenance, entry, {VOLUMES_KEY: None, "volume": name}))
    return entry
