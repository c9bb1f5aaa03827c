"""Performance deltas between drives, and what can be said of them.

Solidigm Performance Evaluation Guide (August 2022), section 4.3: basis/comparison - 1 for times,
comparison/basis - 1 for speeds and scores, so that a positive delta is an improvement either way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.delta_doubts import ASKED, doubts, remarks
from drivelab.analysis.delta_statistics import MEDIAN_FACTOR, inference, scatter
from drivelab.analysis.differences import differing
from drivelab.analysis.loads import without_loads
from drivelab.analysis.multiple import adjusted
from drivelab.analysis.repeats import FEWEST
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, NOT_COMPARED, SAME, WORSE
from drivelab.tables.schemas import SCHEMAS

MARGIN_PCT = 5.0
"""Differences within it are called the same: ours, as the threshold of repeats that agree."""
CONFIDENCE_PCT = 95.0
_SAME_VALUE = ["measurement", "protocol", "cell_label", "metric", "kind", "unit"]
_REPEATS = re.compile(r"\b(median|mean|best) of \d+")
_SCOPES = ("slices", "rounds", "runs", "recordings")
"""The narrowest first: what is said of two values whose samples are of different scopes."""
_MEDIAN = re.compile(r"\bmedian of\b")
_WITHIN_SCATTER = "the difference is within the scatter of the samples"
_BY_CHANCE = "different alone, not after adjusting for all comparisons"
_NOT_SURELY_WITHIN = "within the margin alone, not after adjusting for all comparisons"
_TOLD_OF_BOTH = ("cell_label", "metric", "kind", "alike")
_TOLD = ("drive", "statistic", "verdict", "taint_reason", "samples", "scope", "reduced", "virtual", "clock")
_SIDES = ("basis", "comparison")
_SIGNS = {"time": -1.0, "speed": 1.0, "score": 1.0}
"""Of the logarithm of comparison/basis, by kind of metric: a positive one is an improvement."""


def delta(basis: float, comparison: float, kind: str) -> float:
    """Improvement of `comparison` over `basis` as a fraction; `kind` is time, speed or score.

    Raises ValueError for another kind and for values that are not positive finite numbers.
    """
    for value in (basis, comparison):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{value:g} has no relative difference; values must be positive numbers")
    if kind == "time":
        return basis / comparison - 1
    if kind in ("speed", "score"):
        return comparison / basis - 1
    raise ValueError(f"'{kind}' is no kind of metric; it is time, speed or score")


def deltas_table(
    summary: pd.DataFrame,
    basis: str,
    *,
    margin_pct: float = MARGIN_PCT,
    confidence_pct: float = CONFIDENCE_PCT,
    differences: pd.DataFrame | None = None,
    unintended: str = "show",
    asked: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Table `deltas` from table `summary`: every other drive against the drive `basis`, where it has the value too.

    Values are compared where their statistic is the same but for the number of repeats and the load of points of a
    demand sweep; else CANNOT_TELL, without a delta. Of their ratio there is a confidence interval and a test, see
    `delta_statistics`, from FEWEST samples a side on; p-values are adjusted for all comparisons of the table that can
    be called, of whichever drives, see `multiple`; those that something speaks against have none. The verdict is
    SAME where the interval lies within a factor of 1 + `margin_pct` / 100 either way and each of the two tests of
    equivalence, adjusted, keeps half the level; BETTER or WORSE where the difference is significant, adjusted, and the
    interval reaches beyond the margin; else, and wherever something speaks against the values or against comparing
    them, CANNOT_TELL, and `doubts` says why. Where `unintended` is "forbid", pairs that differ in something that is not
    intended, by the table `differences`, are NOT_COMPARED. `asked` has for the rows of the summary, by their index,
    what a measurement asked of the drive, columns of ASKED, null where there is no such thing: values that differ in it
    are in doubt. Raises ValueError when the summary has rows, but none of `basis`, and for values that are not
    positive.
    """
    if asked is not None:
        summary = summary.join(asked)
    reference = summary[summary["drive"] == basis]
    if reference.empty and not summary.empty:
        raise ValueError(f"the basis '{basis}' is not among the drives in the summary")
    pairs = _pairs(reference, summary[summary["drive"] != basis])
    if pairs.empty:
        return pd.DataFrame(columns=SCHEMAS["deltas"].names)
    forbidden = _forbidden(pairs, differences if unintended == "forbid" else None)
    records = _records(pairs)
    of_values = [doubts(pair) for pair in records]
    stands = pairs["alike"].to_numpy() & [not one for one in forbidden]
    tested = _tested(pairs, stands, stands & [not one for one in of_values], margin_pct, confidence_pct)
    decided, undecided = _decisions(tested, margin_pct, 1 - confidence_pct / 100)
    return _described(pairs).assign(
        **tested,
        margin_pct=margin_pct,
        verdict=[
            NOT_COMPARED if names else CANNOT_TELL if found or not verdict else verdict
            for names, found, verdict in zip(forbidden, of_values, decided, strict=True)
        ],
        doubts=[
            names or [*found, *why] for names, found, why in zip(forbidden, of_values, undecided, strict=True)
        ],
        remarks=[remarks(pair, 1 - confidence_pct / 100) for pair in records],
    )[SCHEMAS["deltas"].names]  # fmt: skip


