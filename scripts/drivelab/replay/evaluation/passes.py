"""Summarise passes over sets of traces as PCMark 10 does (see drivelab.replay.evaluation.metrics)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from drivelab.criteria.taint import told
from drivelab.replay.evaluation.metrics import MIB, score
from drivelab.tables.schemas import KEY

PASS = ("step", "phase", "phase_pass", "repeat")
COLUMNS = (
    *KEY, *PASS, "warm", "counted", "traces", "trace_names", "timing_mode",
    "asked_passes", "alike_passes", "partial", "read_bytes", "write_bytes",
    "busy_s", "bandwidth_mib_s", "access_time_us", "score", "duration_s", "tainted", "taint_reason",
)  # fmt: skip


def passes(replays: pd.DataFrame) -> pd.DataFrame:
    """Return a row of COLUMNS for each pass over all traces of a step.

    `replays` is the table of that name; passes are in its order.
    Bandwidth is all bytes divided by the sum of the busy times, access time the mean over all reads and writes, the
    score follows from both. They are null if a replay of the pass is partial or lacks them: the rest of the set is
    another workload. A pass is counted, or warm, if all its replays are.
    """
    groups = replays.groupby([*KEY, *PASS], sort=False, dropna=False)
    rows = [_row(replays_of_pass) for _, replays_of_pass in groups]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    numbers = ("busy_s", "bandwidth_mib_s", "access_time_us", "score", "duration_s")
    return frame.astype(dict.fromkeys(numbers, np.float64))


def pass_metrics(replays: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the metrics of a pass from those of its replays.

    A replay has `reads_and_writes`, `bytes`, and the metrics of a report.
    If the engine reports no busy time, the bandwidth uses the time that the engine's own bandwidth uses, and there is
    no score.
    """
    moving = [replay for replay in replays if replay["reads_and_writes"]]
    busy_s = _sum([replay["busy_s"] for replay in moving])
    rates = [(replay["bytes"], replay["bandwidth_mib_s"]) for replay in moving]
    by_s = busy_s or _sum([rate_mib_s and size / MIB / rate_mib_s for size, rate_mib_s in rates])
    bandwidth = sum(replay["bytes"] for replay in moving) / MIB / by_s if by_s else None
    times = [(replay["access_time_us"], replay["reads_and_writes"]) for replay in moving]
    total_us = _sum([time_us and time_us * count for time_us, count in times])
    access_time_us = total_us / sum(replay["reads_and_writes"] for replay in moving) if total_us else None
    return {
        "busy_s": busy_s,
        "bandwidth_mib_s": bandwidth,
        "access_time_us": access_time_us,
        "score": score(bandwidth, access_time_us) if busy_s else None,
        "duration_s": _sum([replay["duration_s"] for replay in replays]),
    }


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum, or None if a value is unknown or there are none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _row(replays: pd.DataFrame) -> dict[str, Any]:
    partial = bool(replays["partial"].any())
    reasons = dict.fromkeys(reason for reason in replays["taint_reason"] if isinstance(reason, str))
    metrics = dict.fromkeys(("busy_s", "bandwidth_mib_s", "access_time_us", "score"))
    if not partial:
        metrics |= pass_metrics([_metrics(replay) for replay in replays.to_dict("records")])
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
        **metrics,
        "duration_s": float(replays["duration_s"].sum(skipna=False)),
        "tainted": bool(replays["tainted"].any()),
        "taint_reason": told(reasons),
    }


def _metrics(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Convert a row of table `replays` for `pass_metrics`."""
    names = ("busy_s", "bandwidth_mib_s", "access_time_us", "duration_s")
    return {
        "reads_and_writes": row["read_ios"] + row["write_ios"],
        "bytes": row["read_bytes"] + row["write_bytes"],
        **{name: None if pd.isna(row[name]) else row[name] for name in names},
    }
