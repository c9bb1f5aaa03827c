"""Translate fio's totals into report values; fio reports no single requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivelab.fio.result import FioResult, read_replay
from drivelab.replay.choice import TimingChoice

REMARK = "bandwidth by the whole duration: fio does not report when requests were in flight"
_NINES = (50, 90, 99, 99.9, 99.99, 99.999)


def totals(directory: Path, prepared: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for drivelab.replay.report from fio's evidence in `directory`.

    `prepared` is Prepared.to_mapping(). Raises CellFailed when the evidence is invalid.
    """
    result = read_replay(directory)
    flushes = int(json.loads((directory / "fio.json").read_text())["jobs"][0]["sync"]["total_ios"])
    done = {
        "read": {"requests": result.read.ios, "bytes": result.read.bytes},
        "write": {"requests": result.write.ios, "bytes": result.write.bytes},
        "flush": {"requests": flushes, "bytes": 0},
    }
    done = {name: done.get(name, {"requests": 0, "bytes": 0}) for name in prepared["planned"]}
    timed = TimingChoice.from_mapping(prepared["choice"]["timing"]).has_deadlines
    planned_s = prepared["issue_span_s"]
    return {
        "issued": done,
        "completed": done,
        "duration_s": result.runtime_s,
        "duration_ratio": result.runtime_s / planned_s if planned_s else None,
        "duration_basis": f"fio's runtime to first to last {'deadline' if timed else 'arrival in the trace'}",
        "bandwidth_mib_s": result.bytes / 2**20 / result.runtime_s if result.runtime_s else None,
        "access_time_us": result.mean_latency_us,
        "read_access_time_us": result.read.mean_latency_us,
        "write_access_time_us": result.write.mean_latency_us,
        "latency_us": _latency(result),
    }


def _latency(result: FioResult) -> dict[str, float | None]:
    """Return the latency distribution from fio's bins; None where I/Os are too few.

    Keys are those of drivelab.analysis.replay_requests.distribution.
    """
    known = [percent for percent in _NINES if result.ios * (100 - percent) >= 100]
    values = dict(zip(known, result.percentiles_us(*known), strict=True)) if known else {}
    return {
        "mean": result.mean_latency_us,
        **{f"p{str(percent).replace('.', '')}": values.get(percent) for percent in _NINES},
        "max": result.max_latency_us,
    }
