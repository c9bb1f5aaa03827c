"""Export a trace to a file of another format."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from drivelab.core.errors import UserError, suggestion
from drivelab.trace.formats import all_formats
from drivelab.trace.formats.common.trace_format import ExportReport
from drivelab.trace.parquet_schema import open_trace
from drivelab.trace.records import writable

_CODECS = {".gz": "gzip", ".zst": "zstd"}


def export_trace(path: Path, output: Path, *, format_name: str, volume: str = "trace") -> ExportReport:
    """Write a trace in another format, compressed for the suffixes .gz and .zst.

    `volume` is the file name in formats that have one. On failure there is no output. Raises UserError for an unknown
    format, an unreadable trace, or an unwritable output.
    """
    writers = {form.name: form.write for form in all_formats().values() if form.write}
    if format_name not in writers:
        raise UserError(f"export format '{format_name}' is unknown; {suggestion(format_name, list(writers))}")
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    with writable(output, [path]), open_trace(path) as trace:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            with pa.output_stream(str(part), compression=_CODECS.get(output.suffix)) as sink:
                report = writers[format_name](trace, sink, volume)
            part.replace(output)
        finally:
            with suppress(OSError):
                part.unlink()
        return report
