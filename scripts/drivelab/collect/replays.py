"""The tables of a recording's replays, from its journal and each replay's report and outcome."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from drivelab.collect.soundness_of_runs import judged_report, uncounted
from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay.evaluation.fidelity import issue_error_bins, latency_bins
from drivelab.replay.evaluation.over_time import over_time
from drivelab.replay.evaluation.passes import passes
from drivelab.replay.evaluation.requests import Requests
from drivelab.replay.outcome import OUTCOME_FILE, REPORT_FILE, read_outcome
from drivelab.tables.replay_schemas import REPLAY_TABLES


def _planned(steps: Sequence[Mapping[str, Any]]) -> tuple[dict[int, int], dict[str, bool]]:
    """Return the passes of each step, and whether those of a phase are all prepared in the same way.

    A step whose repeats continue until they agree is left out.
    """
    passes: dict[int, int] = {}
    phases: defaultdict[str, defaultdict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for number, step in enumerate(steps):
        ((kind, fields),) = step.items()
        if kind == "replay" and "passes" in fields["until"]:
            passes[number] = int(fields["until"]["passes"])
        if "phase" in fields:
            settings = {name: value for name, value in fields.items() if name != "phase_pass"}
            phases[fields["phase"]][fields["phase_pass"]].append((kind, settings))
    alike = {phase: all(of_pass == by_pass[min(by_pass)] for of_pass in by_pass.values())
             for phase, by_pass in phases.items()}  # fmt: skip
    return passes, alike


Columns = dict[str, Any]

_REQUESTS = (
    "operation",
    "preflush",
    "length_bytes",
    "deadline_ns",
    "issue_ns",
    "complete_ns",
    "error",
    "trace_latency_ns",
)
_FIELDS = {"read_ios": "read", "write_ios": "write", "flushes": "flush", "discards": "discard",
           "write_zeroes": "write-zeroes"}  # fmt: skip
_SAME_NAME = ("read_access_time_us", "write_access_time_us", "access_time_us", "bandwidth_mib_s", "busy_s", "score",
                  "duration_s", "trace_duration_s", "duration_ratio", "duration_basis", "order_inversions", "state",
                  "partial", "engine", "timing_mode", "dependencies")  # fmt: skip
"""Columns with the same name in report and table."""
_MAY_BE_NULL = ("phase", "taint_reason", "asked_passes", "alike_passes")
"""Columns that pandas converts to floats if some values are null."""
_LATENCIES = ("p50", "p99", "p999", "p9999", "p99999", "max")


def replay_tables(
    recording: Path,
    lines: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]],
    key: Mapping[str, Any],
    telemetry: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> dict[str, pd.DataFrame]:
    """Return all tables of REPLAY_TABLES from the journal's "replay" lines; empty tables without any.

    `steps` are those of the plan; `key` has the columns that identify the recording; `telemetry` returns the telemetry
    columns of a line. Memory holds one outcome at a time, with the needed columns only. A replay with invalid or
    negative numbers does not count; `taint_reason` says why. Raises UserError if a report or outcome is missing or
    damaged.
    """
    if not lines:
        return {name: pd.DataFrame(columns=schema.names) for name, schema in REPLAY_TABLES.items()}
    parts: dict[str, list[pa.Table]] = {name: [] for name in REPLAY_TABLES if name != "replay_passes"}
    planned_passes, alike = _planned(steps)
    for line in lines:
        directory = recording / line["directory"]
        report, unsound = judged_report(_report(directory / REPORT_FILE))
        run = {**key, **{name: line.get(name) for name in ("step", "phase", "phase_pass", "trace", "repeat")}}
        measured = telemetry(line)
        measured = {**measured, **uncounted(unsound, bool(line["warm"]), measured.get("taint_reason"))}
        counted = {"counted": measured["counted"]}
        replay = {**run, "warm": line["warm"], **_replay(line, report), **measured}
        replay["asked_passes"] = planned_passes.get(int(line["step"]))
        replay["alike_passes"] = alike.get(line.get("phase", ""))
        parts["replays"].append(_table([replay], "replays", {}))
        parts["replay_mappings"].append(_table([report["mapping"]], "replay_mappings", run))
        for name, frame in _counted(directory / OUTCOME_FILE, report).items():
            parts[name].append(_table(frame, name, {**run, **counted}))
    tables = {name: _concatenated(of_replays, name) for name, of_replays in parts.items()}
    tables["replay_mappings"] = tables["replay_mappings"].drop_duplicates(["step", "trace"], ignore_index=True)
    by_pass = passes(tables["replays"])
    nullable = {name: by_pass[name].astype(object).where(by_pass[name].notna(), None) for name in _MAY_BE_NULL}
    return {
        **tables,
        "replay_passes": _concatenated([_table(by_pass.assign(**nullable), "replay_passes", {})], "replay_passes"),
    }


def _report(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: cannot be read ({error}); restore the recording, or delete it to replay again"
        ) from None


def _counted(outcome: Path, report: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return the tables with many rows per replay: streams and operations as reported, others from requests."""
    requests = Requests(read_outcome(outcome, _REQUESTS))
    streams = [
        {"stream_kind": kind, **stream}
        for name, kind in (("streams", "stream"), ("processes", "process"))
        for stream in report[name]
    ]
    return {
        "replay_operations": pd.DataFrame(report["operations"]),
        "replay_streams": pd.DataFrame(streams),
        "replay_latency": latency_bins(requests),
        "replay_issue_errors": issue_error_bins(requests),
        "replay_over_time": over_time(requests),
    }


