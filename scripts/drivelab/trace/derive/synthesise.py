"""Write a synthetic equivalent of a trace as a protocol for studies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.plan.cell import Cell
from drivelab.plan.grammar import load, resolve
from drivelab.trace.derive.equivalent import Equivalent, Stream, measure
from drivelab.trace.derive.limits import limits
from drivelab.trace.parquet_schema import open_trace
from drivelab.trace.records import refuse_source, writable
from drivelab.trace.trace_catalogue import sha256_of

_DESCRIPTION = (
    "This protocol runs the main I/O streams of a trace as cells of a loop, each for its share of the time, until "
    "steady state. It measures how a drive serves these streams one after another. The streams' order, pauses and "
    "mixture are lost; the comments at the top of the file list all losses. A replay of the trace is closer to the "
    "application."
)
DEEPEST = 4096
"""Largest queue depth of the protocol grammar."""
_SOURCES = {
    "class": "the trace: one thread, mean depth while any request was in flight, touched share of the capacity",
    "condition.purge": "PTS 2.0, purge before every test",
    "condition.settle": "ours; a purge may continue in the background; the PTS does not specify it",
    "condition.fill": "PTS 2.0, workload-independent preconditioning, 2 x user capacity, sequential 128 KiB writes",
    "condition.fill.queue_depth": "ours; not specified, and it does not change the written data",
    "loop.cells": "the trace: its most frequent streams (direction, size, random or sequential), each with its share "
    "of the reads and writes, and its mean depth while in flight",
    "loop.runtime": "PTS 2.0, on average one minute per cell; shares divide the round",
    "loop.until.steady_state": "PTS 2.0, definition of steady state, at most 25 rounds",
    "loop.until.steady_state.track": "ours; the most frequent read stream and the most frequent write stream",
}


def protocol_text(equivalent: Equivalent, name: str, provenance: Mapping[str, Any], file: str, sha256: str) -> str:
    """Return the YAML of protocol `name`; `file` and `sha256` identify the trace."""
    title = provenance.get("title") or provenance.get("application") or provenance.get("name") or file
    marks = [f"{sum(provenance[key].values())} {word}" for key, word in
             (("lost", "events lost"), ("unmatched", "unmatched events")) if provenance.get(key)]  # fmt: skip
    derived = [str(step.get("step")) for step in provenance.get("derived", [])]
    source = (
        f"derived from the trace {file} (SHA-256 {sha256[:16]}) by 'drivelab trace synthesise': its I/O streams after "
        "SNIA RWSW PTS as a task-based synthetic workload (SNIA PTS slides)"
        + (f"; the trace is lossy: {', '.join(marks)}" if marks else "")
        + (f"; the trace was made by {', '.join(derived)}" if derived else "")
    )
    depth, range_pct = whole_depth(equivalent.depth), equivalent.active_range_pct
    threads = f"{{threads: 1, queue_depth: {depth}, active_range: {range_pct:.2f}%}}"
    shown = sum(stream.share_pct for stream in equivalent.streams)
    lines = [
        f"# {len(equivalent.streams)} I/O streams with {shown:.3g} % of the trace's {equivalent.transfers} "
        "reads and writes.",
        "# This protocol loses these properties of the trace:",
        *(line for text in limits(equivalent) for line in _comment(text)),
        f"name: {name}",
        f"title: {_quoted('Synthetic equivalent of: ' + str(title))}",
        f"source: {_quoted(source)}",
        f"description: {_quoted(_DESCRIPTION)}",
        "class:",
        f"  enterprise: {threads}",
        f"  client: {threads}",
        "condition:",
        "  purge: required",
        "  settle: 30s",
        "  fill: {pattern: sequential, block_size: 128KiB, capacity_multiple: 2, queue_depth: 32}",
        "measure:",
        "  - loop:",
        "      cells:   # by descending share",
        *(f"        - {_cell(stream)}" for stream in equivalent.streams),
        "      runtime: 60s",
        "      until:",
        "        steady_state:",
        "          window: 5",
        "          max_rounds: 25",
        "          data_excursion: 20%",
        "          slope_excursion: 10%",
        "          track:",
        *(f"            - {_tracked(stream)}" for stream in _leading(equivalent)),
        "scale:",
        "  demo:",
        "    settle: 200ms",
        "    loop: {runtime: 700ms}",
        "sources:",
        *(f"  {key}: {_quoted(text)}" for key, text in _SOURCES.items()),
    ]
    return "\n".join(lines) + "\n"


def whole_depth(depth: float | None) -> int:
    """Round a depth for a cell: at least 1."""
    return min(max(round(depth or 1.0), 1), DEEPEST)


def workload(stream: Stream) -> str:
    """Return a stream's workload in PTS notation."""
    pattern, reads = _pattern(stream), _read_share(stream)
    return Cell(pattern, reads, stream.length_bytes, threads=1, queue_depth=1).workload