def readjusted(
    deltas: pd.DataFrame, p_adjusted: pd.Series, equivalence_p_adjusted: pd.Series, confidence_pct: float
) -> pd.DataFrame:
    """Table `deltas` decided by p-values that were adjusted for more comparisons than its own, as for all of a fleet.

    The Series have the index of `deltas`. A pair that could not be called, which has no adjusted p-value, stays as it
    is.
    """
    found = deltas.assign(p_adjusted=p_adjusted, equivalence_p_adjusted=equivalence_p_adjusted)
    again = deltas["p_adjusted"].notna().to_numpy()
    if not again.any():
        return deltas
    columns = {name: found[name] for name in found.columns}
    decided, undecided = _decisions(columns, float(deltas["margin_pct"].iloc[0]), 1 - confidence_pct / 100)
    rows = zip(again, decided, undecided, deltas["verdict"], deltas["doubts"], strict=True)
    told = [(verdict or CANNOT_TELL, why) if anew else (old, list(doubts)) for anew, verdict, why, old, doubts in rows]
    return found.assign(verdict=[verdict for verdict, _ in told], doubts=[doubts for _, doubts in told])


def _pairs(reference: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """A row for each value that both have, columns with `_basis` and `_comparison`; `alike`: it came about alike."""
    # a median of 3 rounds and one of 5 are the same statistic
    of_kind = [
        side.assign(of=without_loads(side["statistic"]).str.replace(_REPEATS, r"\1 of N", regex=True))
        for side in (others, reference)
    ]
    found = of_kind[0].merge(of_kind[1], on=_SAME_VALUE, suffixes=("_comparison", "_basis"))
    alike = found["of_comparison"] == found["of_basis"]
    if not alike.all():
        of_value = [found[name] for name in ("drive_comparison", *_SAME_VALUE)]
        chosen = alike | ~alike.groupby(of_value).transform("any")
        found, alike = found[chosen].reset_index(drop=True), alike[chosen].reset_index(drop=True)
    return found.assign(alike=alike)


def _records(pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """What words are made of, a mapping for each pair; there may be very many."""
    asked = [name for name in ASKED if f"{name}_basis" in pairs]
    names = [*_TOLD_OF_BOTH, *(f"{name}_{side}" for name in (*_TOLD, *asked) for side in _SIDES)]
    columns = (pairs[name].to_numpy(dtype=object).tolist() for name in names)
    return [dict(zip(names, one, strict=True)) for one in zip(*columns, strict=True)]


def _forbidden(pairs: pd.DataFrame, differences: pd.DataFrame | None) -> list[list[str]]:
    """For each pair, what differs though nobody meant it to; `differences` is None where that is allowed."""
    by_pair: dict[tuple[str, str, str], list[str]] = {}
    if differences is not None:
        for one in differences[~differences["intended"].astype(bool)].itertuples():
            words = differing(one.facet, one.basis_value, one.comparison_value)
            by_pair.setdefault((one.measurement, one.basis, one.comparison), []).append(words)
    keys = zip(pairs["measurement"], pairs["drive_basis"], pairs["drive_comparison"], strict=True)
    return [by_pair.get(key, []) for key in keys]


def _tested(
    pairs: pd.DataFrame,
    stands: npt.NDArray[np.bool_],
    can_be_called: npt.NDArray[np.bool_],
    margin_pct: float,
    confidence_pct: float,
) -> dict[str, pd.Series]:
    """The columns of numbers; NaN for pairs that do not stand, adjusted ones also for those that cannot be called."""
    positive = _positive(pairs["value_basis"]) & _positive(pairs["value_comparison"])
    for pair in pairs[pairs["alike"] & ~positive].itertuples():
        delta(pair.value_basis, pair.value_comparison, pair.kind)  # says which
    signs = pairs["kind"].map(_SIGNS)
    if signs.isna().any():
        delta(1.0, 1.0, str(pairs.loc[signs.isna(), "kind"].iloc[0]))
    ratios = (pairs["value_comparison"] / pairs["value_basis"]).where(positive, 1.0)
    log_ratios = (signs * np.log(ratios)).to_numpy(dtype=float)
    basis, comparison = (scatter(list(pairs[f"samples_{side}"]), FEWEST) for side in _SIDES)
    found = inference(
        log_ratios,
        basis,
        comparison,
        np.where(pairs["of_basis"].str.contains(_MEDIAN), MEDIAN_FACTOR, 1.0),
        math.log1p(margin_pct / 100),
        confidence_pct / 100,
    )
    numbers = {
        "delta_pct": 100 * np.expm1(log_ratios) + 0.0,  # no negative zero
        "interval_low_pct": 100 * np.expm1(found.low) + 0.0,
        "interval_high_pct": 100 * np.expm1(found.high) + 0.0,
        "p_value": found.p_value,
        "equivalence_p": found.equivalence_p,
    }
    columns = {name: pd.Series(np.where(stands, one, np.nan), index=pairs.index) for name, one in numbers.items()}
    cells = [pairs[name] for name in ("drive_comparison", "measurement", "cell_label")]
    for name, adjusted_name in (("p_value", "p_adjusted"), ("equivalence_p", "equivalence_p_adjusted")):
        columns[adjusted_name] = adjusted(columns[name].where(can_be_called), cells, pairs["metric"])
    return columns


def _positive(values: pd.Series) -> pd.Series:
    return np.isfinite(values) & (values > 0)


def _decisions(tested: Mapping[str, pd.Series], margin_pct: float, alpha: float) -> tuple[list[str], list[list[str]]]:
    """For each pair the verdict that the numbers alone allow, and why they allow none; one of the two is empty.

    Both are where no p-value is adjusted: what speaks against the values says why.
    """
    low, high = tested["interval_low_pct"], tested["interval_high_pct"]
    within = (low > 100 * math.expm1(-math.log1p(margin_pct / 100))) & (high < margin_pct)
    same = within & (tested["equivalence_p_adjusted"] <= alpha / 2)
    differs = ~within & (tested["p_adjusted"] <= alpha)
    by_chance = tested["p_value"] <= alpha
    better = tested["delta_pct"] > 0
    verdicts = np.select([same, differs & better, differs], [SAME, BETTER, WORSE], "")
    told = same | differs | tested["p_adjusted"].isna()
    reasons = np.select([told, within, by_chance], ["", _NOT_SURELY_WITHIN, _BY_CHANCE], _WITHIN_SCATTER)
    return list(verdicts), [[str(reason)] if reason else [] for reason in reasons]


def _described(pairs: pd.DataFrame) -> pd.DataFrame:
    """What the columns of the table say of the two values themselves."""
    values = {f"{side}_value": pairs[f"value_{side}"] for side in _SIDES}
    counts = {f"{side}_n": pairs[f"samples_{side}"].str.len() for side in _SIDES}
    either = {one: pairs[f"{one}_basis"].astype(bool) | pairs[f"{one}_comparison"] for one in ("reduced", "virtual")}
    clocks = zip(pairs["clock_basis"], pairs["clock_comparison"], strict=True)
    scopes = zip(pairs["scope_basis"], pairs["scope_comparison"], strict=True)
    return pairs[_SAME_VALUE].assign(
        basis=pairs["drive_basis"],
        comparison=pairs["drive_comparison"],
        **{**values, **counts, **either},
        clock=[" and ".join(sorted(set(both), reverse=True)) for both in clocks],
        scope=[min(both, key=_SCOPES.index) for both in scopes],
    )
