"""Performance deltas between drives.

Solidigm Performance Evaluation Guide (August 2022), section 4.3: basis/comparison - 1 for times,
comparison/basis - 1 for speeds and scores, so that a positive delta is an improvement either way.
"""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd

from drivelab.analysis.application_summary import SIMULATED
from drivelab.analysis.repeats import FEWEST
from drivelab.analysis.steady_state import WINDOW
from drivelab.analysis.verdict import (
    AS_ASKED,
    FINE,
    IN_CHANGING_PHASE,
    SINGLE_SLICE,
    TAINTED,
    TOO_FEW_RUNS,
    TOO_FEW_SLICES,
)
from drivelab.tables.schemas import SCHEMAS

_SAME = ["measurement", "protocol", "cell_label", "metric", "kind", "unit"]
_REPEATS = re.compile(r"\b(median|mean|best) of \d+")


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


def deltas_table(summary: pd.DataFrame, basis: str) -> pd.DataFrame:
    """Table `deltas` from table `summary`: every other drive against the drive `basis`, where it has the value too.

    Values are compared where their statistic is the same but for the number of repeats.
    A delta is certain when both values can be relied on, were made under the same conditions (reduced or not,
    virtual or not, same clock), and their spreads do not overlap. The spread of a replay is that of its passes: with
    fewer than FEWEST of them on a side, or of a phase whose passes differ by design, it makes nothing certain. `note`
    says why it is not, and what the spread does not show. Raises ValueError when the summary has rows, but none of
    `basis`.
    """
    columns = SCHEMAS["deltas"].names
    reference = summary[summary["drive"] == basis]
    if reference.empty and not summary.empty:
        raise ValueError(f"the basis '{basis}' is not among the drives in the summary")
    others = summary[summary["drive"] != basis]
    # a median of 3 rounds and one of 5 are the same statistic
    of_kind = [
        side.assign(of=side["statistic"].str.replace(_REPEATS, r"\1 of N", regex=True)) for side in (others, reference)
    ]
    pairs = of_kind[0].merge(of_kind[1], on=[*_SAME, "of"], suffixes=("_comparison", "_basis"))
    rows = [_row(pair) for pair in pairs.to_dict("records")]
    return pd.DataFrame(rows, columns=columns)


def _row(pair: dict[str, Any]) -> dict[str, Any]:
    doubts = _doubts(pair)
    remarks = []
    if not _of_passes(pair) and (pair["n_basis"] < FEWEST or pair["n_comparison"] < FEWEST):
        remarks = ["the spread is that within a recording, not between recordings"]
    if SIMULATED in f"{pair['statistic_basis']} {pair['statistic_comparison']}":
        remarks.append(f"no application ran: {SIMULATED}")
    return {
        **{column: pair[column] for column in _SAME},
        "basis": pair["drive_basis"],
        "comparison": pair["drive_comparison"],
        "basis_value": pair["value_basis"],
        "comparison_value": pair["value_comparison"],
        "delta_pct": 100 * delta(pair["value_basis"], pair["value_comparison"], pair["kind"]),
        "certain": not doubts,
        **{column: bool(pair[f"{column}_basis"] or pair[f"{column}_comparison"]) for column in ("reduced", "virtual")},
        "clock": " and ".join(sorted({pair["clock_basis"], pair["clock_comparison"]}, reverse=True)),
        "note": "; ".join(doubts + remarks),
    }


def _fault(verdict: str, taint_reason: object) -> str:
    """With the reason of a taint; a semicolon separates the parts of a note, so there is none in one."""
    if verdict != TAINTED or not isinstance(taint_reason, str):
        return verdict
    return f"{verdict} ({taint_reason.replace('; ', ', ')})"


def _doubts(pair: dict[str, Any]) -> list[str]:
    found = [
        f"{pair[f'drive_{side}']}: {_fault(pair[f'verdict_{side}'], pair[f'taint_reason_{side}'])}"
        for side in ("basis", "comparison")
        if pair[f"verdict_{side}"] not in FINE
    ]
    for column, words in (
        ("reduced", "only one of them is reduced"),
        ("virtual", "only one of the drives is virtual"),
        ("clock", "one ran on the wall clock, one on the virtual clock"),
    ):
        if pair[f"{column}_basis"] != pair[f"{column}_comparison"]:
            found.append(words)
    found += _of_spread(pair) if _of_passes(pair) else _of_rounds(pair)
    highest_low = max(pair["spread_low_basis"], pair["spread_low_comparison"])
    lowest_high = min(pair["spread_high_basis"], pair["spread_high_comparison"])
    if highest_low <= lowest_high:
        found.append("the spreads overlap")
    return found


def _of_passes(pair: dict[str, Any]) -> bool:
    """Whether the values are of replays, whose `n` counts what the spread is of."""
    return str(pair["cell_label"]).startswith(("replay ", "set of ", "application "))


def _of_spread(pair: dict[str, Any]) -> list[str]:
    """Why the spreads of replays tell nothing, however far apart."""
    verdicts = {pair["verdict_basis"], pair["verdict_comparison"]}
    fewest, found = min(pair["n_basis"], pair["n_comparison"]), []
    if fewest < FEWEST and TOO_FEW_RUNS not in verdicts:
        found.append(f"too few passes ({fewest}, {FEWEST} are needed)")
    if IN_CHANGING_PHASE in verdicts:
        found.append("its passes differ by design, so that their spread is a trend: compare them pass by pass")
    return found


def _of_rounds(pair: dict[str, Any]) -> list[str]:
    """Why the spreads of loops and soaks tell nothing: the protocol asks for so few rounds that they are no repeats,
    for so short a soak that it has no five parts."""
    verdicts = {pair["verdict_basis"], pair["verdict_comparison"]}
    found = [f"too few rounds ({FEWEST} are needed)"] if verdicts & set(AS_ASKED.values()) else []
    few_slices = verdicts & {SINGLE_SLICE, TOO_FEW_SLICES}
    return [*found, f"too few slices ({WINDOW} are needed)"] if few_slices else found
