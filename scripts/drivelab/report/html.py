"""The report as one self-contained HTML file: no network, no font, readable without scripts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from drivelab.core.errors import UserError
from drivelab.figures.base.svg import values_of, without_values
from drivelab.report.document import Download, Report
from drivelab.report.numbers import size
from drivelab.report.sections.proof import proofs_of
from drivelab.report.view import Figure, Proof
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS

_VIEW_BOX = re.compile(r"<svg\b[^>]*\bviewBox=[\"']\s*[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]+)[\s,]+([\d.]+)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_ATTRIBUTE = re.compile(r"=\"([^\"']*)\"")
_UNSAFE = re.compile(r"[^\w !$()*+,\-./:;<=>?@\[\]^`{|}~']+", re.ASCII)
"""Characters that need an escape in a data URI or a double-quoted attribute, such as `&`, `"`, `#`, `%`."""


def picture(figure: Mapping[str, Any], several: bool = False) -> Figure:
    """Return a figure of the report from {drive, measurement, recording, name, title, caption, svg}.

    `svg` is text or a path. The values that the SVG carries become the figure's `values`.
    The title names the recording if a page has `several`, and the test if the figure has no drive.
    Raises UserError for a file that is missing or not an SVG.
    """
    given = figure["svg"]
    svg = given if isinstance(given, str) and given.lstrip().startswith("<") else _read(Path(given))
    if "<svg" not in svg:
        raise UserError(f"figure '{figure['name']}' is not an SVG; delete {given!s:.100} and run the study again")
    box = _VIEW_BOX.search(svg)
    width, height = (round(float(box[1])), round(float(box[2]))) if box else (640, 400)
    part_of = (figure.get("recording") if several else None) if figure.get("drive") else figure.get("measurement")
    title = f"{figure['title']}, {part_of}" if part_of else str(figure["title"])
    caption = str(figure.get("caption") or "")
    named = f"{title} ({figure['drive']}, {figure['measurement']})" if figure.get("drive") else title
    return Figure(
        title=title,
        caption=caption,
        alt=named,
        uri=data_uri(without_values(svg)),
        width=width,
        height=height,
        values=values_of(svg),
        recording=str(figure.get("recording") or figure.get("trace") or ""),
        group="" if figure.get("drive") or figure.get("trace") else str(figure.get("measurement") or ""),
    )


def data_uri(svg: str) -> Markup:
    """Return an SVG as a data URI that is safe in a double-quoted HTML attribute.

    It is percent-encoded: Base64 of text is a fifth longer and does not shrink when the report is compressed.
    """
    in_single_quotes = _TAG.sub(lambda tag: _ATTRIBUTE.sub(r"='\1'", tag[0]), svg)
    escaped = _UNSAFE.sub(lambda unsafe: quote(unsafe[0]), in_single_quotes.replace("\n", " "))
    return Markup(f"data:image/svg+xml;charset=utf-8,{escaped}")  # only _UNSAFE has HTML markup for an attribute


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{path}: cannot be read as a figure; delete it and run the study again") from None


_SCRIPTS = ("report.js", "charts.js")
"""Templates that make up the one script of a report."""


def encoded(data: bytes) -> str:
    """Encode bytes in base64."""
    return base64.b64encode(data).decode()


def packed(text: str) -> str:
    """Pack text as gzip in base64, for `DecompressionStream`; the result is deterministic."""
    return encoded(gzip.compress(text.encode(), mtime=0))


MOST_BYTES = 16 << 10
"""Largest table that the report embeds besides _RESULTS: cells, seconds and histograms would be most of the page."""
_RESULTS = ("summary", "deltas")
_MOST_DATA_BYTES = 1 << 20
"""A table with more data in its files is not put together."""
_ZSTD_LEVEL = 12
"""Level 19 takes four times the time for 2 % less."""
_MEANINGS = {
    "summary": "every value of every test and drive, with samples, spread, interval, verdict and evidence",
    "deltas": "every comparison with the basis, with interval, p-values, verdict, doubts and remarks",
    "cells": "every cell: workload, speed, latency, telemetry, folder of its evidence",
    "latency_bins": "latency histograms, by cell, direction and bin",
    "series": "IOPS, throughput and latency second by second",
    "steady_state": "steady-state determination of every tracked variable",
    "saturation": "cliff and level of every soak that saturates a drive",
    "findings": "results of every detector, also those that found nothing",
    "exclusions": "data excluded from every result, and why",
    "differences": "every difference between the compared drives",
    "conditions": "the conditions of every recording",
    "telemetry": "temperature, throttling, load, CPU time and power over time",
    "replays": "every run of every trace: access time, throughput, score, percentiles, fidelity",
    "replay_passes": "passes over all traces of a set",
    "replay_operations": "reads, writes, flushes, discards: planned, issued, completed and failed counts, latency",
    "replay_streams": "I/O streams and processes of the replays",
    "replay_latency": "latency distribution of the replays",
    "replay_issue_errors": "distribution of the times from deadline to issue",
    "replay_over_time": "rate, throughput, depth and latency during each replay, planned and replayed",
    "replay_mappings": "changes that mapped each trace onto each drive",
    "application_runs": "every run of an application: duration and its parts, bytes, CPU time",
    "load_rates": "every rate of a load: outcome, response times with the interval of the limited percentile, doubts",
    "drives": "the drives, as they identify themselves",
    "hosts": "the hosts",
    "model_deltas": "each model against the basis, from its specimens",
    "variation": "what makes the values of each test vary",
    "traces": "the replayed traces",
    "trace_overview": "each trace: requests, bytes, footprint, randomness, unknown properties",
    "trace_operations": "operations of each trace",
    "trace_over_time": "each trace over time",
    "trace_sizes": "request sizes of each trace",
    "trace_interarrival": "times between the requests of each trace",
    "trace_burstiness": "burstiness of each trace",
    "trace_latency": "latencies that each trace recorded",
    "trace_heat": "where on the drive each trace reads and writes, and when",
    "trace_streams": "I/O streams and processes of each trace",
}


def downloads(paths: Iterable[Path]) -> tuple[Download, ...]:
    """Return a download for each table in `paths`; each file is named after its table.

    A table without rows, or larger than `MOST_BYTES` and not in _RESULTS, has no file. Raises UserError for an
    unreadable file, TableError for a file that does not match its schema.
    """
    files: dict[str, list[Path]] = {name: [] for name in _MEANINGS}
    for path in paths:
        files[path.stem].append(path)
    return tuple(_download(name, of_name) for name, of_name in files.items() if of_name)


def _download(name: str, paths: list[Path]) -> Download:
    rows = size_bytes = 0
    parts = [SCHEMAS[name].empty_table()]
    for path in paths:
        with io.opened(path) as file:
            rows += file.metadata.num_rows
            # without the footer: each recording's file repeats the column metadata
            size_bytes += path.stat().st_size - int(file.metadata.serialized_size)
            if size_bytes <= _MOST_DATA_BYTES and file.metadata.num_rows:
                parts.append(file.read().replace_schema_metadata(None))
    fits = rows > 0 and size_bytes <= _MOST_DATA_BYTES
    parquet = _parquet(pa.concat_tables(parts), name) if fits else b""
    return Download(
        name, _MEANINGS[name], rows, size_bytes, parquet if name in _RESULTS or len(parquet) <= MOST_BYTES else b""
    )


def _parquet(table: pa.Table, name: str) -> bytes:
    """Return a table as a small file: without dictionaries, statistics and Arrow's copy of the schema."""
    whole, output = io.checked(table, name), BytesIO()
    io.pack(whole, output, whole.schema.metadata, compression="zstd", compression_level=_ZSTD_LEVEL,
            use_dictionary=False, write_statistics=False, store_schema=False)  # fmt: skip
    return output.getvalue()


