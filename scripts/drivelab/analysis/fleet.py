"""Drives of a fleet beside each other: how a value is spread over them, which stand apart, and what a host makes of it.

A value of a drive is an outlier by three rules at once, those of the outliers among rounds: its modified z-score is
above 3.5 (Iglewicz and Hoaglin, How to Detect and Handle Outliers, ASQC 1993), it is out of the reach of what the other
drives predict (generalised extreme studentised deviates, Rosner, Technometrics 25, 1983), so that a value that no drive
stands apart in has one with a chance of 1 % however many drives there are, and it lies farther from the median than the
margin within which the study calls drives the same.
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
"""What tells values apart."""
FROM_SUMMARY = ("drive", *VALUE, "value", "verdict", "taint_reason", "reduced", "virtual", "clock")
"""Columns of the table `summary` that a fleet's tables are made of."""
CONSISTENT = 1.4826
"""Standard deviation of normal values in median absolute deviations (Rousseeuw and Croux, JASA 88, 1993)."""
LEAST_OF_HOST = 4
"""Drives on a host, and on the others, for a test: of fewer no difference could be significant."""
Tracked = Mapping[str, Sequence[tuple[str, str]]]
"""By measurement the variables whose steady state ends its loop, as (cell label, metric), in the protocol's order."""
_FIRST_METRICS = ("score", "figure_of_merit", "iops", "bandwidth_mib_s", "mean_latency_us")
_FIRST_METRICS_OF_REPLAYS = ("access_time_us", "duration_s", "bandwidth_mib_s", "mean_latency_us", "iops")
"""The trace may dictate the IOPS, the drive only how long each takes."""
_SET = "set of "
_CHANCE_OF_APART = 0.01
"""That normal values, if their scatter were the robust variation exactly, have one that is told to be far."""


def deviations_table(values: pd.DataFrame, margin_pct: float, tracked: Tracked | None = None) -> pd.DataFrame:
    """Table `fleet_deviations` from rows of the tables `summary` of all drives, columns FROM_SUMMARY.

    `tracked` orders the variables that could be key values; without it the first of the rows is one.

    A value that is faulty, by its verdict, or no positive number, has neither a place nor a z-score, and is no outlier.
    Nor is any where fewer than LEAST_VALUES drives have the value.
    """
    rows = values.reset_index(drop=True)
    number = rows["value"].to_numpy(dtype=float)
    counts = ~rows["verdict"].isin(FAULTS).to_numpy() & np.isfinite(number) & (number > 0)
    median, z, place = (np.full(len(rows), np.nan) for _ in range(3))
    outlier = np.zeros(len(rows), dtype=bool)
    sign = np.where(rows["kind"] == "time", -1.0, 1.0)
    for every in rows.groupby(VALUE, sort=False).indices.values():
        chosen = every[counts[every]]
        if not len(chosen):
            continue
        of_drives = number[chosen]
        median[every] = np.median(of_drives)
        place[chosen] = stats.rankdata(-sign[chosen] * of_drives, method="min")
        if len(chosen) >= LEAST_VALUES:
            z[chosen] = sign[chosen] * modified_z(of_drives)
            outlier[chosen] = _outliers(of_drives, margin_pct)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = 100 * np.expm1(sign * np.log(np.where(number > 0, number, np.nan) / median)) + 0.0
    found = rows.assign(median=median, deviation_pct=deviation, modified_z=z, place=place, outlier=outlier)
    keys = pd.MultiIndex.from_frame(key_values(rows, tracked)[VALUE])
    found["is_key"] = pd.MultiIndex.from_frame(rows[VALUE]).isin(keys)
    return found.astype({"place": "Int32"})[SCHEMAS["fleet_deviations"].names]


def key_values(values: pd.DataFrame, tracked: Tracked | None = None) -> pd.DataFrame:
    """A row with columns VALUE for each measurement: the value that stands for it.

    The first that the protocol tracks for steady state, which is what the report of a study in one piece begins with;
    without any, scores before IOPS, throughput and mean latency, of replays the access time before others, and a set
    for its traces; of those the first that most drives have.
    """
    steady = values["verdict"].isin((STEADY, NOT_STEADY))
    by_value = values.assign(tracked=steady).groupby(VALUE, sort=False)
    known = by_value.agg(tracked=("tracked", "any"), n=("drive", "size")).reset_index()
    turns = {(name, *one): turn for name, of in (tracked or {}).items() for turn, one in enumerate(of)}
    of_values = zip(known["measurement"], known["cell_label"], known["metric"], strict=True)
    known["turn"] = [turns.get(one, len(turns)) for one in of_values]
    known["set"] = [str(one).startswith(_SET) for one in known["cell_label"]]
    known["rank"] = [_rank(*one) for one in zip(known["cell_label"], known["metric"], strict=True)]
    columns = ["tracked", "turn", "set", "rank", "n"]
    known = known.sort_values(columns, ascending=[False, True, False, True, False], kind="stable")
    return known.drop_duplicates("measurement").sort_index()[VALUE].reset_index(drop=True)


