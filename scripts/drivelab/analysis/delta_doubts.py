"""Why a difference of two values tells nothing, and what a verdict on it does not show, in words.

A pair is a mapping of the columns of table `summary` of both values, with `_basis` and `_comparison`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from drivelab.analysis.application_summary import SIMULATED
from drivelab.analysis.delta_statistics import least_p
from drivelab.analysis.differences import NOT_RECORDED, differing
from drivelab.analysis.loads import loads, without_load
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

Pair = Mapping[str, Any]
LOAD = "load"
ASKED = (LOAD, "active range", "data pattern", "fill")
"""What is asked of a drive, and may differ where values of two measurements are compared."""
NOT_KNOWN = "not known"
"""A load that must have been, and that nobody wrote down."""
PRINTED = "printed value"
"""The statistic of a value that somebody printed: it was not measured once, nobody said how it came about."""
WITHIN_RECORDING = ("rounds", "slices")
"""Scopes of samples that are of one recording, with one conditioning."""
_RECORDINGS = "recordings"
_SIDES = ("basis", "comparison")
_OTHER_CONDITIONS = (
    ("reduced", "only one of them is reduced"),
    ("virtual", "only one of the drives is virtual"),
    ("clock", "one ran on the wall clock, one on the virtual clock"),
)


def doubts(pair: Pair) -> list[str]:
    """What speaks against the values, against comparing them, and against what their samples tell of them.

    Values that came about differently (`alike` is false) have no other doubt: nothing else was looked at.
    """
    if not pair["alike"]:
        return [_came_about(pair)]
    found = [
        f"{pair[f'drive_{side}']}: {_fault(pair[f'verdict_{side}'], pair[f'taint_reason_{side}'])}"
        for side in _SIDES
        if pair[f"verdict_{side}"] not in FINE
    ]
    found += [words for column, words in _OTHER_CONDITIONS if pair[f"{column}_basis"] != pair[f"{column}_comparison"]]
    if pair["kind"] == "time" and (words := _other_loads(pair)):
        found.append(words)  # a drive that takes more at once answers later: it is another workload
    return found + _otherwise_asked(pair) + _of_samples(pair)


def remarks(pair: Pair, alpha: float) -> list[str]:
    """What the verdict does not show; `alpha` is the level of the test."""
    if not pair["alike"]:
        return []
    found = []
    if pair["kind"] != "time" and (words := _other_loads(pair)):
        found.append(words)
    unknown = [str(pair[f"drive_{side}"]) for side in _SIDES if pair.get(f"{LOAD}_{side}") == NOT_KNOWN]
    if unknown:
        found.append(f"the load of {' and '.join(unknown)} is not known: it may be another")
    if any(pair[f"scope_{side}"] in WITHIN_RECORDING for side in _SIDES):
        found.append("the spread is that within a recording, not between recordings")
    counts = sorted(len(pair[f"samples_{side}"]) for side in _SIDES)
    if counts[0] >= FEWEST and (least := least_p(*counts)) > alpha:
        found.append(
            f"{counts[0]} against {counts[1]} samples: a test without assumptions could not go below p = {least:.2f}, "
            "the verdict rests on the normal scatter of their logarithms"
        )
    if SIMULATED in f"{pair['statistic_basis']} {pair['statistic_comparison']}":
        found.append(f"no application ran: {SIMULATED}")
    return found


def _other_loads(pair: Pair) -> str:
    """Of points of a demand sweep that the two did not choose alike, or not in all their recordings; else empty."""
    basis, comparison = (loads(pair[f"statistic_{side}"]) for side in _SIDES)
    if basis == comparison and len(basis) < 2:
        return ""
    return f"at other loads: {' and '.join(' or '.join(one) or 'one that is not known' for one in (basis, comparison))}"


def _otherwise_asked(pair: Pair) -> list[str]:
    """What the two measurements asked differently, of what is known of both."""
    found = []
    for name in ASKED:
        both = [pair.get(f"{name}_{side}") for side in _SIDES]
        if all(isinstance(one, str) and one not in (NOT_KNOWN, NOT_RECORDED) for one in both) and both[0] != both[1]:
            found.append(f"at other loads: {both[0]} and {both[1]}" if name == LOAD else differing(name, *both))
    return found


def _came_about(pair: Pair) -> str:
    """How each of two values did, such as `a: median of 3 recordings; b: one recording`."""
    statistics = [without_load(str(pair[f"statistic_{side}"])) for side in _SIDES]
    if any(_RECORDINGS in one for one in statistics):
        statistics = [one if _RECORDINGS in one or one == PRINTED else "one recording" for one in statistics]
    return "; ".join(f"{pair[f'drive_{side}']}: {one}" for side, one in zip(_SIDES, statistics, strict=True))


def _fault(verdict: str, taint_reason: object) -> str:
    """With the reason of a taint, which may be several."""
    if verdict != TAINTED or not isinstance(taint_reason, str):
        return verdict
    return f"{verdict} ({taint_reason.replace('; ', ', ')})"


def _of_samples(pair: Pair) -> list[str]:
    if any(pair[f"statistic_{side}"] == PRINTED for side in _SIDES):
        return ["a printed value, without any word of its scatter"]
    found = _of_passes(pair) if _is_of_passes(pair) else _of_rounds(pair)
    verdicts = {pair[f"verdict_{side}"] for side in _SIDES}
    fewest = min(len(pair[f"samples_{side}"]) for side in _SIDES)
    if fewest < FEWEST and not found and TOO_FEW_RUNS not in verdicts:
        found.append(f"too few samples ({fewest}, {FEWEST} are needed)")
    if pair["metric"].startswith("best_") and any(pair[f"scope_{side}"] != "recordings" for side in _SIDES):
        found.append("the best of several runs is no average: their scatter says nothing of it")
    if not all(math.isfinite(one) and one > 0 for side in _SIDES for one in pair[f"samples_{side}"]):
        found.append("one of the samples is no positive number")
    return found


def _is_of_passes(pair: Pair) -> bool:
    """Whether the values are of replays, whose samples are passes."""
    return str(pair["cell_label"]).startswith(("replay ", "set of ", "application "))


def _of_passes(pair: Pair) -> list[str]:
    """Why the samples of replays tell nothing, however far apart."""
    verdicts = {pair[f"verdict_{side}"] for side in _SIDES}
    fewest, found = min(len(pair[f"samples_{side}"]) for side in _SIDES), []
    if fewest < FEWEST and TOO_FEW_RUNS not in verdicts:
        found.append(f"too few passes ({fewest}, {FEWEST} are needed)")
    if IN_CHANGING_PHASE in verdicts:
        found.append("its passes differ by design, so that their spread is a trend: compare them pass by pass")
    return found


def _of_rounds(pair: Pair) -> list[str]:
    """Why the samples of loops and soaks tell nothing: the protocol asks for so few rounds that they are no repeats,
    for so short a soak that it has no five parts."""
    verdicts = {pair[f"verdict_{side}"] for side in _SIDES}
    found = [f"too few rounds ({FEWEST} are needed)"] if verdicts & set(AS_ASKED.values()) else []
    few_slices = verdicts & {SINGLE_SLICE, TOO_FEW_SLICES}
    return [*found, f"too few slices ({WINDOW} are needed)"] if few_slices else found
