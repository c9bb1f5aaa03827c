"""Sets of traces replayed in passes, summed up as PCMark 10's storage benchmarks do (replay_metrics has the source)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drivelab.analysis.replay_metrics import MIB, score
from drivelab.analysis.taint import told
from drivelab.tables.schemas import KEY

PASS = ("step", "phase", "phase_pass", "repeat")
COLUMNS = (
    *KEY, *PASS, "warm", "counted", "traces", "trace_names", "timing_mode", "partial", "read_bytes", "write_bytes",
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

    As `passes` has them; where an engine tells no busy time, bandwidth is by the time that its own is by.
    """
    moving = [one for one in replays if one["reads_and_writes"]]
    by_s = [one["busy_s"] or (one["bytes"] / MIB / one["bandwidth_mib_s"] if one["bandwidth_mib_s"] else 0.0)
            for one in moving]  # fmt: skip
    bandwidth = sum(one["bytes"] for one in moving) / MIB / sum(by_s) if sum(by_s) else None
    access_time_us = None
    if moving and all(one["access_time_us"] is not None for one in moving):
        summed_us = sum(one["access_time_us"] * one["reads_and_writes"] for one in moving)
        access_time_us = summed_us / sum(one["reads_and_writes"] for one in moving)
    known = all(one["busy_s"] is not None for one in moving)
    return {
        "bandwidth_mib_s": bandwidth,
        "access_time_us": access_time_us,
        "score": score(bandwidth, access_time_us) if known else None,
        "duration_s": sum(one["duration_s"] for one in replays),
    }


def _row(replays: pd.DataFrame) -> dict[str, Any]:
    reads_and_writes = replays["read_ios"] + replays["write_ios"]
    size_bytes = int(replays["read_bytes"].sum() + replays["write_bytes"].sum())
    partial = bool(replays["partial"].any())
    busy_s, access_time_us, bandwidth = np.nan, None, None
    served = reads_and_writes > 0
    if not partial and served.any() and not replays.loc[served, "busy_s"].isna().any():
        busy_s = float(replays.loc[served, "busy_s"].sum())
        bandwidth = size_bytes / MIB / busy_s if busy_s else None
    if not partial and served.any() and not replays.loc[served, "access_time_us"].isna().any():
        summed_us = (replays["access_time_us"] * reads_and_writes)[served].sum()
        access_time_us = float(summed_us / reads_and_writes[served].sum())
    modes = list(dict.fromkeys(replays["timing_mode"]))
    reasons = dict.fromkeys(reason for reason in replays["taint_reason"] if isinstance(reason, str))
    return {
        **{column: replays[column].iloc[0] for column in (*KEY, *PASS)},
        **{column: bool(replays[column].all()) for column in ("warm", "counted")},
        "traces": len(replays),
        "trace_names": ", ".join(replays["trace"]),
        "timing_mode": ", ".join(modes),
        "partial": partial,
        "read_bytes": int(replays["read_bytes"].sum()),
        "write_bytes": int(replays["write_bytes"].sum()),
        "busy_s": busy_s,
        "bandwidth_mib_s": bandwidth,
        "access_time_us": access_time_us,
        "score": score(bandwidth, access_time_us),
        "duration_s": float(replays["duration_s"].sum(skipna=False)),
        "tainted": bool(replays["tainted"].any()),
        "taint_reason": told(reasons),
    }
