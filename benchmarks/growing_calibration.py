"""Simulate studies that grow until they are decided, and fixed ones, with known truth through the real code.

Run it as `PYTHONPATH=scripts:tests/support:benchmarks python benchmarks/growing_calibration.py [STUDIES]`.
The table of docs/method.md is that of 100 studies for each line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from verdict_calibration import Floats, Scenario, simulated, summary_of

from drivelab.analysis.deltas.deltas import CONFIDENCE_PCT, MARGIN_PCT, deltas_table
from drivelab.analysis.verdict import BETTER, SAME, WORSE
from drivelab.campaign.growth import DECIDED_AT_THE_MARGIN, look
from drivelab.plan.design import Growth

LEAST, MOST = 3, 9
HEADLINES = 4
"""Cells that a study grows for; the others are judged with them."""
STUDY: Any = SimpleNamespace(
    measurements=[SimpleNamespace(name="m")], confidence_pct=CONFIDENCE_PCT, margin_pct=MARGIN_PCT
)
SCENARIOS = (
    Scenario("equal drives, 0.5 % and 0.5 %", shared_pct=0.5, own_pct=0.5),
    Scenario("equal drives"),
    Scenario("equal drives, 3 % as a whole", shared_pct=3, own_pct=0.3),
    Scenario("+5 %, as much as the margin", faster_pct=5),
    Scenario("+7 %", faster_pct=7),
    Scenario("+10 %", faster_pct=10),
    Scenario("+10 %, each cell alone 3 %", shared_pct=0, own_pct=3, faster_pct=10),
    Scenario("+10 %, 3 % as a whole", shared_pct=3, own_pct=0.3, faster_pct=10),
    Scenario("+15 %, 5 % as a whole", shared_pct=5, own_pct=0.3, faster_pct=15),
    Scenario("+20 %, each cell alone 5 %", shared_pct=0, own_pct=5, faster_pct=20),
    Scenario("+10 %, 1 cell", cells=1, faster_pct=10),
)


@dataclass(frozen=True)
class Outcome:
    """One study, or the mean of many."""

    recordings: float
    decided: float
    """Share of the headline comparisons that are decided at the margin, rightly."""
    false: float
    """1 if anything is called that is not so: a direction, SAME beyond the margin, or beyond the margin within it."""
    discoveries: float
    """Share of what is called that is not so; 0 if nothing is called."""


def outcome(deltas: pd.DataFrame, truth: Floats, recordings: int) -> Outcome:
    """Compare verdicts with the true logarithms of the ratios."""
    verdicts, margin = deltas["verdict"], np.log1p(MARGIN_PCT / 100)
    better, worse, same = (verdicts.isin(of).to_numpy() for of in (BETTER, WORSE, (SAME,)))
    decided = verdicts.isin(DECIDED_AT_THE_MARGIN).to_numpy()
    wrong = (better & (truth <= 0)) | (worse & (truth >= 0))
    wrong |= (same & (np.abs(truth) >= margin)) | (decided & ~same & (np.abs(truth) <= margin))
    called = better | worse | same
    return Outcome(
        recordings, float((decided & ~wrong)[:HEADLINES].mean()), float(wrong.any()), wrong.sum() / max(called.sum(), 1)
    )


def grown(of: Mapping[int, pd.DataFrame], truth: Floats) -> Outcome:
    """Return the outcome of a growing study; `of` has table `summary` by the number of runs."""
    growth = Growth(LEAST, MOST)
    while True:
        runs = growth.runs("m")
        deltas = deltas_table(of[runs], "a", confidence_pct=growth.confidence_pct(CONFIDENCE_PCT))
        more, _ = look(STUDY, growth, deltas.assign(measurement="m").head(HEADLINES).to_dict("records"))
        if more is None:
            return outcome(deltas, truth, runs)
        growth = more


def mean(outcomes: list[Outcome]) -> Outcome:
    return Outcome(*np.mean([list(vars(one).values()) for one in outcomes], axis=0))


def judge(scenario: Scenario, studies: int, seed: int) -> tuple[Outcome, dict[int, Outcome]]:
    """Return the mean of growing studies, and of fixed ones by their number of runs, from the same recordings."""
    random = np.random.default_rng(seed)
    growing: list[Outcome] = []
    fixed: dict[int, list[Outcome]] = {runs: [] for runs in range(LEAST, MOST + 1)}
    for _ in range(studies):
        sides, truth = simulated(scenario, random, MOST)
        of = {runs: summary_of(scenario, sides, runs) for runs in fixed}
        growing.append(grown(of, truth))
        for runs, summary in of.items():
            fixed[runs].append(outcome(deltas_table(summary, "a"), truth, runs))
    return mean(growing), {runs: mean(outcomes) for runs, outcomes in fixed.items()}


def equal(decided: float, fixed: Mapping[int, Outcome]) -> str:
    """Return how many fixed runs decide as many comparisons, between the simulated numbers."""
    shares = np.maximum.accumulate([one.decided for one in fixed.values()])
    if decided <= shares[0]:
        return f"≤ {LEAST}"
    return f"≥ {MOST}" if decided >= shares[-1] else f"{np.interp(decided, shares, list(fixed)):.1f}"


def lines(studies: int) -> Iterator[str]:
    """Yield the lines of the table in Markdown, in percent but for recordings."""
    yield f"|truth|runs|decided|fixed runs that decide as many|a false verdict|of {MOST} fixed runs|false verdicts|"
    yield "|---|---|---|---|---|---|---|"
    judged = []
    for number, scenario in enumerate(SCENARIOS):
        judged.append(judge(scenario, studies, seed=number))
        yield _line(scenario.name, *judged[-1])
    runs = range(LEAST, MOST + 1)
    together = {count: mean([fixed[count] for _, fixed in judged]) for count in runs}
    yield _line("all of these alike", mean([growing for growing, _ in judged]), together)


def _line(name: str, growing: Outcome, fixed: Mapping[int, Outcome]) -> str:
    shares = (growing.false, fixed[MOST].false, growing.discoveries)
    errors = "|".join(f"{100 * share:.1f}" for share in shares)
    return f"|{name}|{growing.recordings:.1f}|{100 * growing.decided:.0f}|{equal(growing.decided, fixed)}|{errors}|"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
        print(line, flush=True)
