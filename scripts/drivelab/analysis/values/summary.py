"""Make the table `summary`: a value and verdict per drive, cell and metric, with the asymptotes of loops."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from drivelab.analysis.deltas.doubts import at_all, without_load
from drivelab.analysis.values.application_values import application_rows, replay_rows
from drivelab.analysis.values.latency_values import NINES
from drivelab.analysis.values.load_values import load_rows
from drivelab.analysis.values.loop_values import WINDOW_AVERAGE, loop_rows
from drivelab.analysis.values.rows import RATES, gravest
from drivelab.analysis.values.saturation_values import lacking, saturating
from drivelab.analysis.values.soak_values import soak_rows
from drivelab.analysis.verdict import FINE, RSE_TOO_HIGH, TAINTED
from drivelab.core.grouping import grouped
from drivelab.criteria.host_limit import most_severe
from drivelab.criteria.repeats import FEWEST, THRESHOLD_PCT
from drivelab.criteria.settling import Floats, to_asymptote
from drivelab.criteria.soundness import sound
from drivelab.criteria.taint import THROTTLED, causes, told, worst
from drivelab.tables.labels import KINDS
from drivelab.tables.schemas import SCHEMAS, SHAPE

Asymptotes = Mapping[tuple[str, str, str], float]
"""Asymptote relative to the average of the window, in percent, by recording, cell label and metric."""


def asymptotes(loops: pd.DataFrame, steady_state: pd.DataFrame) -> Asymptotes:
    """Return the asymptotes of all cells with a steady-state window.

    `loops` are rows of table `cells` with `cell_label`, of loops. Cells that lack a warm round up to the end of their
    window, or occur in several loops, have none.
    """
    of_loop = ["recording", "step"]
    windows = steady_state.groupby(of_loop, as_index=False)[["window_start", "window_end"]].first()
    warm = loops.loc[~loops["cold"].astype(bool), [*of_loop, "round", "cell_label", *RATES]]
    rounds = warm.merge(windows, on=of_loop)
    rounds = rounds[rounds["round"] <= rounds["window_end"]]
    found: dict[tuple[str, str, str], float] = {}
    twice = set()
    for (recording, _), loop in rounds.groupby(of_loop, sort=False):
        window = int(loop["window_end"].iloc[0] - loop["window_start"].iloc[0]) + 1
        for metric in RATES:
            by_round = loop.pivot_table(index="cell_label", columns="round", values=metric, dropna=False)
            whole = by_round[(by_round > 0).all(axis=1)]  # NaN without the round
            off = to_asymptote(whole.to_numpy(dtype=float), window, of_times=KINDS[metric] == "time")
            keys = [(str(recording), str(label), metric) for label in whole.index]
            twice.update(found.keys() & keys)
            found.update(zip(keys, (100 * np.expm1(off)).tolist(), strict=True))
    return {key: percent for key, percent in found.items() if key not in twice}


CONFIDENCE = 0.95
"""Confidence of the interval of a value over several recordings."""
_OF_ALL = (*NINES, "power_w")
"""Columns without a value for each of several workloads."""


def by_workload(cells: pd.DataFrame) -> pd.DataFrame:
    """Split each cell that has workloads `beside` in a row for each.

    `cells` have `cell_label`. The new column `part` is the number of the workload, from 1, and null for other cells. A
    split row has the rates and latency of its workload, and a label that ends in its name:
    `RND 8KiB 0/100, beside RND 8KiB 100/0 T2Q8, writes`. `measured_as` is the label of the cell itself. Columns that
    are known only for all workloads together, such as percentiles and power, are null.
    """
    whole = cells.assign(part=None, measured_as=cells["cell_label"])
    several = whole["workloads"].notna()
    if not several.any():
        return whole
    numbers = range(max(map(len, whole.loc[several, "workloads"])))
    parts = [whole[~several], *(_only(whole[several], number) for number in numbers)]
    return pd.concat([part for part in parts if len(part)]).sort_index(kind="stable").reset_index(drop=True)


def _only(cells: pd.DataFrame, number: int) -> pd.DataFrame:
    cells = cells[cells["workloads"].map(len) > number]
    return cells.assign(
        part=number + 1,
        cell_label=cells["cell_label"] + ", " + cells["workloads"].str[number],
        **{metric: cells[f"workload_{metric}"].str[number].astype(float) for metric in (*RATES, "max_latency_us")},
        **dict.fromkeys(_OF_ALL, float("nan")),
        read_ios=cells["workload_ios"].str[number].astype(float),
        write_ios=0.0,
    )


_SAME = ("drive", "measurement", "protocol", "cell_label", "metric", "kind", "unit", "reduced", "virtual", "clock")
"""Columns that pooled recordings share."""
_MAY_BE_UNKNOWN = ("interval_low", "interval_high", "asymptote_pct", "disturbance_pct")


def values_by_recording(
    cells: pd.DataFrame,
    steady_state: pd.DataFrame,
    replays: pd.DataFrame,
    replay_passes: pd.DataFrame,
    rse_threshold_pct: float = THRESHOLD_PCT,
    *,
    soak_bins: pd.DataFrame | None = None,
    scores: Mapping[str, Mapping[str, str]] | None = None,
    application_runs: pd.DataFrame | None = None,
    load_rates: pd.DataFrame | None = None,
) -> list[dict[str, Any]]:
    """Return the values of each recording, as rows like those of table `summary`.

    `soak_bins` are the rows of soaks in the table `latency_bins`: recording, step, round, part, latency_ns, count;
    without them soaks have no percentiles. `scores` has the `analysis` key of each measurement's protocol, by
    measurement. `application_runs` and `load_rates` are the tables of these names.

    See `loop_rows`, `soak_rows`, `replay_rows`, `application_rows`, `load_rows`. Successive soaks of one workload are
    one soak. Soaks beside replays that repeat by phase are left out: they wear the drive and measure nothing. Workloads
    at the same time have separate rows, see `by_workload`.

    Raises ValueError for a loop without its steady-state window and for a replay without a warm run.
    """
    in_phases = set(replays.loc[replays["phase"].notna(), "recording"])
    cells = cells[~((cells["kind"] == "soak") & cells["recording"].isin(in_phases))]
    measured = sound(cells.assign(lacking=lacking(cells)))
    measured = by_workload(measured.assign(saturates=saturating(measured)))
    singles = [
        *loop_rows(measured[measured["kind"] == "loop"], steady_state, rse_threshold_pct, scores or {}),
        *soak_rows(measured[measured["kind"] == "soak"], soak_bins),
        *replay_rows(replays, replay_passes, rse_threshold_pct),
        *(() if application_runs is None else application_rows(application_runs, rse_threshold_pct)),
        *(() if load_rates is None else load_rows(load_rates)),
    ]
    shapes = _shapes(measured)
    approached = asymptotes(measured[measured["kind"] == "loop"], steady_state)
    for single in singles:
        is_average = single["statistic"].startswith(WINDOW_AVERAGE)
        place = single["recording"], single["cell_label"], single["metric"]
        single["asymptote_pct"] = approached.get(place) if is_average else None
        single.update(shapes.get(place[:2], {}))
    return singles


def _shapes(cells: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the columns of SHAPE by recording and cell label, where all rows of the label have the same.

    `cells` are from `by_workload`; one of several workloads at the same time has none.
    """
    alone = cells.loc[cells["part"].isna(), ["recording", "cell_label", *SHAPE]].drop_duplicates()
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for recording, label, *values in alone.astype(object).itertuples(index=False):
        shape = found.setdefault((recording, label), dict(zip(SHAPE, values, strict=True)))
        shape.update({name: None for name, value in zip(SHAPE, values, strict=True) if shape[name] != value})
    return found


