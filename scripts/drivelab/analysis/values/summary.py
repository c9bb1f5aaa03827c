"""Make the table `summary`: a value and verdict per drive, cell and metric."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import pandas as pd

from drivelab.analysis.deltas.doubts import at_all
from drivelab.analysis.values.application_values import SIMULATED, application_rows, replay_rows
from drivelab.analysis.values.loop_values import loop_rows
from drivelab.analysis.values.rows import gravest, odd, rse_verdict
from drivelab.analysis.values.slice_counts import lacking, saturating
from drivelab.analysis.values.soak_values import soak_rows
from drivelab.analysis.values.spread import MEDIAN, with_spread
from drivelab.analysis.verdict import FAULTS
from drivelab.criteria.repeats import FEWEST, THRESHOLD_PCT, median_of_odd, relative_standard_error_pct
from drivelab.criteria.soundness import sound
from drivelab.criteria.taint import told
from drivelab.tables.schemas import SCHEMAS

_RATES = ("iops", "bandwidth_mib_s", "mean_latency_us")
_OF_BOTH = (
    "max_latency_us",
    *(f"p{nines}_latency_us" for nines in ("50", "90", "99", "999", "9999", "99999", "999999")),
    "power_w",
)
"""Columns that cannot be attributed to one of the two workloads."""
_OTHER = {"read": "write", "write": "read"}


def by_direction(cells: pd.DataFrame) -> pd.DataFrame:
    """Split each cell that has a workload `beside` in two rows: reads and writes.

    `cells` have `cell_label`. The new column `direction` is read or write for split rows and null for others. A split
    row has the rates and mean latency of its direction, and a label that ends in it:
    `RND 8KiB 0/100, beside RND 8KiB 100/0 T2Q8, writes`. `measured_as` is the label of the cell itself. Columns that
    are known only for both workloads together, such as percentiles and power, are null.
    """
    whole = cells.assign(direction=None, measured_as=cells["cell_label"])
    double = whole["beside"].notna()
    if not double.any():
        return whole
    parts = [whole[~double], *(_only(whole[double], direction) for direction in ("write", "read"))]
    return pd.concat([part for part in parts if len(part)]).sort_index(kind="stable").reset_index(drop=True)


def _only(cells: pd.DataFrame, direction: str) -> pd.DataFrame:
    return cells.assign(
        direction=direction,
        cell_label=cells["cell_label"] + f", {direction}s",
        **{metric: cells[f"{direction}_{metric}"] for metric in _RATES},
        **dict.fromkeys(_OF_BOTH, float("nan")),
        **{f"{_OTHER[direction]}_ios": 0},
    )


_OF_THE_VALUE = (
    "value",
    "n",
    "rse_pct",
    "spread_low",
    "spread_high",
    "samples",
    "scope",
    "mad",
    "interval_low",
    "interval_high",
    "statistic",
    "verdict",
    "taint_reason",
    "recordings",
    "evidence",
)
"""Columns that may differ between pooled recordings; all others must be equal."""
_DERIVED = ("figure_of_merit", "best_bandwidth_mb_s", "best_mean_latency_us")
"""Metrics that their statistic defines, so pooled recordings keep it."""


def summary_table(
    cells: pd.DataFrame,
    steady_state: pd.DataFrame,
    replays: pd.DataFrame,
    replay_passes: pd.DataFrame,
    rse_threshold_pct: float = THRESHOLD_PCT,
    *,
    soak_bins: pd.DataFrame | None = None,
    scores: Mapping[str, Mapping[str, str]] | None = None,
    application_runs: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Make table `summary` of any recordings from their tables.

    `soak_bins` are the rows of soaks in the table `latency_bins`: recording, step, round, direction, latency_ns, count;
    without them soaks have no percentiles. `scores` has the `analysis` key of each measurement's protocol, by
    measurement. `application_runs` is the table of that name.

    * One recording: see `loop_rows`, `soak_rows`, `replay_rows`, `application_rows`. Successive soaks of one workload
      are one soak. Soaks beside replays that repeat by phase are left out: they wear the drive and measure nothing. Two
      workloads at the same time have separate rows, see `by_direction`.
    * Several recordings of a drive and measurement: the median of an odd number n of them, with the spread of their
      values; if their number is even, the latest waits. With fewer than 3, the row is that of the first recording.

    Raises ValueError for a loop without its steady-state window and for a replay without a warm run.
    """
    in_phases = set(replays.loc[replays["phase"].notna(), "recording"])
    cells = cells[~((cells["kind"] == "soak") & cells["recording"].isin(in_phases))]
    measured = sound(cells.assign(lacking=lacking(cells)))
    measured = by_direction(measured.assign(saturates=saturating(measured)))
    singles = [
        *loop_rows(measured[measured["kind"] == "loop"], steady_state, rse_threshold_pct, scores or {}),
        *soak_rows(measured[measured["kind"] == "soak"], soak_bins),
        *replay_rows(replays, replay_passes, rse_threshold_pct),
        *(() if application_runs is None else application_rows(application_runs, rse_threshold_pct)),
    ]
    columns = SCHEMAS["summary"].names
    if not singles:
        return pd.DataFrame(columns=columns)
    same = [column for column in columns if column not in _OF_THE_VALUE]
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for single in singles:
        alike.setdefault(tuple(single[column] for column in same), []).append(single)
    rows = [_pooled(sorted(group, key=itemgetter("run")), rse_threshold_pct) for group in alike.values()]
    pooled = pd.DataFrame(rows, columns=list(dict.fromkeys([*columns, "centre"])))
    return with_spread(pooled)[columns]


def _pooled(recordings: list[dict[str, Any]], rse_threshold_pct: float) -> dict[str, Any]:
    used = recordings[: odd(len(recordings))]
    names = [row["recording"] for row in used]
    if len(used) < FEWEST:
        return {**used[0], "recordings": names}
    values = [row["value"] for row in used]
    rse_pct = relative_standard_error_pct(values)
    faults = [row["verdict"] for row in used if row["verdict"] in FAULTS]
    reasons = dict.fromkeys(row["taint_reason"] for row in used if isinstance(row["taint_reason"], str))
    statistic = f"median of {len(used)} recordings{at_all(row['statistic'] for row in used)}"
    stays = used[0]["metric"] in _DERIVED or SIMULATED in used[0]["statistic"]
    return {
        **used[0],
        "value": median_of_odd(values),
        "n": len(used),
        "samples": values,
        "scope": "recordings",
        "centre": MEDIAN,
        "evidence": list(dict.fromkeys(place for row in used for place in row["evidence"])),
        "statistic": f"{statistic}, {used[0]['statistic']}" if stays else statistic,
        "rse_pct": rse_pct,
        "spread_low": min(values),
        "spread_high": max(values),
        "verdict": gravest([rse_verdict(rse_pct, rse_threshold_pct), *faults]),
        "taint_reason": told(reasons),
        "recordings": names,
    }
