"""Judge differences by their adjusted tests and intervals, and by what the drives were still approaching."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from drivelab.analysis.deltas.doubts import NOT_SETTLED_BY_MORE
from drivelab.analysis.deltas.inference import Adjusted, interval
from drivelab.analysis.deltas.power import recordings_needed
from drivelab.analysis.deltas.recordings import Floats, Ratios
from drivelab.analysis.values.latency_values import HALF_BIN, NINES
from drivelab.analysis.verdict import CANNOT_TELL, FASTER, FASTER_BEYOND, SAME, SLOWER, SLOWER_BEYOND
from drivelab.criteria.repeats import FEWEST

_WITHIN_SCATTER = "the difference is within the scatter of the recordings"
_BY_CHANCE = "different alone, not after adjusting for all comparisons"
_NOT_SURELY_WITHIN = "within the margin alone, not after adjusting for all comparisons"
UNSETTLED = "not settled: the fitted asymptotes of the windows contradict it; precondition longer"
"""A doubt that more recordings do not settle."""


def judged(table: pd.DataFrame, difference: Adjusted, equivalence: Adjusted, confidence_pct: float) -> pd.DataFrame:
    """Return table `deltas` with verdicts and intervals by adjusted p-values.

    `difference` and `equivalence` have the index of `table`. A pair without an adjusted p-value keeps its verdict and
    doubts, and gets the interval of the confidence alone.

    Drives that have not settled may differ less, or more, than in their windows. A difference of which the fitted
    asymptotes keep less than half becomes CANNOT_TELL, as does SAME if they lie beyond the margin; a difference that
    they have within the margin becomes FASTER or SLOWER.

    A pair with a disturbance of known size keeps its doubts. Its tests and intervals include the disturbance, and it is
    CANNOT_TELL unless its interval lies wholly beyond or wholly within the margin.
    """
    alpha, margin_pct = 1 - confidence_pct / 100, float(table["margin_pct"].iloc[0])
    margin = math.log1p(margin_pct / 100)
    ratios_by_pair = ratios_of(table)
    same = (equivalence.p <= alpha / 2).to_numpy()
    differs = ~same & (difference.p <= alpha).to_numpy()
    outside = np.select([same, differs], [2 * equivalence.critical, difference.critical], alpha)
    low, high = interval(ratios_by_pair, outside)
    better = ratios_by_pair.logs > 0
    settled = np.log1p(table["asymptote_delta_pct"].to_numpy(dtype=float) / 100)
    settled = np.where(np.isfinite(settled), settled, ratios_by_pair.logs)
    logs = ratios_by_pair.logs
    explained = settled * np.sign(logs) < np.abs(settled - logs)  # the larger part of the difference is still to settle
    unsettled = (same & (np.abs(settled) > margin)) | (differs & explained)
    same, differs = same & ~unsettled, differs & ~unsettled
    beyond = differs & ((low > margin) | (high < -margin)) & (np.abs(settled) > margin)
    disturbed = table["disturbance_pct"].notna().to_numpy()
    differs &= ~disturbed | beyond
    verdicts = np.select(
        [same, beyond & better, beyond, differs & better, differs],
        [SAME, FASTER_BEYOND, SLOWER_BEYOND, FASTER, SLOWER],
        "",
    )
    undecided = difference.p.notna().to_numpy() & (verdicts == "")
    within, by_chance = table["equivalence_p"] <= alpha / 2, table["p_value"] <= alpha
    reasons = np.select([unsettled, within, by_chance], [UNSETTLED, _NOT_SURELY_WITHIN, _BY_CHANCE], _WITHIN_SCATTER)
    recordings = table[["basis_n", "comparison_n"]].min(axis=1).to_numpy(dtype=float)
    few = (recordings < FEWEST) & (table["delta_pct"].notna() & (table["verdict"] == CANNOT_TELL)).to_numpy()
    few &= [not any(doubt.startswith(NOT_SETTLED_BY_MORE) for doubt in found) for found in table["doubts"]]
    needed = np.where(few, FEWEST, np.inf)
    open_ = undecided & ~unsettled
    needed[open_] = recordings_needed(ratios_by_pair.chosen(open_), recordings[open_], margin, alpha)
    needed[disturbed & (np.abs(logs) - ratios_by_pair.unsure <= margin)] = np.inf  # an idle host decides them
    return table.assign(
        interval_low_pct=percent(low),
        interval_high_pct=percent(high),
        p_adjusted=difference.p,
        equivalence_p_adjusted=equivalence.p,
        recordings_needed=pd.array([int(count) if math.isfinite(count) else None for count in needed], dtype="Int32"),
        verdict=np.where(verdicts != "", verdicts, np.where(undecided, CANNOT_TELL, table["verdict"])),
        doubts=[
            list(old) if is_disturbed or not (redo or verdict) else [str(reason)] if redo else []
            for verdict, redo, is_disturbed, reason, old in zip(
                verdicts, undecided, disturbed, reasons, table["doubts"], strict=True
            )
        ],
    )


def ratios_of(table: pd.DataFrame) -> Ratios:
    """Return the ratios in table `deltas`; NaN where a pair has none."""
    return Ratios(
        np.log1p(table["delta_pct"].to_numpy(dtype=float) / 100),
        table["log_error"].to_numpy(dtype=float),
        table["freedom"].fillna(1.0).to_numpy(dtype=float),
        unsure(table),
    )


def unsure(pairs: pd.DataFrame) -> Floats:
    """Return the errors of ratios that more recordings do not reduce, as logarithms.

    They are half a bin of both values of percentiles, and what others that used the host may have changed.
    """
    bins = np.where(pairs["metric"].isin(NINES), 2 * math.log1p(HALF_BIN), 0.0)
    disturbed: Floats = np.log1p(pairs["disturbance_pct"].fillna(0.0).to_numpy(dtype=float) / 100)
    return bins + disturbed


def percent(logs: Floats) -> Floats:
    return 100 * np.expm1(logs) + 0.0  # no negative zero
