"""Separate one volume from a trace of several, with the times of the whole trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def refuse_strangers(paths: Sequence[Path]) -> None:
    """Raise UserError unless the traces are different volumes of one trace, as `one_volume` separates them."""
    origins: dict[tuple[str, str], Path] = {}
    for path in paths:
        with open_trace(path) as trace:
            last: Mapping[str, Any] = (trace.provenance.get("derived") or [{}])[-1]
        if last.get("step") != STEP:
            raise UserError(
                f"{path}: is not one volume of a trace of several; separate each volume with 'drivelab trace filter "
                "TRACE --volume NAME -o OUT.parquet'"
            )
        origin = (str(last["source"]["sha256"]), str(last["volume"]))
        if origin in origins:
            raise UserError(f"{path}: is volume '{last['volume']}', like {origins[origin]}; give each volume one drive")
        origins[origin] = path
    if len({sha256 for sha256, _ in origins}) > 1:
        raise UserError(
            f"{' and '.join(map(str, paths))}: are volumes of different traces, so they have no common time; separate "
            "volumes of one trace"
        )
