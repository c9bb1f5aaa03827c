"""`drivelab trace info`: show the statistics of a trace as text, JSON, tables or figures."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivelab.cli.completion import completed_by, traces
from drivelab.core.terminal import print_table, say
from drivelab.core.units import format_amount, format_duration, format_size
from drivelab.plan.loops import time_words
from drivelab.report.numbers import is_missing

if TYPE_CHECKING:
    import pandas as pd

_STREAMS = 9


def add_actions(actions: Any) -> None:
    """Register `info` with the actions of `drivelab trace`."""
    more = "Characterises a trace of any length in bounded memory. docs/trace_statistics.md defines the numbers."
    action = actions.add_parser("info", help="show the statistics of a trace", description=more)
    words = "trace in Parquet, or a name of the catalogue in traces/"
    completed_by(action.add_argument("file", metavar="FILE", help=words), traces)
    action.add_argument("--tables", type=Path, metavar="DIR", help="write the tables to DIR as Parquet")
    action.add_argument("--figures", type=Path, metavar="DIR", help="draw the figures to DIR as SVG and PNG")
    action.add_argument("--json", action="store_true", help="print the result as JSON")
    action.set_defaults(handler=_info)


def _info(options: argparse.Namespace) -> int:
    from drivelab.trace import trace_catalogue
    from drivelab.trace.parquet_schema import open_trace
    from drivelab.trace.statistics.count import count, row_of

    path = trace_catalogue.locate(options.file)
    tables = count(path, path.stem)
    if options.tables is not None:
        from drivelab.tables import io

        for name, table in tables.items():
            io.write(table, options.tables / f"{name}.parquet", name)
    if options.figures is not None:
        from drivelab.figures.base import sheets
        from drivelab.figures.registry import TRACE_FIGURES

        sheets.draw_trace(TRACE_FIGURES, tables, options.figures)
    if options.json:
        with open_trace(path) as file:
            provenance = file.provenance
        records = {name: json.loads(table.to_json(orient="records")) for name, table in tables.items()}
        print(json.dumps({**row_of(tables), "provenance": provenance, "tables": records}, indent=1))
    else:
        _show(tables)
    return 0


def _show(tables: Mapping[str, pd.DataFrame]) -> None:
    facts = tables["trace_overview"].iloc[0]
    say(facts["trace"] + (f": {facts['title']}" if facts["title"] else ""), _origin(facts))
    say(*(f"{mark.upper()} {reason}" for mark, reason in zip(facts["marks"], facts["notes"], strict=True)))
    print_table(("", ""), ((name, words) for name, words in _lines(facts) if words))
    _print_operations(tables["trace_operations"])
    say(_streams(tables["trace_streams"], facts), _notes(facts))


def _origin(facts: pd.Series) -> str:
    capacity = facts["capacity_bytes"]
    parts = (
        f"application {facts['application']}" if facts["application"] else None,
        f"captured with {facts['backend']}" if facts["backend"] else None,
        f"drive of {format_amount(int(capacity))}" if not is_missing(capacity) else None,
        f"kernel {facts['kernel']}" if facts["kernel"] else None,
        f"begins {facts['first_event']}" if facts["first_event"] else None,
    )
    return "; ".join(part for part in parts if part) or "the trace does not record its origin"


def _lines(facts: pd.Series) -> tuple[tuple[str, str], ...]:
    def depth(name: str) -> str:
        values = [facts[f"{name}_{what}"] for what in ("mean", "p99", "max")]
        return "{} mean, {} p99, {} largest".format(*map(_plain, values)) if not is_missing(values[0]) else "unknown"

    counts = [f"{facts[name]:,} {name}" for name in ("split", "requeued") if facts[name]]
    merged = f"{int(facts['merged']):,} merged" if not is_missing(facts["merged"]) else "merges unknown"
    return (
        ("requests", f"{facts['requests']:,} in {_time(facts['duration_s'] * 1e6)}; {', '.join([merged, *counts])}"),
        (
            "footprint",
            f"{format_amount(facts['footprint_bytes'])}: read {format_amount(facts['read_footprint_bytes'])}, "
            f"written {format_amount(facts['write_footprint_bytes'])}, in blocks of "
            f"{format_size(int(facts['footprint_block_bytes']))}",
        ),
        (
            "sequential",
            f"{_share(facts['sequential_share_pct'])} of reads and writes, "
            f"{_share(facts['sequential_bytes_share_pct'])} of their bytes; strictly "
            f"{_share(facts['strict_sequential_share_pct'])}",
        ),
        ("queue depth", f"{depth('queue_depth')}; at the drive {depth('dispatch_depth')}"),
        (
            "arrivals",
            f"every {_time(facts['interarrival_mean_us'])} on average, p50 {_time(facts['interarrival_p50_us'])}, "
            f"p99 {_time(facts['interarrival_p99_us'])}; variation {_plain(facts['interarrival_variation'])}",
        ),
        ("idle", f"{_share(facts['idle_share_pct'])} of the time ({facts['idle_basis']}{_threshold(facts)})"),
        ("errors", ", ".join(facts["error_codes"])),
    )


def _print_operations(operations: pd.DataFrame) -> None:
    phase = "Q2C" if operations["q2c_max_us"].notna().any() else "D2C"  # a trace may lack queue times
    numbers = ("requests", "bytes", "size p50", "largest", "seq.", f"{phase} p50", "p99", "largest")
    rows = []
    for row in operations[operations["requests"] > 0].to_dict("records"):
        sizes = [format_amount(row[name]) if row["bytes"] else "" for name in ("p50_bytes", "max_bytes")]
        names = [f"{phase.lower()}_{name}_us" for name in ("p50", "p99", "max")]
        rows.append([
            row["operation"],
            f"{row['requests']:,}",
            format_amount(row["bytes"]) if row["bytes"] else "",
            *sizes,
            _share(row["sequential_share_pct"]) if not is_missing(row["sequential_share_pct"]) else "",
            *(_time(row[name]) for name in names),
        ])  # fmt: skip
    print_table(("operation", *numbers), rows, numbers)


def _streams(streams: pd.DataFrame, facts: pd.Series) -> str:
    if streams.empty:
        return "no reads or writes of data, so no I/O streams"
    top = [f"{stream.stream} {stream.share_pct:.1f} %" for stream in streams.head(_STREAMS).itertuples()]
    main = int(facts["main_streams"])
    cover = f"{main:,} of {len(streams):,} cover {facts['main_streams_share_pct']:.0f} % of reads and writes"
    return f"I/O streams ({cover}): {', '.join(top)}"


def _notes(facts: pd.Series) -> str:
    """Return the limits of the numbers' accuracy."""
    parts = [f"percentiles of times within {facts['bin_error_pct']:.1f} %"]
    if facts["time_resolution_ns"] > 1:
        parts.append(f"times are multiples of {_time(facts['time_resolution_ns'] / 1e3)}")
    for name in ("without_completion", "without_dispatch"):
        if facts[name]:
            parts.append(f"{facts[name]:,} requests {name.replace('_', ' ')}, left out of the numbers that need it")
    if facts["times_backwards"]:
        parts.append(f"{facts['times_backwards']:,} requests with times that contradict each other, left out")
    if facts["length_step_bytes"] > 1:
        parts.append(f"lengths rounded up to multiples of {facts['length_step_bytes']} B, to limit their number")
    return "; ".join(parts)


def _threshold(facts: pd.Series) -> str:
    return "" if facts["idle_basis"] == "nothing in flight" else f", longer than {_time(facts['idle_gap_s'] * 1e6)}"


def _plain(value: float) -> str:
    return f"{value:.3g}" if not is_missing(value) else "unknown"


def _share(value: float) -> str:
    return f"{value:.1f} %" if not is_missing(value) else "-"


def _time(value_us: float) -> str:
    """Format a time with a fitting unit; `-` if unknown."""
    if is_missing(value_us):
        return "-"
    return time_words(value_us) if value_us < 999.5e6 else format_duration(value_us / 1e6)
