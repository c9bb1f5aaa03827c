"""Simulate studies with known truth through `deltas_table`, and print how often its intervals and verdicts are right.

Run it as `PYTHONPATH=scripts:tests/support python benchmarks/verdict_calibration.py [STUDIES]`. The table of
docs/method.md is that of 300 studies for each line.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from rows import table

from drivelab.analysis.deltas.deltas import CONFIDENCE_PCT, MARGIN_PCT, deltas_table
from drivelab.analysis.deltas.inference import interval
from drivelab.analysis.deltas.judging import unsure
from drivelab.analysis.deltas.recordings import Ratios
from drivelab.analysis.verdict import BETTER, SAME, WORSE
from drivelab.criteria.settling import to_asymptote
from drivelab.criteria.steady_state import find_window

Floats = npt.NDArray[np.float64]
ALPHA = 1 - CONFIDENCE_PCT / 100
ROUNDS = 5
"""Rounds whose average is the value of a recording."""
MOST_ROUNDS = 25
"""Most rounds of a loop until steady state."""


@dataclass(frozen=True)
class Scenario:
    """A kind of study: two drives, cells, recordings, and standard deviations in percent."""

    name: str
    cells: int = 20
    recordings: int = 3
    shared_pct: float = 1.5
    """Between recordings, for all cells alike."""
    own_pct: float = 1.5
    """Between recordings, for each cell alone; itself lognormal over the cells with `unequal`."""
    rounds_pct: float = 1.0
    correlation: float = 0.3
    """Of successive rounds."""
    kinds: int = 2
    """Read shares of the cells, from writes to reads; as many cells of each."""
    shifts: tuple[float, ...] = ()
    """How much of the effect of a recording each kind has; all of it without these."""
    unmoved: int = 0
    """Cells of each kind that have none of the effect of a recording."""
    noisy: int = 0
    """Cells of each kind that scatter NOISE times as much, such as percentiles of few I/Os."""
    unequal: float = 0.3
    heavy_tails: bool = False
    second: float = 1.0
    """Scatter of the second drive, in those of the first."""
    faster_pct: float = 0.0
    """True difference of a share `differing` of the cells."""
    differing: float = 1.0
    blocks_pct: float = 0.0
    """Between runs, for both drives alike, such as a warming room; the order is then random within each run."""
    decays: tuple[float, float] | None = None
    """Time constants in rounds of both drives: values begin at three times their end, and the PTS rule stops a loop."""
    binned: bool = False
    """Values are percentiles from a histogram, rounded to the middle of a bin."""
    disturbed: float = 0.0
    """Share of the recorded values during which others used a quarter to 60 % of the CPU time (`LOADS`)."""
    of: str = "ab"
    """Drives whose values are disturbed."""
    whole: bool = False
    """Load disturbs all cells of a recording or none."""
    effect: tuple[float, float] = (1.0, 1.0)
    """Range of the effect, in the largest: a load of 40 % slows a drive by at most 40 %. Negative: it gets faster."""


LOADS = (0.25, 0.6)
NOISE = 6.0

BY_GROUP = (
    Scenario("a recording shifts only writes, 3 %", shared_pct=3, own_pct=0.5, shifts=(1, 0)),
    Scenario("56 cells, a recording shifts by write share, 3 %", cells=56, shared_pct=3, own_pct=0.5, kinds=7,
             shifts=(1, 0.9, 0.65, 0.5, 0.35, 0.05, 0)),
    Scenario("writes scatter four times as much as reads", shared_pct=1, own_pct=1, shifts=(4, 1)),
    Scenario("a recording shifts half of each kind's cells, 3 %", shared_pct=3, own_pct=1, unmoved=5),
    Scenario("one noisy cell", cells=10, kinds=1, noisy=1, shared_pct=0.5, own_pct=1),
    Scenario("half of the cells of few I/Os", noisy=5, shared_pct=0.5, own_pct=1),
)  # fmt: skip
"""Cells that do not share one effect, or one scatter."""

SCENARIOS = (
    Scenario("typical"),
    Scenario("4 recordings", recordings=4),
    Scenario("5 recordings", recordings=5),
    Scenario("9 recordings", recordings=9),
    *(
        replace(scenario, recordings=recordings, name=f"{scenario.name}, {recordings} recordings")
        for scenario in BY_GROUP
        for recordings in (3, 5, 9)
    ),
    Scenario("1 cell", cells=1, kinds=1),
    Scenario("100 cells", cells=100),
    Scenario("recordings differ as a whole, 3 %", shared_pct=3, own_pct=0.3),
    Scenario("cells differ alone, 3 %", shared_pct=0, own_pct=3),
    Scenario("nothing between recordings", shared_pct=0, own_pct=0),
    Scenario("rounds correlate, 0.9", correlation=0.9, rounds_pct=3),
    Scenario("heavy tails (t, 3 degrees of freedom)", heavy_tails=True),
    Scenario("cells of very unequal scatter", unequal=0.8, shared_pct=0, own_pct=3),
    Scenario("second drive with a fifth of the scatter", second=0.2),
    Scenario("runs differ by 3 %, random order", blocks_pct=3),
    Scenario("runs differ by 3 %, random order, 6 recordings", blocks_pct=3, recordings=6),
    Scenario("percentiles from bins", shared_pct=0.2, own_pct=0.2, rounds_pct=0.2, binned=True),
    Scenario("decays to the same end, constants 3 and 8", decays=(3, 8)),
    Scenario("decays to the same end, constants 2 and 2", decays=(2, 2)),
    Scenario("decays to the same end, constants 10 and 20", decays=(10, 20)),
    Scenario("+10 % in all cells, 3 % between recordings", shared_pct=0, own_pct=3, unequal=0, faster_pct=10),
    Scenario("the same, 5 recordings", shared_pct=0, own_pct=3, unequal=0, faster_pct=10, recordings=5),
    Scenario("+10 % in a quarter of the cells, 3 %", shared_pct=0, own_pct=3, faster_pct=10, differing=0.25),
    Scenario("+10 % in all cells, as a whole 3 %", shared_pct=3, own_pct=0.3, faster_pct=10),
    Scenario("+7 % in all cells, margin 5 %", faster_pct=7),
    Scenario("+10 % in all cells, runs differ by 3 %, random order", faster_pct=10, blocks_pct=3),
    Scenario("the same, 6 recordings", faster_pct=10, blocks_pct=3, recordings=6),
    Scenario("+10 % in all cells, decays with constants 2 and 2", faster_pct=10, decays=(2, 2)),
    *(
        Scenario(f"load during {share:.0%} of the values of {drives}, {how}", disturbed=share, of=of, effect=effect)
        for share in (0.1, 0.25, 0.5)
        for of, drives in (("b", "one drive"), ("ab", "both"))
        for effect, how in (((1.0, 1.0), "full effect"), ((0.0, 1.0), "some effect"), ((-1.0, 1.0), "either way"))
    ),
    Scenario("load during half of the recordings of one drive", disturbed=0.5, of="b", whole=True),
    Scenario("load during half of the recordings of both", disturbed=0.5, whole=True),
    Scenario("load during half of both, no effect, +100 % in all cells", disturbed=0.5, effect=(0, 0), faster_pct=100),
    Scenario("load during half of both, full effect, +100 % in all cells", disturbed=0.5, faster_pct=100),
)


@dataclass(frozen=True)
class Result:
    """Shares of comparisons, or of studies."""

    coverage: float
    """Share of true ratios inside the intervals that are not adjusted for several comparisons."""
    lowest: float
    """The same in the group of cells where it is lowest; a group has one kind, and is noisy or not, moved or not."""
    highest: float
    verdicts_beside: float
    """Expected share of adjusted intervals of verdicts that miss the true ratio (0 for a study without verdicts)."""
    studies_with_a_false_call: float
    """Called faster or slower in the wrong direction, or where there is no difference."""
    false_discoveries: float
    """Expected share of false calls among all that are called faster or slower (0 for a study without)."""
    false_same: float
    """Called the same, of comparisons whose true difference is beyond the margin; NaN for none."""
    power: float
    """Called faster, of comparisons with a true difference; NaN for none."""
    half_width_pct: float


def groups(scenario: Scenario) -> tuple[npt.NDArray[np.int_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the number of the kind of each cell, whether it is noisy, and whether recordings move it."""
    of_kind = max(scenario.cells // scenario.kinds, 1)
    places = np.arange(scenario.cells)
    in_kind = places % of_kind
    kinds = np.minimum(places // of_kind, scenario.kinds - 1)
    return kinds, in_kind < scenario.noisy, in_kind >= scenario.unmoved


def recorded(
    scenario: Scenario, truth: Floats, scale: float, decay: float | None, blocks: Floats, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return logarithms of a drive's recorded values, and of asymptote / value, both of shape (cells, recordings).

    A value is the average of its rounds; `decay` is the drive's time constant in rounds, `blocks` what shifts a run.
    """
    count = ROUNDS if decay is None else MOST_ROUNDS
    kinds, noisy, moved = groups(scenario)
    shape = scenario.cells, scenario.recordings
    of_cell = np.exp(random.normal(0, scenario.unequal, (scenario.cells, 1))) * np.where(noisy, NOISE, 1.0)[:, None]
    own = random.standard_t(3, shape) / math.sqrt(3) if scenario.heavy_tails else random.normal(size=shape)
    shared = random.normal(0, scenario.shared_pct / 100, scenario.recordings)
    effects = np.array(scenario.shifts or [1.0] * scenario.kinds)[kinds][:, None] * moved[:, None] * shared
    steps = random.normal(size=(count, *shape))
    rounds = [steps[0]]
    for step in steps[1:]:
        rounds.append(scenario.correlation * rounds[-1] + math.sqrt(1 - scenario.correlation**2) * step)
    levels = truth[:, None] + blocks + scale * (effects + of_cell * own * scenario.own_pct / 100)
    values: Floats = np.exp(levels + scale * np.stack(rounds) * scenario.rounds_pct / 100)
    if decay is None:
        logs = np.log(values.mean(axis=0))
        if scenario.binned:  # of 1 / 64 of a power of two, as fio's
            octave = np.floor(logs / math.log(2)) * math.log(2)
            logs = octave + np.log((np.floor(64 * (np.exp(logs - octave) - 1)) + 0.5) / 64 + 1)
        return logs, np.zeros(shape)
    values *= (1 + 2 * np.exp(-np.arange(count) / decay))[:, None, None]
    logs, off = np.empty(shape), np.empty(shape)
    criterion = {"window": ROUNDS, "data_excursion": 0.2, "slope_excursion": 0.1}
    for run in range(scenario.recordings):
        tracked = {str(cell): values[:, cell, run].tolist() for cell in range(min(3, scenario.cells))}
        window = find_window(tracked, criterion)
        logs[:, run] = np.log(values[window.first_round - 1 : window.last_round, :, run].mean(axis=0))
        off[:, run] = to_asymptote(values[: window.last_round, :, run].T, ROUNDS)
    return logs, off


Sides = tuple[tuple[Floats, Floats], tuple[Floats, Floats]]
"""What `recorded` returns, of both drives."""


def simulated(scenario: Scenario, random: np.random.Generator, recordings: int) -> tuple[Sides, Floats]:
    """Return the recordings of both drives, and the true logarithms of their ratios."""
    scenario = replace(scenario, recordings=recordings)
    differs = np.arange(scenario.cells) < scenario.differing * scenario.cells
    truth = np.where(differs, math.log1p(scenario.faster_pct / 100), 0.0)
    blocks = random.normal(0, scenario.blocks_pct / 100, recordings)
    first, second = scenario.decays or (None, None)
    basis = recorded(scenario, np.zeros(scenario.cells), 1.0, first, blocks, random)
    return (basis, recorded(scenario, truth, scenario.second, second, blocks, random)), truth


def loaded(scenario: Scenario, drive: str, logs: Floats, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return logarithms of values that load of others disturbed, and of the most that it may have changed a mean."""
    if drive not in scenario.of or not scenario.disturbed:
        return logs, np.zeros(len(logs))
    shape = (1, logs.shape[1]) if scenario.whole else logs.shape
    shares = (random.random(shape) < scenario.disturbed) * random.uniform(*LOADS, logs.shape)
    effects = random.uniform(*scenario.effect, logs.shape)
    return logs + np.sign(effects) * np.log1p(-shares * np.abs(effects)), -np.log1p(-shares).mean(axis=1)


def summary_of(scenario: Scenario, sides: Sides, recordings: int, most: Sequence[Floats] = ()) -> pd.DataFrame:
    """Return table `summary` of the first recordings of both drives; `most` is from `loaded` for each drive."""
    kinds, *_ = groups(scenario)
    shifts = {drive: 100 * np.expm1(logs) for drive, logs in zip("ab", most, strict=False)}
    rows = [
        {"drive": drive, "cell_label": str(cell), "metric": "p99_latency_us" if scenario.binned else "iops",
         "kind": "speed", "verdict": "steady", "pattern": "random", "read_share_pct": int(kinds[cell]),
         **({"verdict": "tainted", "taint_reason": "load: others used CPU time", "disturbance_pct": shifts[drive][cell]}
            if drive in shifts and shifts[drive][cell] else {}),
         "asymptote_pct": 100 * math.expm1(float(off[cell].mean())),
         "statistic": "window average", "scope": "recordings",
         "recordings": [f"{drive}/m/0-run{run}" for run in range(1, recordings + 1)],
         "samples": np.exp(values[:recordings]), "value": float(np.exp(values[:recordings].mean()))}
        for drive, (logs, off) in zip("ab", sides, strict=True)
        for cell, values in enumerate(logs)
    ]  # fmt: skip
    return table("summary", rows)


def study(scenario: Scenario, random: np.random.Generator) -> tuple[pd.DataFrame, Floats]:
    """Return table `deltas` of a simulated study, and the true logarithms of its ratios."""
    (basis, comparison), truth = simulated(scenario, random, scenario.recordings)
    disturbed = [
        loaded(scenario, drive, logs, random) for drive, (logs, _) in zip("ab", (basis, comparison), strict=True)
    ]
    sides = (disturbed[0][0], basis[1]), (disturbed[1][0], comparison[1])
    summary = summary_of(scenario, sides, scenario.recordings, [most for _, most in disturbed])
    started = {name: name[-1] for names in summary["recordings"] for name in names} if scenario.blocks_pct else None
    return deltas_table(summary, "a", started=started), truth


def judge(scenario: Scenario, studies: int, seed: int) -> Result:
    """Return the shares over many studies of a scenario."""
    random, margin = np.random.default_rng(seed), math.log1p(MARGIN_PCT / 100)
    columns: list[list[float]] = [[] for _ in range(7)]
    kinds, noisy, moved = groups(scenario)
    covered = np.zeros(scenario.cells)
    for _ in range(studies):
        deltas, truth = study(scenario, random)
        errors, freedom = (deltas[name].to_numpy(float) for name in ("log_error", "freedom"))
        logs = np.log1p(deltas["delta_pct"].to_numpy(float) / 100)
        low, high = interval(Ratios(logs, errors, freedom, unsure(deltas)), np.full(len(deltas), ALPHA))
        adjusted = [np.log1p(deltas[f"interval_{end}_pct"].to_numpy(float) / 100) for end in ("low", "high")]
        covered += (low <= truth) & (truth <= high)
        beside = (truth < adjusted[0]) | (truth > adjusted[1])
        better, worse, same = (deltas["verdict"].isin(of).to_numpy() for of in (BETTER, WORSE, (SAME,)))
        called, wrong = better | worse, (better & (truth <= 0)) | (worse & (truth >= 0))
        for column, values in zip(
            columns,
            (
                (low <= truth) & (truth <= high),
                [(beside & (called | same)).sum() / max((called | same).sum(), 1)],
                [float(wrong.any())],
                [wrong.sum() / max(called.sum(), 1)],
                same[np.abs(truth) > margin],
                better[truth > 0],
                [100 * np.expm1((high - low) / 2).mean()],
            ),
            strict=True,
        ):
            column += list(map(float, values))
    by_group = pd.Series(covered / studies).groupby([kinds, noisy, moved]).mean()
    coverage, *others = (float(np.mean(column)) if column else math.nan for column in columns)
    return Result(coverage, by_group.min(), by_group.max(), *others)


def lines(studies: int) -> Iterator[str]:
    """Yield the lines of the table in Markdown, in percent."""
    yield "|studies|coverage|lowest|highest|verdicts beside|a false call|false calls|false same|power|half-width|"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for number, scenario in enumerate(SCENARIOS):
        result = judge(scenario, studies, seed=number)
        shares = ["" if math.isnan(share) else f"{100 * share:.1f}" for share in list(vars(result).values())[:-1]]
        yield f"|{scenario.name}|{'|'.join(shares)}|{result.half_width_pct:.1f}|"


if __name__ == "__main__":
    for line in lines(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
        print(line, flush=True)
