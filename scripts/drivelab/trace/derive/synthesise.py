"""Write a synthetic equivalent of a trace as a protocol for studies: SNIA's task-based synthetic workload."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from drivelab.core.errors import UserError
from drivelab.core.units import counted, format_amount, format_size
from drivelab.plan.cell import Cell
from drivelab.plan.grammar import load, resolve
from drivelab.trace.parquet_schema import open_trace
from drivelab.trace.records import SECTOR_BYTES, refuse_source, writable
from drivelab.trace.statistics.count import tables
from drivelab.trace.statistics.requests import Requests, opened
from drivelab.trace.trace_catalogue import sha256_of

_PROTOCOL = Template(Path(__file__).with_name("synthetic_protocol.yaml").read_text(encoding="utf-8"))
DEEPEST = 4096
"""Largest queue depth of the protocol grammar."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_NO_WORKLOAD = "has no workload: no read or write moves data"
Streams: TypeAlias = pd.DataFrame
"""Columns operation, length_bytes, sequential, requests, bytes, share_pct, pattern, read_share, depth (maybe NaN)."""


def synthesise(source: Path, output: Path, *, streams: int = 9, block_bytes: int = SECTOR_BYTES) -> dict[str, Any]:
    """Write the synthetic equivalent of a trace as a protocol, in bounded memory; return what it keeps and loses.

    The cells are the `streams` most frequent ones; sizes are rounded up to multiples of `block_bytes`. Raises UserError
    when the source is not a trace or has no reads and writes, or the output name is unsuitable.
    """
    if output.suffix != ".yaml":
        raise UserError(f"{output}: does not end in .yaml; name the protocol like config/protocols/NAME.yaml")
    if not _NAME.fullmatch(output.stem):
        raise UserError(f"{output}: '{output.stem}' is not a protocol name; use lower-case letters, digits and hyphens")
    if streams < 1:
        raise UserError(f"the number of streams is {streams}; choose 1 or more")
    if block_bytes < SECTOR_BYTES or block_bytes & (block_bytes - 1):
        raise UserError(
            f"a block of {block_bytes} B is not a power of two of at least {SECTOR_BYTES} B; no drive has such blocks"
        )
    refuse_source(output, [source])
    with open_trace(source) as trace:
        if not trace.rows:
            raise UserError(f"{source}: {_NO_WORKLOAD}")
    with opened(source) as requests:
        counts = tables(requests, source.stem)
        if counts["trace_streams"].empty:
            raise UserError(_NO_WORKLOAD)
        facts = counts["trace_overview"].iloc[0]
        every, rounded = _rounded(counts["trace_streams"], block_bytes)
        chosen = every.head(streams)
        chosen = chosen.assign(depth=_depths(requests, _rows(chosen), block_bytes, int(facts["length_step_bytes"])))
        depth = mean_depth(requests, "trace WHERE true")
        losses = list(_losses(facts, counts["trace_operations"], every.iloc[len(chosen) :], depth))
        if rounded:
            losses.append(f"sizes: {rounded} requests rounded up to multiples of {format_size(block_bytes)}")
        text = _PROTOCOL.substitute(
            count=len(chosen),
            shown=f"{chosen['share_pct'].sum():.3g}",
            losses="\n".join(fill(text, 110, initial_indent="# * ", subsequent_indent="#   ") for text in losses),
            name=output.stem,
            **_origin(requests.provenance, source),
            depth=whole_depth(depth),
            range=f"{_range_pct(facts):.2f}",
            cells="\n".join(f"        - {_cell(stream)}" for stream in _rows(chosen)),
            tracked="\n".join(
                f"            - {{{_fields(stream)}, metric: iops}}"
                for stream in _rows(chosen.drop_duplicates("operation"))
            ),
        )
    with writable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        # Check the protocol as a study would, before it replaces an existing file.
        with TemporaryDirectory(dir=output.parent, prefix=".synthesise-") as folder:
            draft = Path(folder) / output.name
            draft.write_text(text, encoding="utf-8")
            protocol = load(draft)
            for scale in (None, "demo"):
                resolve(protocol, "client", scale, {}, str(output))
            draft.replace(output)
    return {
        "protocol": str(output),
        "name": output.stem,
        "streams": json.loads(chosen.assign(workload=list(map(_workload, _rows(chosen)))).to_json(orient="records")),
        "rounded": rounded,
        "active_range_pct": _range_pct(facts),
        "left_out_pct": float(every["share_pct"][streams:].sum()),
        "not_carried_over": losses,
    }


