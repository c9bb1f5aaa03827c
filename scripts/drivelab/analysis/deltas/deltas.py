"""Compute performance deltas between drives and their verdicts.

Solidigm Performance Evaluation Guide (August 2022), section 4.3: basis/comparison - 1 for times, comparison/basis - 1
for speeds and scores. A positive delta is always an improvement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.deltas.differences import differing
from drivelab.analysis.deltas.doubts import WORKLOAD_FACETS, doubts, remarks, without_loads
from drivelab.analysis.deltas.inference import MEDIAN_FACTOR, adjusted, inference, scatter
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, NOT_COMPARED, SAME, WORSE
from drivelab.criteria.repeats import FEWEST
from drivelab.tables.schemas import SCHEMAS

MARGIN_PCT = 5.0
"""Differences within this margin are called the same (ours, equal to the threshold for repeats that agree)."""
CONFIDENCE_PCT = 95.0
_SAME_VALUE = ["measurement", "protocol", "cell_label", "metric", "kind", "unit"]
_REPEATS = re.compile(r"\b(median|mean|best) of \d+")
_SCOPES = ("slices", "rounds", "runs", "recordings")
"""Scopes, narrowest first: a pair of values with different scopes gets the narrower one."""
_MEDIAN = re.compile(r"\bmedian of\b")
_WITHIN_SCATTER = "the difference is within the scatter of the samples"
_BY_CHANCE = "different alone, not after adjusting for all comparisons"
_NOT_SURELY_WITHIN = "within the margin alone, not after adjusting for all comparisons"
_SHARED_FIELDS = ("cell_label", "metric", "kind", "alike")
_SIDE_FIELDS = ("drive", "statistic", "verdict", "taint_reason", "samples", "scope", "reduced", "virtual", "clock")
_SIDES = ("basis", "comparison")
_SIGNS = {"time": -1.0, "speed": 1.0, "score": 1.0}
"""Sign that makes the logarithm of comparison/basis positive for an improvement, by kind of metric."""


def delta(basis: float, comparison: float, kind: str) -> float:
    """Return the improvement of `comparison` over `basis` as a fraction.

    `kind` is time, speed or score.

    Raises ValueError for another kind and for values that are not positive finite numbers.
    """
    for value in (basis, comparison):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{value:g} has no relative difference; values must be positive numbers")
    if kind == "time":
        return basis / comparison - 1
    if kind in ("speed", "score"):
        return comparison / basis - 1
    raise ValueError(f"unknown kind of metric '{kind}'; use time, speed or score")


def deltas_table(
    summary: pd.DataFrame,
    basis: str,
    *,
    margin_pct: float = MARGIN_PCT,
    confidence_pct: float = CONFIDENCE_PCT,
    differences: pd.DataFrame | None = None,
    unintended: str = "show",
    workloads: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Make table `deltas`: every drive of table `summary` against the drive `basis`.

    Each value of another drive is compared with the same value of the basis. Two values are comparable if their
    statistics are equal; the number of repeats and the load at points of a demand sweep may differ. Other pairs are
    CANNOT_TELL, without a delta. With at least FEWEST samples on each side, a ratio has a confidence interval and a
    test, see `delta_statistics`. p-values are adjusted for all comparisons of the table without a doubt, over all
    drives, see `multiple`; comparisons with a doubt have none.

    Verdicts:
    * SAME: the interval lies within a factor of 1 + `margin_pct` / 100 in both directions, and each of the two
      equivalence tests, adjusted, keeps half the level.
    * BETTER or WORSE: the difference is significant after adjusting, and the interval reaches beyond the margin.
    * NOT_COMPARED: `unintended` is "forbid", and table `differences` lists an unintended difference for the pair.
    * CANNOT_TELL: all others, and every pair with a doubt about the values or about comparing them; `doubts` says why.

    `workloads` has the columns of WORKLOAD_FACETS for the rows of the summary (same index), null where a facet does not
    apply: values that differ in a facet are in doubt. Raises ValueError when the summary has rows but none of `basis`,
    and for values that are not positive.
    """
    if workloads is not None:
        summary = summary.join(workloads)
    reference = summary[summary["drive"] == basis]
    if reference.empty and not summary.empty:
        raise ValueError(f"the summary has no drive '{basis}', which is the basis")
    pairs = _pairs(reference, summary[summary["drive"] != basis])
    if pairs.empty:
        return pd.DataFrame(columns=SCHEMAS["deltas"].names)
    forbidden = _forbidden(pairs, differences if unintended == "forbid" else None)
    records = _records(pairs)
    doubts_by_pair = [doubts(pair) for pair in records]
    comparable = pairs["alike"].to_numpy() & [not names for names in forbidden]
    without_doubt = comparable & [not pair_doubts for pair_doubts in doubts_by_pair]
    tested = _tested(pairs, comparable, without_doubt, margin_pct, confidence_pct)
    decided, undecided = _decisions(tested, margin_pct, 1 - confidence_pct / 100)
    return _described(pairs).assign(
        **tested,
        margin_pct=margin_pct,
        verdict=[
            NOT_COMPARED if names else CANNOT_TELL if pair_doubts or not verdict else verdict
            for names, pair_doubts, verdict in zip(forbidden, doubts_by_pair, decided, strict=True)
        ],
        doubts=[
            names or [*pair_doubts, *reasons]
            for names, pair_doubts, reasons in zip(forbidden, doubts_by_pair, undecided, strict=True)
        ],
        remarks=[remarks(pair, 1 - confidence_pct / 100) for pair in records],
    )[SCHEMAS["deltas"].names]  # fmt: skip