def apart(deviations: pd.DataFrame, margin_pct: float) -> pd.DataFrame:
    """The rows of table `fleet_deviations` of key values that are far from the median and yet no outliers.

    So it is where several drives are far off together: beside each other they cannot be told from a wide spread, while
    the others, by which the robust variation goes, are nearly alike. Far is what normal values of so many drives, whose
    scatter is the robust variation, would have in one fleet of a hundred, and what is beyond the margin. The robust
    variation of a few drives is a rough estimate: of five that are alike but for scatter, one may well be far.
    """
    rows = deviations[deviations["is_key"] & deviations["place"].notna() & ~deviations["outlier"]]
    counted = deviations[deviations["place"].notna()].groupby(VALUE, sort=False).size()
    drives = counted.reindex(pd.MultiIndex.from_frame(rows[VALUE])).to_numpy(dtype=float)
    least_z = np.maximum(MODIFIED_Z, stats.norm.isf(_CHANCE_OF_APART / 2 / drives))
    off = np.abs(np.log1p(rows["deviation_pct"].to_numpy(dtype=float) / 100))
    return rows[(rows["modified_z"].abs().to_numpy(dtype=float) > least_z) & (off > math.log1p(margin_pct / 100))]


def spread_table(deviations: pd.DataFrame) -> pd.DataFrame:
    """Table `fleet_spread` from table `fleet_deviations`: one row for each value that any drive has."""
    rows = []
    for key, of in deviations.groupby(VALUE, sort=False):
        values = of.loc[of["place"].notna(), "value"].to_numpy(dtype=float)
        rows.append(
            {
                **dict(zip(VALUE, key, strict=True)),
                "is_key": bool(of["is_key"].iloc[0]),
                "drives": len(values),
                "faulty": len(of) - len(values),
                **_spread(values),
                "outliers": int(of["outlier"].sum()),
                "reduced": bool(of["reduced"].any()),
                "virtual": bool(of["virtual"].any()),
                "clock": " and ".join(sorted(of["clock"].unique(), reverse=True)),
            }
        )
    return pd.DataFrame(rows, columns=SCHEMAS["fleet_spread"].names)


def hosts_table(deviations: pd.DataFrame, hosts: pd.Series) -> pd.DataFrame:
    """Table `fleet_hosts` from table `fleet_deviations` and the host of each drive (index: drive).

    Key values alone, by the test of Mann and Whitney (Annals of Mathematical Statistics 18, 1947), p-values adjusted
    after Benjamini and Hochberg for all rows. Hosts with fewer than LEAST_OF_HOST drives are in none.
    """
    rows = []
    counted = deviations[deviations["is_key"] & deviations["place"].notna()]
    for key, of in counted.groupby(VALUE, sort=False):
        at, values = of["drive"].map(hosts).to_numpy(), of["value"].to_numpy(dtype=float)
        for host in dict.fromkeys(at):
            here, others = values[at == host], values[at != host]
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
    found = pd.DataFrame(rows, columns=SCHEMAS["fleet_hosts"].names)
    if rows:
        found["p_adjusted"] = stats.false_discovery_control(found["p_value"].to_numpy(dtype=float))
    return found


def drive_columns(deviations: pd.DataFrame) -> pd.DataFrame:
    """The columns of table `fleet_drives` that follow from table `fleet_deviations`, by drive."""
    by_drive = deviations.assign(
        faulty=deviations["verdict"].isin(FAULTS),
        not_steady=deviations["verdict"] == NOT_STEADY,
        tainted=deviations["taint_reason"].notna(),
    ).groupby("drive", sort=False)
    found = by_drive.agg(
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
    found["key_deviation_pct"] = keys.groupby("drive", sort=False)["deviation_pct"].median()
    return found.assign(place=found["key_deviation_pct"].rank(ascending=False, method="min").astype("Int32"))


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
    low, median, high = (float(one) for one in np.percentile(values, (5, 50, 95)))
    mad = float(stats.median_abs_deviation(values))
    return {
        "median": median, "p5": low, "p95": high, "min": float(values.min()), "max": float(values.max()),
        "mad": mad, "robust_cv_pct": 100 * CONSISTENT * mad / median,
    }  # fmt: skip