def _cell(stream: Stream) -> str:
    share = f"{max(stream.share_pct, 1e-4):.4f}".rstrip("0").rstrip(".")
    fields = f"{_fields(stream)}, queue_depth: {whole_depth(stream.depth)}, share: {share}%"
    depth = "unknown" if stream.depth is None else f"{stream.depth:.2f}"
    return f"{{{fields}}}   # {workload(stream)}: {stream.requests} requests, depth {depth}"


def _tracked(stream: Stream) -> str:
    return f"{{{_fields(stream)}, metric: iops}}"


def _fields(stream: Stream) -> str:
    size = format_size(stream.length_bytes)
    return f"pattern: {_pattern(stream)}, read_share: {_read_share(stream)}, block_size: {size}"


def _pattern(stream: Stream) -> str:
    return "sequential" if stream.sequential else "random"


def _read_share(stream: Stream) -> int:
    return 100 if stream.operation == "read" else 0


def _leading(equivalent: Equivalent) -> list[Stream]:
    """Return the most frequent stream of each direction."""
    first: dict[str, Stream] = {}
    for stream in equivalent.streams:
        first.setdefault(stream.operation, stream)
    return list(first.values())


def _comment(text: str) -> list[str]:
    return wrap(_one_line(text), 110, initial_indent="# * ", subsequent_indent="#   ", break_long_words=False)


def _quoted(text: str) -> str:
    """Quote a text as JSON, which is valid YAML."""
    return json.dumps(_one_line(text), ensure_ascii=False)


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_SECTOR_BYTES = 512


@dataclass(frozen=True)
class Report:
    """The written protocol and its equivalent."""

    output: Path
    name: str
    equivalent: Equivalent

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return {
            "protocol": str(self.output),
            "name": self.name,
            **asdict(self.equivalent),
            "streams": [{"workload": workload(stream), **asdict(stream)} for stream in self.equivalent.streams],
            "active_range_pct": self.equivalent.active_range_pct,
            "left_out_pct": self.equivalent.left_out_pct,
            "not_carried_over": list(limits(self.equivalent)),
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as text lines."""
        equivalent = self.equivalent
        yield f"{self.output}: protocol '{self.name}', {len(equivalent.streams)} streams"
        yield f"  {'share':>7}  {'requests':>10}  {'depth':>5}  stream"
        for stream in equivalent.streams:
            depth = whole_depth(stream.depth)
            yield f"  {stream.share_pct:6.2f}%  {stream.requests:10}  {depth:5}  {workload(stream)}"
        yield "Lost properties of the trace:"
        for text in limits(equivalent):
            yield f"  * {text}"


def synthesise(
    source: Path, output: Path, *, streams: int = 9, name: str | None = None, block_bytes: int = _SECTOR_BYTES
) -> Report:
    """Write the synthetic equivalent of a trace as a protocol, in bounded memory.

    Raises UserError when the source is not a trace or has no reads and writes, or the output name is unsuitable.
    """
    name = name or output.stem
    if output.suffix != ".yaml":
        raise UserError(f"{output}: does not end in .yaml; name the protocol like config/protocols/NAME.yaml")
    if not _NAME.fullmatch(name):
        raise UserError(f"{output}: '{name}' is not a protocol name; use lower-case letters, digits and hyphens")
    if name != output.stem:
        raise UserError(f"{output}: protocol '{name}' must be in a file '{name}.yaml'; change one of the names")
    if streams < 1:
        raise UserError(f"the number of streams is {streams}; choose 1 or more")
    if block_bytes < _SECTOR_BYTES or block_bytes & (block_bytes - 1):
        raise UserError(
            f"a block of {block_bytes} B is not a power of two of at least {_SECTOR_BYTES} B; no drive has such blocks"
        )
    refuse_source(output, [source])
    with open_trace(source) as trace:
        if not trace.rows:
            raise UserError(f"{source}: has no workload: no read or write moves data")
        equivalent = measure(source, streams=streams, block_bytes=block_bytes)
        text = protocol_text(equivalent, name, trace.provenance, source.name, sha256_of(source))
    with writable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        # Check the protocol as a study would, before it replaces an existing file.
        with TemporaryDirectory(dir=output.parent, prefix=".synthesise-") as folder:
            draft = Path(folder) / output.name
            draft.write_text(text, encoding="utf-8")
            protocol = load(draft)
            for drive_class in ("enterprise", "client"):
                for scale in (None, "demo"):
                    resolve(protocol, drive_class, scale, {}, str(output))
            draft.replace(output)
    return Report(output, name, equivalent)