_TEMPLATES = Path(__file__).parent / "templates"


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(report: Report, jobs: Mapping[str, str] | None = None) -> str:
    """Return the HTML of a report with all texts escaped.

    `jobs` gives the text of fio jobs by path, from `drivelab.report.sections.proof.fio_jobs`.
    """
    environment = _environment()
    proofs = proofs_of(report)
    script = "".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    environment.filters.update(packed=packed, encoded=encoded, shown=_shown, size=size)
    environment.globals.update(proofs=proofs, most_bytes=MOST_BYTES)
    evidence = {"proofs": [_packed(proof, proofs) for proof in proofs], "jobs": dict(jobs or {})}
    return environment.get_template("report.html.j2").render(
        report=report,
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),  # drivelab's file, no data in it
        script=Markup(script),  # likewise
        script_sources=f"'sha256-{encoded(hashlib.sha256(script.encode()).digest())}'",
        evidence=packed(json.dumps(evidence, ensure_ascii=False, separators=(",", ":"))),
    )


def _packed(proof: Proof, numbers: Mapping[Proof, int]) -> list[Any]:
    """Return a proof for the script: title, facts, recordings, evidence, numbers of its parts."""
    return [proof.title, proof.facts, proof.recordings, proof.evidence, [numbers[part] for part in proof.parts]]


def _shown(value: float) -> str:
    """Format a number with all digits, for the attribute used in sorting."""
    return repr(float(value)).removesuffix(".0")
