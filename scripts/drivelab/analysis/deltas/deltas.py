"""Compute performance deltas between drives and their verdicts.

Solidigm Performance Evaluation Guide (August 2022), section 4.3: basis/comparison - 1 for times, comparison/basis - 1
for speeds and scores. A positive delta is always an improvement.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.deltas.differences import differing, forbidden
from drivelab.analysis.deltas.doubts import WORKLOAD_FACETS, doubts, of_one_recording, remarks
from drivelab.analysis.deltas.inference import adjusted, p_values
from drivelab.analysis.deltas.judging import judged, percent, unsure
from drivelab.analysis.deltas.recordings import Floats, Ratios, ratios
from drivelab.analysis.values.latency_values import NINES
from drivelab.analysis.values.summary import pooled
from drivelab.analysis.verdict import CANNOT_TELL, NOT_COMPARED
from drivelab.criteria.repeats import FEWEST
from drivelab.tables.schemas import SCHEMAS, SHAPE

MARGIN_PCT = 5.0
"""Differences within this margin are called the same (ours, equal to the threshold for repeats that agree)."""
CONFIDENCE_PCT = 95.0
_SAME_VALUE = ["measurement", "protocol", "cell_label", "metric", "kind", "unit"]
_REPEATS = re.compile(r"\b(median|mean|best) of \d+")
_SHARED_FIELDS = ("cell_label", "metric", "kind", "alike")
_SIDE_FIELDS = ("drive", "statistic", "verdict", "taint_reason", "logs", "reduced", "virtual", "clock")
_SIDES = ("basis", "comparison")
_UNITS = (1.0, 0.1, 0.01, 0.001)
"""Units of printed values."""
_SIGNS = {"time": -1.0, "speed": 1.0, "score": 1.0}
"""Sign that makes the logarithm of comparison/basis positive for an improvement, by kind of metric."""


def deltas_table(
    summary: pd.DataFrame,
    basis: str,
    *,
    margin_pct: float = MARGIN_PCT,
    confidence_pct: float = CONFIDENCE_PCT,
    differences: pd.DataFrame | None = None,
    unintended: str = "show",
    started: Mapping[str, str] | None = None,
    workloads: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Make table `deltas`: every drive of table `summary` against the drive `basis`.

    Each value of another drive is compared with the same value of the basis. Two values are comparable if their
    statistics are equal; the number of repeats and the load at points of a demand sweep may differ. Other pairs have a
    delta, and are CANNOT_TELL without a test. With at least FEWEST recordings on each side, a ratio has a confidence
    interval and tests, see `drivelab.analysis.deltas.recordings` and `inference`. p-values are adjusted for all
    comparisons of the table without a doubt, over all drives; comparisons with a doubt have no adjusted ones.

    Verdicts:
    * SAME: each of the two equivalence tests, adjusted, keeps half the level, so the interval lies within a factor of
      1 + `margin_pct` / 100 in both directions.
    * FASTER_BEYOND, FASTER, SLOWER, SLOWER_BEYOND: the adjusted test of no difference keeps the level; the whole
      interval lies beyond the margin, or not.
    * A verdict that the fitted asymptotes of the windows contradict is weaker, see `judged`.
    * NOT_COMPARED: `unintended` is "forbid", and table `differences` lists an unintended difference for the pair.
    * CANNOT_TELL: all others, and every pair with a doubt about the values or about comparing them; `doubts` says why.

    Intervals of decided pairs are adjusted for selection; all others have the confidence alone.

    `started` has the start of recordings (ISO 8601): two drives are compared within runs if each run of both began
    after the one before. `workloads` has the columns of WORKLOAD_FACETS for the rows of the summary (same index), null
    where a facet does not apply: values that differ in a facet are in doubt. Raises ValueError when the summary has
    rows but none of `basis`, and for values that are not positive.
    """
    if workloads is not None:
        summary = summary.join(workloads)
    reference = summary[summary["drive"] == basis]
    if reference.empty and not summary.empty:
        raise ValueError(f"the summary has no drive '{basis}', which is the basis")
    pairs = _pairs(reference, summary[summary["drive"] != basis])
    sides = zip(*(pairs[f"recordings_{side}"] for side in _SIDES), strict=True)
    pairs = pairs.assign(paired=[_in_blocks(one, other, started or {}) for one, other in sides])
    if pairs.empty:
        return pd.DataFrame(columns=SCHEMAS["deltas"].names)
    by_pair: dict[tuple[str, str, str], list[str]] = {}
    if differences is not None and unintended == "forbid":
        for row in forbidden(differences).itertuples():
            words = differing(row.facet, row.basis_value, row.comparison_value)
            by_pair.setdefault((row.measurement, row.basis, row.comparison), []).append(words)
    keys = zip(pairs["measurement"], pairs["drive_basis"], pairs["drive_comparison"], strict=True)
    unaccepted = [by_pair.get(key, []) for key in keys]
    records = _records(pairs)
    doubts_by_pair = [doubts(pair) for pair in records]
    allowed = np.array([not names for names in unaccepted], dtype=bool)
    comparable = pairs["alike"].to_numpy() & allowed
    disturbances = pairs[[f"disturbance_pct_{side}" for side in _SIDES]].astype(float)
    # A disturbance of known size is one of the doubts; the interval includes it.
    bounded = disturbances.notna().sum(axis=1).to_numpy()
    without_doubt = comparable & (np.array([len(pair_doubts) for pair_doubts in doubts_by_pair]) == bounded)
    pairs = pairs.assign(disturbance_pct=disturbances.max(axis=1).where(without_doubt))
    alpha = 1 - confidence_pct / 100
    ratios_by_pair = _ratios(pairs, comparable, without_doubt)
    p = p_values(ratios_by_pair, math.log1p(margin_pct / 100))
    to_basis, to_comparison = (np.log1p(pairs[f"asymptote_pct_{side}"].astype(float) / 100) for side in _SIDES)
    settling = (_signs(pairs) * (to_comparison - to_basis)).to_numpy(dtype=float)
    tested = {
        "delta_pct": pd.Series(percent(ratios_by_pair.logs), index=pairs.index).where(allowed),
        "asymptote_delta_pct": np.where(comparable, percent(settling + ratios_by_pair.logs), np.nan),
        "disturbance_pct": pairs["disturbance_pct"],
        "log_error": pd.Series(ratios_by_pair.errors, index=pairs.index),
        "freedom": pd.Series(ratios_by_pair.freedom, index=pairs.index).where(np.isfinite(ratios_by_pair.errors)),
        "p_value": pd.Series(p.difference, index=pairs.index),
        "equivalence_p": pd.Series(p.equivalence, index=pairs.index),
    }
    cells = [pairs[name] for name in ("drive_comparison", "measurement", "cell_label")]
    table = _described(pairs).assign(**tested, margin_pct=margin_pct, remarks=[remarks(pair) for pair in records])
    reasons = [names or pair_doubts for names, pair_doubts in zip(unaccepted, doubts_by_pair, strict=True)]
    undecided = [NOT_COMPARED if names else CANNOT_TELL for names in unaccepted]
    table = table.assign(verdict=undecided, doubts=reasons)
    difference, equivalence = (
        adjusted(tested[name].where(without_doubt), cells, pairs["metric"], level)
        for name, level in (("p_value", alpha), ("equivalence_p", alpha / 2))
    )
    return judged(table, difference, equivalence, confidence_pct)[SCHEMAS["deltas"].names]


