"""Sets of traces replayed in passes, summed up as PCMark 10's storage benchmarks do (replay_metrics has the source)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.replay_metrics import MIB, score
from drivelab.analysis.taint import told as told_reasons
from drivelab.tables.schemas import KEY

PASS = ("step", "phase", "phase_pass", "repeat")
COLUMNS = (
    *KEY, *PASS, "warm", "counted", "traces", "trace_names", "timing_mode",
    "asked_passes", "alike_passes", "partial", "read_bytes", "write_bytes",
    "busy_s", "bandwidth_mib_s", "access_time_us", "score", "duration_s", "tainted", "taint_reason",
)  # fmt: skip


def passes(replays: pd.DataFrame) -> pd.DataFrame:
    """Rows of COLUMNS from the table `replays`: one for each pass over all traces of a step, in their order there.

    Bandwidth is all bytes by the sum of the busy times, access time the mean over all reads and writes, the score that
    of both. They are null in a pass of which a replay is partial or does not tell them: what is left of the set is
    another workload. A pass is counted, or warm, if all its replays are.
    """
    groups = replays.groupby([*KEY, *PASS], sort=False, dropna=False)
    rows = [_row(found) for _, found in groups]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = ("busy_s", "bandwidth_mib_s", "access_time_us", "score", "duration_s")
    return frame.astype(dict.fromkeys(numbers, np.float64))


def pass_metrics(replays: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Metrics of a pass from those of its replays: `reads_and_writes`, `bytes`, and those of a report.

    Of an engine that tells no busy time, the bandwidth is by the time that its own is by, and there is no score.
    """
    moving = [one for one in replays if one["reads_and_writes"]]
    busy_s = _sum([one["busy_s"] for one in moving])
    by_s = busy_s or _sum([one["bandwidth_mib_s"] and one["bytes"] / MIB / one["bandwidth_mib_s"] for one in moving])
    bandwidth = sum(one["bytes"] for one in moving) / MIB / by_s if by_s else None
    waited_us = _sum([one["access_time_us"] and one["access_time_us"] * one["reads_and_writes"] for one in moving])
    access_time_us = waited_us / sum(one["reads_and_writes"] for one in moving) if waited_us else None
    return {
        "busy_s": busy_s,
        "bandwidth_mib_s": bandwidth,
        "access_time_us": access_time_us,
        "score": score(bandwidth, access_time_us) if busy_s else None,
        "duration_s": _sum([one["duration_s"] for one in replays]),
    }


def _sum(values: Sequence[float | None]) -> float | None:
    """None where one is not known, or there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _row(replays: pd.DataFrame) -> dict[str, Any]:
    partial = bool(replays["partial"].any())
    reasons = dict.fromkeys(reason for reason in replays["taint_reason"] if isinstance(reason, str))
    told = dict.fromkeys(("busy_s", "bandwidth_mib_s", "access_time_us", "score"))
    if not partial:
        told |= pass_metrics([_metrics(one) for one in replays.to_dict("records")])
    return {
        **{column: replays[column].iloc[0] for column in (*KEY, *PASS)},
        **{column: bool(replays[column].all()) for column in ("warm", "counted")},
        "traces": len(replays),
        "trace_names": ", ".join(replays["trace"]),
        "timing_mode": ", ".join(dict.fromkeys(replays["timing_mode"])),
        **{column: replays[column].iloc[0] for column in ("asked_passes", "alike_passes")},
        "partial": partial,
        "read_bytes": int(replays["read_bytes"].sum()),
        "write_bytes": int(replays["write_bytes"].sum()),
        **told,
        "duration_s": float(replays["duration_s"].sum(skipna=False)),
        "tainted": bool(replays["tainted"].any()),
        "taint_reason": told_reasons(reasons),
    }


def _metrics(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    """A row of `replays` as `pass_metrics` takes it."""
    names = ("busy_s", "bandwidth_mib_s", "access_time_us", "duration_s")
    return {
        "reads_and_writes": row["read_ios"] + row["write_ios"],
        "bytes": row["read_bytes"] + row["write_bytes"],
        **{name: None if pd.isna(row[name]) else row[name] for name in names},
    }