def readjusted(
    deltas: pd.DataFrame, p_adjusted: pd.Series, equivalence_p_adjusted: pd.Series, confidence_pct: float
) -> pd.DataFrame:
    """Return table `deltas` with verdicts by p-values adjusted over a whole fleet.

    Both Series have the index of `deltas`. A pair without an adjusted p-value keeps its verdict and doubts.
    """
    table = deltas.assign(p_adjusted=p_adjusted, equivalence_p_adjusted=equivalence_p_adjusted)
    has_p = deltas["p_adjusted"].notna().to_numpy()
    if not has_p.any():
        return deltas
    columns = {name: table[name] for name in table.columns}
    decided, undecided = _decisions(columns, float(deltas["margin_pct"].iloc[0]), 1 - confidence_pct / 100)
    rows = zip(has_p, decided, undecided, deltas["verdict"], deltas["doubts"], strict=True)
    results = [
        (verdict or CANNOT_TELL, reasons) if redo else (old_verdict, list(old_doubts))
        for redo, verdict, reasons, old_verdict, old_doubts in rows
    ]
    return table.assign(verdict=[verdict for verdict, _ in results], doubts=[doubts for _, doubts in results])


def _pairs(reference: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each common value, columns `…_basis` and `…_comparison`.

    `alike` says whether both values have the same statistic (`of_basis`, `of_comparison`).
    """
    # a median of 3 rounds and a median of 5 are the same statistic
    sides = [
        side.assign(of=without_loads(side["statistic"]).str.replace(_REPEATS, r"\1 of N", regex=True))
        for side in (others, reference)
    ]
    pairs = sides[0].merge(sides[1], on=_SAME_VALUE, suffixes=("_comparison", "_basis"))
    alike = pairs["of_comparison"] == pairs["of_basis"]
    if not alike.all():
        same_value = [pairs[name] for name in ("drive_comparison", *_SAME_VALUE)]
        chosen = alike | ~alike.groupby(same_value).transform("any")
        pairs, alike = pairs[chosen].reset_index(drop=True), alike[chosen].reset_index(drop=True)
    return pairs.assign(alike=alike)


def _records(pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a mapping for each pair with what doubts and remarks need.

    Fast, as there may be very many pairs.
    """
    facets = [name for name in WORKLOAD_FACETS if f"{name}_basis" in pairs]
    names = [*_SHARED_FIELDS, *(f"{name}_{side}" for name in (*_SIDE_FIELDS, *facets) for side in _SIDES)]
    columns = (pairs[name].to_numpy(dtype=object).tolist() for name in names)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _forbidden(pairs: pd.DataFrame, differences: pd.DataFrame | None) -> list[list[str]]:
    """Return the unintended differences of each pair.

    `differences` is None where they are allowed.
    """
    by_pair: dict[tuple[str, str, str], list[str]] = {}
    if differences is not None:
        for row in differences[~differences["intended"].astype(bool)].itertuples():
            difference = differing(row.facet, row.basis_value, row.comparison_value)
            by_pair.setdefault((row.measurement, row.basis, row.comparison), []).append(difference)
    keys = zip(pairs["measurement"], pairs["drive_basis"], pairs["drive_comparison"], strict=True)
    return [by_pair.get(key, []) for key in keys]


def _tested(
    pairs: pd.DataFrame,
    comparable: npt.NDArray[np.bool_],
    without_doubt: npt.NDArray[np.bool_],
    margin_pct: float,
    confidence_pct: float,
) -> dict[str, pd.Series]:
    """Return the numeric columns.

    Values are NaN for pairs that are not comparable. Pairs with a doubt have no adjusted ones.
    """
    positive = _positive(pairs["value_basis"]) & _positive(pairs["value_comparison"])
    for pair in pairs[pairs["alike"] & ~positive].itertuples():
        delta(pair.value_basis, pair.value_comparison, pair.kind)  # raises the error that names the value
    signs = pairs["kind"].map(_SIGNS)
    if signs.isna().any():
        delta(1.0, 1.0, str(pairs.loc[signs.isna(), "kind"].iloc[0]))
    ratios = (pairs["value_comparison"] / pairs["value_basis"]).where(positive, 1.0)
    log_ratios = (signs * np.log(ratios)).to_numpy(dtype=float)
    basis, comparison = (scatter(list(pairs[f"samples_{side}"]), FEWEST) for side in _SIDES)
    results = inference(
        log_ratios,
        basis,
        comparison,
        np.where(pairs["of_basis"].str.contains(_MEDIAN), MEDIAN_FACTOR, 1.0),
        math.log1p(margin_pct / 100),
        confidence_pct / 100,
    )
    numbers = {
        "delta_pct": 100 * np.expm1(log_ratios) + 0.0,  # no negative zero
        "interval_low_pct": 100 * np.expm1(results.low) + 0.0,
        "interval_high_pct": 100 * np.expm1(results.high) + 0.0,
        "p_value": results.p_value,
        "equivalence_p": results.equivalence_p,
    }
    columns = {
        name: pd.Series(np.where(comparable, values, np.nan), index=pairs.index) for name, values in numbers.items()
    }
    cells = [pairs[name] for name in ("drive_comparison", "measurement", "cell_label")]
    for name, adjusted_name in (("p_value", "p_adjusted"), ("equivalence_p", "equivalence_p_adjusted")):
        columns[adjusted_name] = adjusted(columns[name].where(without_doubt), cells, pairs["metric"])
    return columns


def _positive(values: pd.Series) -> pd.Series:
    return np.isfinite(values) & (values > 0)


def _decisions(tested: Mapping[str, pd.Series], margin_pct: float, alpha: float) -> tuple[list[str], list[list[str]]]:
    """Return for each pair the verdict by its numbers, or the reason for none.

    One of the two is empty. Both are empty for a pair without an adjusted p-value: its doubts say why.
    """
    low, high = tested["interval_low_pct"], tested["interval_high_pct"]
    within = (low > 100 * math.expm1(-math.log1p(margin_pct / 100))) & (high < margin_pct)
    same = within & (tested["equivalence_p_adjusted"] <= alpha / 2)
    differs = ~within & (tested["p_adjusted"] <= alpha)
    by_chance = tested["p_value"] <= alpha
    better = tested["delta_pct"] > 0
    verdicts = np.select([same, differs & better, differs], [SAME, BETTER, WORSE], "")
    needs_no_reason = same | differs | tested["p_adjusted"].isna()
    reasons = np.select([needs_no_reason, within, by_chance], ["", _NOT_SURELY_WITHIN, _BY_CHANCE], _WITHIN_SCATTER)
    return list(verdicts), [[str(reason)] if reason else [] for reason in reasons]


def _described(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that describe the two values themselves."""
    values = {f"{side}_value": pairs[f"value_{side}"] for side in _SIDES}
    counts = {f"{side}_n": pairs[f"samples_{side}"].str.len() for side in _SIDES}
    flags = ("reduced", "virtual")
    either = {name: pairs[f"{name}_basis"].astype(bool) | pairs[f"{name}_comparison"] for name in flags}
    clocks = zip(pairs["clock_basis"], pairs["clock_comparison"], strict=True)
    scopes = zip(pairs["scope_basis"], pairs["scope_comparison"], strict=True)
    return pairs[_SAME_VALUE].assign(
        basis=pairs["drive_basis"],
        comparison=pairs["drive_comparison"],
        **{**values, **counts, **either},
        clock=[" and ".join(sorted(set(both), reverse=True)) for both in clocks],
        scope=[min(both, key=_SCOPES.index) for both in scopes],
    )
