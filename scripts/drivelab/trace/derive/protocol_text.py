"""A synthetic equivalent as the text of a protocol file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from textwrap import wrap
from typing import Any

from drivelab.plan.cell import Cell
from drivelab.trace.derive.equivalent import Equivalent, Stream
from drivelab.trace.derive.limits import limits
from drivelab.units import format_size

_DESCRIPTION = (
    "The main I/O streams of a trace as cells of a loop, each with its share of the time, until steady state. It asks "
    "how a drive serves such streams one after another; their order, pauses and mixture in time are not carried over, "
    "as the comments at the top of the file say, so a replay of the trace itself says more of the application."
)
DEEPEST = 4096
"""That the grammar takes."""
_SOURCES = {
    "class": "the trace: one thread, mean depth while anything was in flight, share of the capacity that was touched",
    "condition.purge": "PTS 2.0, purge before every test",
    "condition.settle": "ours; what a purge begins may go on in the background, the PTS leaves it open",
    "condition.fill": "PTS 2.0, workload-independent preconditioning, 2 x user capacity, sequential 128 KiB writes",
    "condition.fill.queue_depth": "ours; the specification leaves it open and it does not change what is written",
    "loop.cells": "the trace: its most frequent streams (direction, size, random or sequential), each with its share "
    "of the reads and writes and its mean depth while it was in flight",
    "loop.runtime": "PTS 2.0, one minute for each cell on the mean; shares divide the round",
    "loop.until.steady_state": "PTS 2.0, definition of steady state, at most 25 rounds",
    "loop.until.steady_state.track": "ours; the most frequent stream that reads and the one that writes",
}


def protocol_text(found: Equivalent, name: str, provenance: Mapping[str, Any], file: str, sha256: str) -> str:
    """YAML of a protocol called `name`; `file` and its checksum say where the trace is from."""
    title = provenance.get("title") or provenance.get("application") or provenance.get("name") or file
    marks = [f"{sum(provenance[key].values())} {word}" for key, word in
             (("lost", "events lost"), ("unmatched", "events without a partner")) if provenance.get(key)]  # fmt: skip
    derived = [str(one.get("step")) for one in provenance.get("derived", [])]
    source = (
        f"derived from the trace {file} (SHA-256 {sha256[:16]}) by 'drivelab trace synthesise': its I/O streams after "
        "SNIA RWSW PTS as a task-based synthetic workload (SNIA PTS slides)"
        + (f"; the trace is lossy: {', '.join(marks)}" if marks else "")
        + (f"; the trace was made by {', '.join(derived)}" if derived else "")
    )
    threads = f"{{threads: 1, queue_depth: {whole_depth(found.depth)}, active_range: {found.active_range_pct:.2f}%}}"
    shown = sum(stream.share_pct for stream in found.streams)
    lines = [
        f"# {len(found.streams)} I/O streams with {shown:.3g} % of the trace's {found.transfers} reads and writes.",
        "# What this protocol does not carry over from the trace:",
        *(line for text in limits(found) for line in _comment(text)),
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
        "      cells:   # by falling share",
        *(f"        - {_cell(stream)}" for stream in found.streams),
        "      runtime: 60s",
        "      until:",
        "        steady_state:",
        "          window: 5",
        "          max_rounds: 25",
        "          data_excursion: 20%",
        "          slope_excursion: 10%",
        "          track:",
        *(f"            - {_tracked(stream)}" for stream in _leading(found)),
        "scale:",
        "  demo:",
        "    settle: 200ms",
        "    loop: {runtime: 700ms}",
        "sources:",
        *(f"  {key}: {_quoted(text)}" for key, text in _SOURCES.items()),
    ]
    return "\n".join(lines) + "\n"


def whole_depth(depth: float | None) -> int:
    """As a cell takes it: at least one."""
    return min(max(round(depth or 1.0), 1), DEEPEST)


def workload(stream: Stream) -> str:
    """In the words of the PTS."""
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


def _leading(found: Equivalent) -> list[Stream]:
    """The most frequent stream of each direction."""
    first: dict[str, Stream] = {}
    for stream in found.streams:
        first.setdefault(stream.operation, stream)
    return list(first.values())


def _comment(text: str) -> list[str]:
    return wrap(_one_line(text), 110, initial_indent="# * ", subsequent_indent="#   ", break_long_words=False)


def _quoted(text: str) -> str:
    """JSON is YAML."""
    return json.dumps(_one_line(text), ensure_ascii=False)


def _one_line(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text)