def _rows(streams: Streams) -> list[Any]:
    return list(streams.itertuples(index=False))


def _rounded(table: pd.DataFrame, block_bytes: int) -> tuple[Streams, int]:
    """Merge the streams whose sizes become equal; return them, and how many requests change their size."""
    sizes = -(-table["length_bytes"] // block_bytes) * block_bytes
    rounded = int(table["requests"][sizes != table["length_bytes"]].sum())
    keys = ["operation", "length_bytes", "sequential"]
    streams = table.assign(length_bytes=sizes).groupby(keys, as_index=False)[["requests", "bytes"]].sum()
    streams["share_pct"] = 100 * streams["requests"] / streams["requests"].sum()
    streams["pattern"] = np.where(streams["sequential"], "sequential", "random")
    streams["read_share"] = np.where(streams["operation"] == "read", 100, 0)
    order = ["requests", "length_bytes", "operation", "sequential"]
    return streams.sort_values(order, ascending=[False, True, True, True], ignore_index=True), rounded


def mean_depth(requests: Requests, chosen: str) -> float:
    """Return the mean depth of the chosen requests, in SQL a table and a condition, while any was in flight, or NaN."""
    time_ns = requests.row(f"""
        SELECT sum(complete_ns - queue_ns) AS total, sum(greatest(complete_ns - greatest(queue_ns, reached), 0)) AS busy
        FROM (SELECT queue_ns, complete_ns, coalesce(lag(latest) OVER (), queue_ns) AS reached
              FROM (SELECT queue_ns, complete_ns, max(complete_ns) OVER (ROWS UNBOUNDED PRECEDING) AS latest
                    FROM {chosen} AND complete_ns IS NOT NULL))""")
    return time_ns["total"] / time_ns["busy"] if time_ns["busy"] else math.nan


def _depths(requests: Requests, streams: Sequence[Any], block_bytes: int, step_bytes: int) -> list[float]:
    """Return the depth of each stream; sizes were counted in steps."""
    counted_bytes = f"(length_bytes + {step_bytes - 1}) // {step_bytes} * {step_bytes}"
    size_bytes = f"({counted_bytes} + {block_bytes - 1}) // {block_bytes} * {block_bytes}"
    return [
        mean_depth(
            requests,
            f"moves WHERE operation = '{stream.operation}' AND sequential = {bool(stream.sequential)} "
            f"AND {size_bytes} = {stream.length_bytes}",
        )
        for stream in streams
    ]


def whole_depth(depth: float) -> int:
    """Return the depth of a cell: a whole number of at least 1, also for NaN."""
    return 1 if math.isnan(depth) else min(max(round(depth), 1), DEEPEST)


def _range_pct(facts: pd.Series) -> float:
    """Return the footprint as % of the capacity, rounded up to 0.01; 100 if the capacity is unknown."""
    if pd.isna(facts["capacity_bytes"]) or not facts["capacity_bytes"]:
        return 100.0
    return float(min(max(math.ceil(1e4 * facts["footprint_bytes"] / facts["capacity_bytes"]) / 100, 0.01), 100.0))


def _losses(facts: pd.Series, operations: pd.DataFrame, left: Streams, depth: float) -> Iterator[str]:
    """Yield a sentence for each property that this trace loses; `left` are the streams without a cell."""
    requests, operations = int(facts["requests"]), operations.set_index("operation")
    moved = operations.loc[["read", "write"]]
    text = "arrival times: the trace has none"
    if facts["duration_s"]:
        text = f"arrival times: {requests} requests in {facts['duration_s']:.4g} s"
        if not pd.isna(facts["interarrival_variation"]):
            text += f", whose intervals have a coefficient of variation of {facts['interarrival_variation']:.3g}"
        text += f", and idle time: {facts['idle_share_pct']:.3g} % ({facts['idle_basis']})"
    yield f"{text}; a cell issues as fast as the drive completes"
    yield "order: the streams run one after another"
    where = f"{_range_pct(facts):g} % of the capacity from its start"
    if pd.isna(facts["capacity_bytes"]):
        where = "the whole drive, as the trace does not record its drive's capacity"
    yield (
        f"locality: the trace touched {format_amount(facts['footprint_bytes'])} within "
        f"{format_amount(facts['high_bytes'] - facts['low_bytes'])}, each byte "
        f"{moved['bytes'].sum() / facts['footprint_bytes']:.3g} times on average; the cells use {where}, random ones "
        "uniformly"
    )
    if len(left):
        yield (
            f"streams left out: {len(left)} with {counted(int(left['requests'].sum()), 'request')}, "
            f"{left['share_pct'].sum():.3g} % of the reads and writes"
        )
    others = {name: number for name, number in operations["requests"].items() if name not in moved.index and number}
    parts = [counted(number, f"{name} request") for name, number in others.items()]
    flags = moved[["fua", "preflush"]].sum()
    parts += [f"the flag {name} of {counted(number, 'request')}" for name, number in flags.items() if number]
    if parts:
        yield f"flushes and other requests: {', '.join(parts)}"
    if pd.isna(facts["merged"]):
        yield "merging: the trace does not show which requests were merged before the drive"
    elif facts["merged"]:
        yield f"merging: {facts['merged']} requests reached the drive merged into others; the cells issue each alone"
    if facts["length_step_bytes"] > 1:
        yield f"sizes: counted in steps of {format_size(facts['length_step_bytes'])}, as there are too many sizes"
    if math.isnan(depth):
        yield "queue depth: 1 in every cell, as the trace has no completions"
    elif facts["without_completion"]:
        yield f"queue depth: {facts['without_completion']} requests without a completion are not counted"


def _origin(provenance: Mapping[str, Any], source: Path) -> dict[str, str]:
    """Return title and source of the protocol, as JSON, which is valid YAML."""
    title = provenance.get("title") or provenance.get("application") or provenance.get("name") or source.name
    marks = [f"{sum(provenance[key].values())} {word}" for key, word in
             (("lost", "events lost"), ("unmatched", "unmatched events")) if provenance.get(key)]  # fmt: skip
    derived = [str(step.get("step")) for step in provenance.get("derived", [])]
    origin = (
        f"derived from the trace {source.name} (SHA-256 {sha256_of(source)[:16]}) by 'drivelab trace synthesise': its "
        "I/O streams after SNIA RWSW PTS as a task-based synthetic workload (SNIA PTS slides)"
        + (f"; the trace is lossy: {', '.join(marks)}" if marks else "")
        + (f"; the trace was made by {', '.join(derived)}" if derived else "")
    )
    texts = {"title": f"Synthetic equivalent of: {title}", "source": origin}
    lines = {key: "".join(letter if letter.isprintable() else " " for letter in text) for key, text in texts.items()}
    return {key: json.dumps(line, ensure_ascii=False) for key, line in lines.items()}


def _cell(stream: Any) -> str:
    share = f"{max(stream.share_pct, 1e-4):.4f}".rstrip("0").rstrip(".")
    fields = f"{_fields(stream)}, queue_depth: {whole_depth(stream.depth)}, share: {share}%"
    return f"{{{fields}}}   # {_workload(stream)}: {stream.requests} requests"


def _fields(stream: Any) -> str:
    size = format_size(stream.length_bytes)
    return f"pattern: {stream.pattern}, read_share: {stream.read_share}, block_size: {size}"


def _workload(stream: Any) -> str:
    """Return a stream's workload in PTS notation."""
    return Cell(stream.pattern, stream.read_share, stream.length_bytes, threads=1, queue_depth=1).workload
