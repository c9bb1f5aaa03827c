"""Compare the drives of a fleet: spread of values, outliers, effect of hosts.

A value of a drive is an outlier if it meets three rules, which are those for outliers among rounds:
* its modified z-score is above 3.5 (Iglewicz and Hoaglin, How to Detect and Handle Outliers, ASQC 1993);
* it is improbable given the other drives (generalised extreme studentised deviates, Rosner, Technometrics 25, 1983), at
  a level where a value without outliers has one with a chance of 1 %, for any number of drives;
* it is farther from the median than the margin within which the study calls drives the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from drivelab.analysis.detectors.outliers import FALSE_ALARM, LEAST_VALUES, MODIFIED_Z, chances, modified_z
from drivelab.analysis.verdict import FAULTS, NOT_STEADY, STEADY
from drivelab.tables.schemas import SCHEMAS

Floats = npt.NDArray[np.float64]

VALUE = ["measurement", "protocol", "cell_label", "metric", "kind", "unit"]
"""Columns that identify a value."""
FROM_SUMMARY = ("drive", *VALUE, "value", "verdict", "taint_reason", "reduced", "virtual", "clock")
"""Columns of the table `summary` that the fleet tables need."""
CONSISTENT = 1.4826
"""Standard deviation of normal values in median absolute deviations (Rousseeuw and Croux, JASA 88, 1993)."""
LEAST_OF_HOST = 4
"""Fewest drives on a host, and on all others, for a test: with fewer, no difference can be significant."""
Tracked = Mapping[str, Sequence[tuple[str, str]]]
"""{measurement: tracked variables of its steady-state loop as (cell label, metric), in the protocol's order}."""
_FIRST_METRICS = ("score", "figure_of_merit", "iops", "bandwidth_mib_s", "mean_latency_us")
_FIRST_METRICS_OF_REPLAYS = ("access_time_us", "duration_s", "bandwidth_mib_s", "mean_latency_us", "iops")
"""Order for replays, where the trace may dictate the IOPS and the drive only the access time."""
_SET = "set of "
_CHANCE_OF_APART = 0.01
"""Chance of a far value among normal values whose standard deviation is exactly the robust variation."""


def deviations_table(values: pd.DataFrame, margin_pct: float, tracked: Tracked | None = None) -> pd.DataFrame:
    """Make table `fleet_deviations`.

    `values` are the `summary` rows of all drives with the columns FROM_SUMMARY.
    `tracked` gives the order in which tracked variables become key values. Without it the first row is the key value.
    A value with a faulty verdict, or that is not a positive number, has no rank and no z-score and is never an outlier.
    Outliers need at least LEAST_VALUES drives with the value.
    """
    rows = values.reset_index(drop=True)
    number = rows["value"].to_numpy(dtype=float)
    counts = ~rows["verdict"].isin(FAULTS).to_numpy() & np.isfinite(number) & (number > 0)
    median, z, place = (np.full(len(rows), np.nan) for _ in range(3))
    outlier = np.zeros(len(rows), dtype=bool)
    sign = np.where(rows["kind"] == "time", -1.0, 1.0)
    for all_rows in rows.groupby(VALUE, sort=False).indices.values():
        chosen = all_rows[counts[all_rows]]
        if not len(chosen):
            continue
        drive_values = number[chosen]
        median[all_rows] = np.median(drive_values)
        place[chosen] = stats.rankdata(-sign[chosen] * drive_values, method="min")
        if len(chosen) >= LEAST_VALUES:
            z[chosen] = sign[chosen] * modified_z(drive_values)
            outlier[chosen] = _outliers(drive_values, margin_pct)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = 100 * np.expm1(sign * np.log(np.where(number > 0, number, np.nan) / median)) + 0.0
    table = rows.assign(median=median, deviation_pct=deviation, modified_z=z, place=place, outlier=outlier)
    keys = pd.MultiIndex.from_frame(key_values(rows, tracked)[VALUE])
    table["is_key"] = pd.MultiIndex.from_frame(rows[VALUE]).isin(keys)
    return table.astype({"place": "Int32"})[SCHEMAS["fleet_deviations"].names]


def key_values(values: pd.DataFrame, tracked: Tracked | None = None) -> pd.DataFrame:
    """Return the key value of each measurement, a row with the columns VALUE.

    The key value is the first variable that the protocol tracks for steady state; the report of a single-host study
    begins with the same one. Without tracked variables the order is: scores, IOPS, throughput, mean latency. For
    replays the access time comes first, and a set of traces before its traces. If several
    candidates are equal, the first one that most drives have is the key value.
    """
    steady = values["verdict"].isin((STEADY, NOT_STEADY))
    by_value = values.assign(tracked=steady).groupby(VALUE, sort=False)
    known = by_value.agg(tracked=("tracked", "any"), n=("drive", "size")).reset_index()
    turns = {
        (measurement, *variable): turn
        for measurement, variables in (tracked or {}).items()
        for turn, variable in enumerate(variables)
    }
    keys = zip(known["measurement"], known["cell_label"], known["metric"], strict=True)
    known["turn"] = [turns.get(key, len(turns)) for key in keys]
    known["set"] = [str(label).startswith(_SET) for label in known["cell_label"]]
    known["rank"] = [_rank(*key) for key in zip(known["cell_label"], known["metric"], strict=True)]
    columns = ["tracked", "turn", "set", "rank", "n"]
    known = known.sort_values(columns, ascending=[False, True, False, True, False], kind="stable")
    return known.drop_duplicates("measurement").sort_index()[VALUE].reset_index(drop=True)


def apart(deviations: pd.DataFrame, margin_pct: float) -> pd.DataFrame:
    """Return the key values that are far from the median but not outliers.

    `deviations` is table `fleet_deviations`.
    This happens when several drives are far off together: as a group they look like a wide spread, while the other
    drives, which determine the robust variation, are nearly equal. A value is far if it is beyond the margin, and if
    normal values of as many drives, with the robust variation, reach it in only one fleet of a hundred. The robust
    variation of a few drives is a rough estimate: of five equal drives with normal scatter, one may well be far.
    """
    rows = deviations[deviations["is_key"] & deviations["place"].notna() & ~deviations["outlier"]]
    counted = deviations[deviations["place"].notna()].groupby(VALUE, sort=False).size()
    drives = counted.reindex(pd.MultiIndex.from_frame(rows[VALUE])).to_numpy(dtype=float)
    least_z = np.maximum(MODIFIED_Z, stats.norm.isf(_CHANCE_OF_APART / 2 / drives))
    off = np.abs(np.log1p(rows["deviation_pct"].to_numpy(dtype=float) / 100))
    return rows[(rows["modified_z"].abs().to_numpy(dtype=float) > least_z) & (off > math.log1p(margin_pct / 100))]


def spread_table(deviations: pd.DataFrame) -> pd.DataFrame:
    """Make table `fleet_spread` from table `fleet_deviations`: a row per value."""
    rows = []
    for key, of_value in deviations.groupby(VALUE, sort=False):
        values = of_value.loc[of_value["place"].notna(), "value"].to_numpy(dtype=float)
        rows.append(
            {
                **dict(zip(VALUE, key, strict=True)),
                "is_key": bool(of_value["is_key"].iloc[0]),
                "drives": len(values),
                "faulty": len(of_value) - len(values),
                **_spread(values),
                "outliers": int(of_value["outlier"].sum()),
                "reduced": bool(of_value["reduced"].any()),
                "virtual": bool(of_value["virtual"].any()),
                "clock": " and ".join(sorted(of_value["clock"].unique(), reverse=True)),
            }
        )
    return pd.DataFrame(rows, columns=SCHEMAS["fleet_spread"].names)


def hosts_table(deviations: pd.DataFrame, hosts: pd.Series) -> pd.DataFrame:
    """Make table `fleet_hosts`: the effect of each host on the key values.

    `deviations` is table `fleet_deviations`; `hosts` has the host of each drive (index: drive).
    Only key values are tested, by Mann and Whitney (Annals of Mathematical Statistics 18, 1947). p-values are adjusted
    for all rows after Benjamini and Hochberg. A host has no row if it or the other hosts together have fewer than
    LEAST_OF_HOST drives.
    """
    rows = []
    counted = deviations[deviations["is_key"] & deviations["place"].notna()]
    for key, of_value in counted.groupby(VALUE, sort=False):
        host_of_row = of_value["drive"].map(hosts).to_numpy()
        values = of_value["value"].to_numpy(dtype=float)
        for host in dict.fromkeys(host_of_row):
            here, others = values[host_of_row == host], values[host_of_row != host]
            if min(len(here), len(others)) < LEAST_OF_HOST:
                continue
            medians = float(np.median(here)), float(np.median(others))
            sign = -1.0 if key[4] == "time" else 1.0
            rows.append(
                {
                    "host": host,
                    **dict(zip(VALUE, key, strict=True)),
                    "drives": len(here),
                    "others": len(others),
                    "median": medians[0],
                    "others_median": medians[1],
                    "difference_pct": 100 * math.expm1(sign * math.log(medians[0] / medians[1])) + 0.0,
                    "p_value": float(stats.mannwhitneyu(here, others).pvalue),
                }
            )
    table = pd.DataFrame(rows, columns=SCHEMAS["fleet_hosts"].names)
    if rows:
        table["p_adjusted"] = stats.false_discovery_control(table["p_value"].to_numpy(dtype=float))
    return table


def drive_columns(deviations: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of `fleet_drives` that come from `fleet_deviations`."""
    by_drive = deviations.assign(
        faulty=deviations["verdict"].isin(FAULTS),
        not_steady=deviations["verdict"] == NOT_STEADY,
        tainted=deviations["taint_reason"].notna(),
    ).groupby("drive", sort=False)
    table = by_drive.agg(
        values=("value", "size"),
        faulty=("faulty", "sum"),
        not_steady=("not_steady", "sum"),
        tainted=("tainted", "sum"),
        outlying=("outlier", "sum"),
        reduced=("reduced", "any"),
        virtual=("virtual", "any"),
        clock=("clock", "max"),
    )
    keys = deviations[deviations["is_key"] & deviations["place"].notna()]
    table["key_deviation_pct"] = keys.groupby("drive", sort=False)["deviation_pct"].median()
    return table.assign(place=table["key_deviation_pct"].rank(ascending=False, method="min").astype("Int32"))


def _rank(cell_label: str, metric: str) -> int:
    order = _FIRST_METRICS_OF_REPLAYS if cell_label.startswith(("replay ", _SET)) else _FIRST_METRICS
    return order.index(metric) if metric in order else len(order)


def _outliers(values: Floats, margin_pct: float) -> npt.NDArray[np.bool_]:
    ratio = np.abs(np.log(values / np.median(values)))
    far = (np.abs(modified_z(values)) > MODIFIED_Z) & (ratio > math.log1p(margin_pct / 100))
    return far & (chances(values) < FALSE_ALARM) if far.any() else far


def _spread(values: Floats) -> dict[str, float]:
    if not len(values):
        return {}
    low, median, high = (float(value) for value in np.percentile(values, (5, 50, 95)))
    mad = float(stats.median_abs_deviation(values))
    return {
        "median": median, "p5": low, "p95": high, "min": float(values.min()), "max": float(values.max()),
        "mad": mad, "robust_cv_pct": 100 * CONSISTENT * mad / median,
    }  # fmt: skip
