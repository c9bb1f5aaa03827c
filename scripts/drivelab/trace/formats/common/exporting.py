"""A trace to a file of another format."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.formats import all_formats, exportable
from drivelab.trace.outputs import refuse_source, writable
from drivelab.trace.schema import open_trace

_CODECS = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True)
class ExportReport:
    """What an export wrote and what the format could not carry, in requests by kind."""

    format: str
    requests: int
    """In the trace."""
    dropped: dict[str, int]
    altered: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def export_trace(path: Path, output: Path, *, format_name: str, volume: str = "trace") -> ExportReport:
    """Write a trace in another format, compressed when the output's name ends with .gz or .zst.

    `volume` is what formats that name a file call it. The output is there whole, or not at all. Raises UserError for an
    unknown format, a trace that cannot be read, or an output that cannot be written.
    """
    if format_name not in exportable():
        raise UserError(f"format '{format_name}' cannot be written; those that can are {', '.join(exportable())}")
    layout = all_formats()[format_name]
    assert layout.write is not None
    refuse_source(output, [path])
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    with writable(output), open_trace(path) as trace:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            with pa.output_stream(str(part), compression=_CODECS.get(output.suffix)) as sink:
                losses = layout.write(trace, sink, volume)
            part.replace(output)
        finally:
            with suppress(OSError):
                part.unlink()
        return ExportReport(format_name, trace.rows, dict(losses.dropped), dict(losses.altered))
