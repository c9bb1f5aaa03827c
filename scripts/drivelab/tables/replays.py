"""The tables of the replays in a recording: from its journal, and from the report and the outcome that each left."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from drivelab.analysis.replay_latency import issue_error_bins, latency_bins
from drivelab.analysis.replay_over_time import over_time
from drivelab.analysis.replay_passes import passes
from drivelab.errors import UserError
from drivelab.replay.choice import ReplayChoice
from drivelab.replay.outcome import OUTCOME_FILE, REPORT_FILE, read_outcome
from drivelab.tables.replay_plan import asked
from drivelab.tables.replay_schemas import REPLAY_TABLES
from drivelab.tables.run_soundness import judged_report, uncounted

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
"""Named in the report as in the table."""
_MAY_BE_NULL = ("phase", "taint_reason", "asked_passes", "alike_passes")
"""What pandas takes for numbers where some or all of it is null."""
_LATENCIES = ("p50", "p99", "p999", "p9999", "p99999", "max")


def replay_tables(
    recording: Path,
    lines: Sequence[Mapping[str, Any]],
    key: Mapping[str, Any],
    telemetry: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> dict[str, pd.DataFrame]:
    """All tables of REPLAY_TABLES from the journal's lines of event "replay"; empty ones without any.

    `key` holds the columns that say which recording it is, `telemetry` gives the telemetry columns of a line. One
    outcome at a time is in memory, with the columns that are needed. A replay whose numbers are none, or below zero,
    does not count, and `taint_reason` says why. Raises UserError when a report or an outcome is no longer there or
    sound.
    """
    if not lines:
        return {name: pd.DataFrame(columns=schema.names) for name, schema in REPLAY_TABLES.items()}
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in REPLAY_TABLES}
    wanted = asked(recording)
    for line in lines:
        directory = recording / line["directory"]
        report, unsound = judged_report(_report(directory / REPORT_FILE))
        run = {**key, **{name: line.get(name) for name in ("step", "phase", "phase_pass", "trace", "repeat")}}
        told = telemetry(line)
        told = {**told, **uncounted(unsound, bool(line["warm"]), told.get("taint_reason"))}
        counted = {"counted": told["counted"]}
        replay = {**run, "warm": line["warm"], **_replay(line, report), **told}
        replay |= wanted.of(int(line["step"]), line.get("phase"))
        found["replays"].append(pd.DataFrame([replay]))
        found["replay_mappings"].append(_frame([report["mapping"]], "replay_mappings", run))
        for name, frame in _counted(directory / OUTCOME_FILE, report).items():
            found[name].append(_frame(frame, name, {**run, **counted}))
    tables = {name: _together(frames, name) for name, frames in found.items()}
    tables["replay_mappings"] = tables["replay_mappings"].drop_duplicates(["step", "trace"], ignore_index=True)
    in_passes = passes(tables["replays"])
    words = {name: in_passes[name].astype(object).where(in_passes[name].notna(), None) for name in _MAY_BE_NULL}
    return {**tables, "replay_passes": _together([in_passes.assign(**words)], "replay_passes")}


def _report(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: cannot be read ({error}); restore the recording, or remove it to replay again"
        ) from None


def _counted(outcome: Path, report: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """What has many rows for each replay: streams and operations as reported, the rest counted from the requests."""
    requests = read_outcome(outcome, _REQUESTS)
    streams = [
        {"stream_kind": kind, **one}
        for name, kind in (("streams", "stream"), ("processes", "process"))
        for one in report[name]
    ]
    return {
        "replay_operations": pd.DataFrame([{**one, **_seen(report, one["operation"])} for one in report["operations"]]),
        "replay_streams": pd.DataFrame(streams),
        "replay_latency": latency_bins(requests),
        "replay_issue_errors": issue_error_bins(requests),
        "replay_over_time": over_time(requests),
    }


def _seen(report: Mapping[str, Any], operation: str) -> Columns:
    """What the kernel saw of an operation."""
    seen = ((report["kernel"] or {}).get("operations", {}).get(operation) or {}).get("seen") or {}
    return {f"seen_{what}": seen.get(what) for what in ("requests", "bytes")}


def _replay(line: Mapping[str, Any], report: Mapping[str, Any]) -> Columns:
    planned, issued = report["planned"], report["issued"]
    errors, wakeup = report["issue_error_us"] or {}, report["host"]["wakeup_us"] or {}
    return {
        **{name: report[name] for name in _SAME_NAME},
        "timing": ReplayChoice.from_mapping(line["choice"]).timing.words(),
        "mapping": report["mapping"]["method"],
        "trace_marks": ", ".join(one for one in (mark.partition(":")[0] for mark in report["marks"]) if one == "lossy")
        or None,
        "marks": report["marks"],
        "requests": _total(issued, "requests"),
        "planned_requests": _total(planned, "requests"),
        **{column: _count(issued, name, "requests") for column, name in _FIELDS.items()},
        **{f"planned_{column}": _count(planned, name, "requests") for column, name in _FIELDS.items()},
        "errors": _total(report["failed"], "requests"),
        **{f"issue_error_{name}_us": errors.get(name) for name in ("p50", "p95", "p99", "max")},
        "within_50us_pct": errors.get("within_50us_pct"),
        **_late(report["lateness_by"]),
        **_in_flight(report),
        **{f"wakeup_{name}_us": wakeup.get(name) for name in ("p50", "p95", "p99")},
        **_kernel(report),
        "read_bytes": _count(report["completed"], "read", "bytes"),
        "write_bytes": _count(report["completed"], "write", "bytes"),
        **{f"{name}_latency_us": report["latency_us"].get(name) for name in _LATENCIES},
        "trace_access_time_us": report["comparison"]["trace_latency_us"]["mean"],
        "dropped": _dropped(report),
    }


def _in_flight(report: Mapping[str, Any]) -> Columns:
    """Nulls for a report of before there was such a thing."""
    depth = report.get("in_flight") or {}
    return {
        f"{prefix}{what}_in_flight": depth.get(of, {}).get(what)
        for of, prefix in (("replay", ""), ("trace", "trace_"))
        for what in ("most", "mean")
    }


def _late(lateness_by: Mapping[str, Any] | None) -> Columns:
    if lateness_by is None:
        return {"late_by_depth_pct": None, "late_by_dependency_pct": None}
    whole = sum(one["requests"] for one in lateness_by.values())
    return {f"late_by_{who}_pct": 100 * lateness_by[who]["requests"] / whole for who in ("depth", "dependency")}


def _kernel(report: Mapping[str, Any]) -> Columns:
    kernel = report["kernel"] or {}
    errors = kernel.get("issue_error_us") or {}
    return {
        **{f"kernel_issue_error_{name}_us": errors.get(name) for name in ("p50", "p95", "p99")},
        **{f"kernel_{name}": kernel.get(name) for name in ("missing", "extra", "order_inversions", "duration_ratio")},
        "kernel_bursts": (kernel.get("bursts") or {}).get("planned"),
        "kernel_bursts_kept": (kernel.get("bursts") or {}).get("kept"),
        "kernel_reason": kernel.get("times_reason") if kernel else report["kernel_reason"],
    }


def _dropped(report: Mapping[str, Any]) -> str:
    """What an engine that came to its end left out, which is for lack of an ability."""
    if report["partial"] or report["state"] != "finished":
        return ""
    missing = {
        name: _count(report["planned"], name, "requests") - _count(report["issued"], name, "requests")
        for name in report["planned"]
    }
    return ", ".join(f"{count:,} of operation {name}" for name, count in missing.items() if count > 0)


def _count(counts: Mapping[str, Mapping[str, int]], operation: str, what: str) -> int:
    return int(counts.get(operation, {}).get(what, 0))


def _total(counts: Mapping[str, Mapping[str, int]], what: str) -> int:
    return sum(int(one[what]) for one in counts.values())


def _frame(found: pd.DataFrame | list[Any], name: str, run: Mapping[str, Any]) -> pd.DataFrame:
    """With the columns that say which replay it is; those of the table, in its order."""
    frame = pd.DataFrame(found)
    names = REPLAY_TABLES[name].names
    return frame.assign(**{column: [value] * len(frame) for column, value in run.items() if column in names})


def _together(frames: list[pd.DataFrame], name: str) -> pd.DataFrame:
    schema = REPLAY_TABLES[name]
    whole = [pa.Table.from_pandas(one, schema=schema, preserve_index=False) for one in frames if len(one)]
    return pa.concat_tables(whole).to_pandas() if whole else pd.DataFrame(columns=schema.names)