def _logs(values: Any) -> Floats:
    """Return the logarithms of values; NaN for those that are not positive numbers."""
    numbers = np.array(values, dtype=float)
    return np.log(np.where(np.isfinite(numbers) & (numbers > 0), numbers, np.nan))


def _rounding(samples: Any) -> float:
    """Return the standard deviation of the logarithm that rounding adds to values printed in units of 1 to 0.001."""
    values = np.array(samples, dtype=float)
    if not (np.isfinite(values).all() and values.any()):
        return 0.0
    units = (unit for unit in _UNITS if (np.abs(values / unit - np.round(values / unit)) < 1e-6).all())
    return next(units, 0.0) / math.sqrt(12) / float(np.abs(values).mean())


def _pairs(reference: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each common value, columns `…_basis` and `…_comparison`.

    `alike` says whether both values have the same statistic (`of_basis`, `of_comparison`).
    """
    # a median of 3 rounds and a median of 5 are the same statistic, and so are values of 1 recording and of 3
    sides = [
        side.assign(
            of=[_REPEATS.sub(r"\1 of N", of_one_recording(statistic)) for statistic in side["statistic"]],
            logs=[
                _logs(samples if scope == "recordings" else [value])
                for value, samples, scope in zip(side["value"], side["samples"], side["scope"], strict=True)
            ],
            rounding=[_rounding(samples) for samples in side["samples"]],
        )
        for side in (others, reference)
    ]
    pairs = sides[0].merge(sides[1], on=_SAME_VALUE, suffixes=("_comparison", "_basis"))
    alike = pairs["of_comparison"] == pairs["of_basis"]
    if not alike.all():
        same_value = [pairs[name] for name in ("drive_comparison", *_SAME_VALUE)]
        chosen = alike | ~alike.groupby(same_value).transform("any")
        pairs, alike = pairs[chosen].reset_index(drop=True), alike[chosen].reset_index(drop=True)
    return pairs.assign(alike=alike)


def _in_blocks(basis: Sequence[str], comparison: Sequence[str], started: Mapping[str, str]) -> bool:
    """Return whether both sides have the same runs, and each run of both began after the one before had begun on both.

    Then what shifts a whole run, such as a warming room, is in the recordings of both sides.
    """
    if not all(name in started for name in (*basis, *comparison)):
        return False
    runs, others = ([str(name).rpartition("-run")[2] for name in names] for names in (basis, comparison))
    if not runs or runs != others:
        return False
    times = [sorted((started[one], started[other])) for one, other in zip(basis, comparison, strict=True)]
    return all(before[1] < after[0] for before, after in pairwise(times))


def _records(pairs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a mapping for each pair with what doubts and remarks need. Fast, as there may be very many pairs."""
    known = [name for name in ("host_limit", *WORKLOAD_FACETS) if f"{name}_basis" in pairs]
    names = [*_SHARED_FIELDS, *(f"{name}_{side}" for name in (*_SIDE_FIELDS, *known) for side in _SIDES)]
    columns = (pairs[name].to_numpy(dtype=object).tolist() for name in names)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _signs(pairs: pd.DataFrame) -> Floats:
    """Return the sign of each pair's kind of metric; raises KeyError for an unknown kind."""
    return np.array([_SIGNS[kind] for kind in pairs["kind"]])


def _ratios(pairs: pd.DataFrame, comparable: npt.NDArray[np.bool_], without_doubt: npt.NDArray[np.bool_]) -> Ratios:
    """Return the ratios of all pairs, positive for an improvement.

    The error is NaN for pairs that are not comparable and for fewer than FEWEST recordings on a side. Values in
    doubt, and disturbed ones, are left out of the scatter of the others, because their scatter differs.
    """
    values = pairs[[f"value_{side}" for side in _SIDES]].to_numpy(dtype=float)
    positive = (values > 0) & np.isfinite(values)
    if len(wrong := values[pairs["alike"].to_numpy()[:, None] & ~positive]):
        raise ValueError(f"{wrong[0]:g} has no relative difference; values must be positive numbers")
    signs = _signs(pairs)
    logs = np.log((pairs["value_comparison"] / pairs["value_basis"]).where(positive.all(axis=1)))
    errors, freedom = np.full(len(pairs), np.nan), np.ones(len(pairs))
    alike = pairs.groupby(["pattern_basis", "read_share_pct_basis"]).ngroup().fillna(-1).to_numpy(dtype=int)
    same_recordings: dict[tuple[Any, ...], list[int]] = {}
    for place, pair in enumerate(pairs.itertuples()):
        both = pair.logs_basis, pair.logs_comparison
        if comparable[place] and min(map(len, both)) >= FEWEST and np.isfinite(np.concatenate(both)).all():
            scatters_alike = without_doubt[place], math.isnan(pair.disturbance_pct)
            key = (pair.paired, pair.drive_comparison, pair.measurement, pair.metric, *scatters_alike,
                   *map(len, both), *pair.recordings_basis, *pair.recordings_comparison)  # fmt: skip
            same_recordings.setdefault(key, []).append(place)
    for (is_paired, *_), places in same_recordings.items():
        basis, comparison = (np.stack(pairs[f"logs_{side}"].iloc[places].tolist()) for side in _SIDES)
        of_cells = ratios(basis, comparison, alike[places], paired=is_paired)
        errors[places], freedom[places] = of_cells.errors, of_cells.freedom
    rounding = np.hypot(*(pairs[f"rounding_{side}"].to_numpy(dtype=float) for side in _SIDES))
    coarse = (errors < rounding) & ~pairs["metric"].isin(NINES)  # equal digits are no certainty; bins are in `unsure`
    errors[coarse] = rounding[coarse]
    counts = sum(pairs[f"logs_{side}"].str.len() for side in _SIDES)
    freedom[coarse] = np.maximum(freedom, counts - 2)[coarse]
    return Ratios((signs * logs).to_numpy(dtype=float), errors, freedom, unsure(pairs))


def _described(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that describe the two values themselves."""
    values = {f"{side}_value": pairs[f"value_{side}"] for side in _SIDES}
    counts = {f"{side}_n": pairs[f"logs_{side}"].str.len() for side in _SIDES}
    flags = ("reduced", "virtual")
    either = {name: pairs[f"{name}_basis"].astype(bool) | pairs[f"{name}_comparison"] for name in flags}
    clocks = zip(pairs["clock_basis"], pairs["clock_comparison"], strict=True)
    return pairs[_SAME_VALUE].assign(
        **{name: pairs[f"{name}_basis"] for name in SHAPE},
        basis=pairs["drive_basis"],
        comparison=pairs["drive_comparison"],
        **{**values, **counts, **either},
        clock=[" and ".join(sorted(set(both), reverse=True)) for both in clocks],
    )


def model_deltas(
    summary: pd.DataFrame,
    models: Mapping[str, str],
    basis: str,
    *,
    margin_pct: float = MARGIN_PCT,
    confidence_pct: float = CONFIDENCE_PCT,
) -> pd.DataFrame:
    """Make a table like `deltas` of the other models against that of the drive `basis`.

    `summary` has all drives; `models` has the model of each drive that has one. A verdict needs three specimens a side.
    `basis_n` and `comparison_n` count specimens, and so do `recordings_needed`, doubts and remarks. Empty without a
    second model.
    """
    of_models = summary[summary["drive"].isin(models)]
    specimens = of_models.assign(
        drive=of_models["drive"].map(models),
        recording=of_models["drive"],
        run=1,
        n=1,
        samples=[[value] for value in of_models["value"]],
        scope="recordings",
    )
    values = pooled([{str(name): value for name, value in row.items()} for row in specimens.to_dict("records")])
    if values["drive"].nunique() < 2 or models.get(basis) not in set(values["drive"]):
        return pd.DataFrame(columns=SCHEMAS["deltas"].names)
    deltas = deltas_table(values, models[basis], margin_pct=margin_pct, confidence_pct=confidence_pct)
    for column in ("doubts", "remarks"):
        deltas[column] = [[words.replace("recordings", "specimens") for words in of_one] for of_one in deltas[column]]
    return deltas