def _replay(line: Mapping[str, Any], report: Mapping[str, Any]) -> Columns:
    planned, issued = report["planned"], report["issued"]
    errors, wakeup = report["issue_error_us"] or {}, report["host"]["wakeup_us"] or {}
    # Older reports lack these.
    response, depth, overlaps = (report.get(name) or {} for name in ("response_us", "in_flight", "overlaps"))
    return {
        **{name: report[name] for name in _SAME_NAME},
        "timing": ReplayChoice.from_mapping(line["choice"]).timing.words(),
        "mapping": report["mapping"]["method"],
        "trace_marks": ", ".join("lossy" for mark in report["marks"] if mark.partition(":")[0] == "lossy") or None,
        "marks": report["marks"],
        "requests": _total(issued, "requests"),
        "planned_requests": _total(planned, "requests"),
        **{column: _count(issued, name, "requests") for column, name in _FIELDS.items()},
        **{f"planned_{column}": _count(planned, name, "requests") for column, name in _FIELDS.items()},
        "errors": _total(report["failed"], "requests"),
        **{f"issue_error_{name}_us": errors.get(name) for name in ("p50", "p95", "p99", "max")},
        "within_50us_pct": errors.get("within_50us_pct"),
        **_late(report["lateness_by"]),
        **{
            f"{prefix}{statistic}_in_flight": depth.get(source, {}).get(statistic)
            for source, prefix in (("replay", ""), ("trace", "trace_"))
            for statistic in ("most", "mean")
        },
        "overlapping_requests": overlaps.get("replay"),
        "trace_overlapping_requests": overlaps.get("trace"),
        **{f"wakeup_{name}_us": wakeup.get(name) for name in ("p50", "p95", "p99")},
        "read_bytes": _count(report["completed"], "read", "bytes"),
        "write_bytes": _count(report["completed"], "write", "bytes"),
        **{f"{name}_latency_us": report["latency_us"].get(name) for name in _LATENCIES},
        "response_time_us": response.get("mean"),
        **{f"{name}_response_us": response.get(name) for name in _LATENCIES},
        "trace_access_time_us": report["comparison"]["trace_latency_us"]["mean"],
    }


def _late(lateness_by: Mapping[str, Any] | None) -> Columns:
    if lateness_by is None:
        return {"late_by_depth_pct": None, "late_by_dependency_pct": None}
    total = sum(counts["requests"] for counts in lateness_by.values())
    return {f"late_by_{cause}_pct": 100 * lateness_by[cause]["requests"] / total for cause in ("depth", "dependency")}


def _count(counts: Mapping[str, Mapping[str, int]], operation: str, quantity: str) -> int:
    return int(counts.get(operation, {}).get(quantity, 0))


def _total(counts: Mapping[str, Mapping[str, int]], quantity: str) -> int:
    return sum(int(by_quantity[quantity]) for by_quantity in counts.values())


def _table(rows: pd.DataFrame | list[Any], name: str, run: Mapping[str, Any]) -> pa.Table:
    """Return the rows of table `name`, with the columns that identify the replay."""
    frame, schema = pd.DataFrame(rows), REPLAY_TABLES[name]
    if frame.empty:
        return schema.empty_table()
    own = pa.schema([field for field in schema if field.name not in run])
    table = pa.Table.from_pandas(frame, schema=own, preserve_index=False)
    shared = {field.name: pa.repeat(pa.scalar(run[field.name], field.type), len(frame))
              for field in schema if field.name in run}  # fmt: skip
    return pa.table([shared[field.name] if field.name in run else table[field.name] for field in schema], schema=schema)


def _concatenated(tables: list[pa.Table], name: str) -> pd.DataFrame:
    table = pa.concat_tables(tables)
    return table.to_pandas() if len(table) else pd.DataFrame(columns=REPLAY_TABLES[name].names)