def summary_table(*args: Any, **kwargs: Any) -> pd.DataFrame:
    """Make table `summary` from the arguments of `values_by_recording`; see `pooled`."""
    return pooled(values_by_recording(*args, **kwargs))


def pooled(values: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Make table `summary` from the values of each recording.

    Several recordings of a drive and measurement have the geometric mean of the values of all n of them, with their
    spread, and from 3 on with the confidence interval of the mean of their logarithms (Student's t). Recordings that
    something outside the drive disturbed are left out if FEWEST others remain. The verdict is the gravest of the
    recordings. Values that are not all positive have their arithmetic mean, without an interval. At least FEWEST
    samples have a median absolute deviation, `mad`.
    """
    columns = SCHEMAS["summary"].names
    alike = grouped(values, itemgetter(*_SAME))
    if not alike:
        return pd.DataFrame(columns=columns)
    rows = [_pooled(sorted(group, key=itemgetter("run"))) for group in alike.values()]
    table = pd.DataFrame(rows, columns=columns)
    deviations = [float(np.median(np.abs(samples - np.median(samples)))) if len(samples) >= FEWEST else math.nan
                  for samples in table["samples"]]  # fmt: skip
    return table.assign(mad=deviations, **{name: table[name].astype(float) for name in _MAY_BE_UNKNOWN})


def _pooled(recordings: list[dict[str, Any]]) -> dict[str, Any]:
    of_all = len(recordings)
    undisturbed = [row for row in recordings if not _is_disturbed(row)]
    recordings = undisturbed if len(undisturbed) >= FEWEST else recordings
    names = [row["recording"] for row in recordings]
    first = recordings[0]
    if len(recordings) == 1:
        return {**first, "recordings": names}
    values = np.array([row["value"] for row in recordings], dtype=float)
    positive = bool((values > 0).all() and np.isfinite(values).all())
    mean = f"{'geometric ' if positive else ''}mean of {len(values)} recordings"
    mean += f" ({of_all - len(values)} tainted left out)" if of_all > len(values) else ""
    statistics = (row["statistic"] for row in recordings)
    changes = (row.get("asymptote_pct") for row in recordings)
    approached = [math.log1p(change / 100) for change in changes if change is not None and change == change]
    same = {name: first.get(name) if len({row.get(name) for row in recordings}) == 1 else None for name in SHAPE}
    return {
        **first,
        **same,
        **(_geometric_mean(values) if positive else {"value": float(values.mean()), "rse_pct": None}),
        "n": len(values),
        "samples": values.tolist(),
        "scope": "recordings",
        "evidence": list(dict.fromkeys(place for row in recordings for place in row["evidence"])),
        "statistic": f"{without_load(first['statistic'])}{at_all(statistics)}, {mean}",
        "spread_low": float(values.min()),
        "spread_high": float(values.max()),
        "asymptote_pct": 100 * math.expm1(fmean(approached)) if len(approached) == len(recordings) else None,
        **trust(recordings),
        "recordings": names,
    }


def _is_disturbed(row: Mapping[str, Any]) -> bool:
    """Return whether something outside the drive disturbed a value by an unknown amount: to leave it out is fair."""
    reason = row["taint_reason"] if row["verdict"] == TAINTED and pd.isna(row["disturbance_pct"]) else None
    return isinstance(reason, str) and THROTTLED not in causes([reason])


def trust(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the columns that say how far the mean of values can be trusted: the gravest of each."""
    reasons = dict.fromkeys(value["taint_reason"] for value in values if isinstance(value["taint_reason"], str))
    return {
        "verdict": gravest([value["verdict"] for value in values]),
        "taint_reason": told(worst(reasons)),
        "host_limit": most_severe(value.get("host_limit") for value in values),
        "disturbance_pct": pooled_disturbance_pct(values),
    }


def pooled_disturbance_pct(values: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the disturbance of a geometric mean of values; None if something else stands against one of them.

    Repeats that do not agree count as an effect of load that another of the values shows: their recordings, with less
    load than taints, scatter too, and the tests use the scatter between recordings.
    """
    values = list(values)
    unbounded = [value["verdict"] for value in values if pd.isna(value["disturbance_pct"])]
    if len(unbounded) == len(values) or not {*unbounded} <= {*FINE, RSE_TOO_HIGH}:
        return None
    logs = np.log1p(np.nan_to_num(np.array([value["disturbance_pct"] for value in values], dtype=float)) / 100)
    return 100 * math.expm1(float(logs.mean()))


def _geometric_mean(values: Floats) -> dict[str, float]:
    """Return value, relative standard error, and from FEWEST recordings on the confidence interval."""
    logs = np.log(values)
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    mean = {"value": float(np.exp(logs.mean())), "rse_pct": 100 * error}
    if len(logs) < FEWEST:
        return mean
    half = float(special.stdtrit(len(logs) - 1, (1 + CONFIDENCE) / 2)) * error
    ends = np.exp(logs.mean() + np.array([-half, half]))
    return {**mean, "interval_low": float(ends[0]), "interval_high": float(ends[1])}
