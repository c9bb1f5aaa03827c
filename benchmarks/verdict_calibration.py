"""Simulate studies with known truth through `deltas_table`, and print how often its intervals and verdicts are right.

Run it as `PYTHONPATH=scripts:tests/support python benchmarks/verdict_calibration.py [STUDIES [settling]]`. The tables
of docs/method.md are those of 300 studies for each line. `settling` prints the one of drives that do not settle.
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
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, FASTER_BEYOND, SAME, SLOWER_BEYOND, WORSE
from drivelab.criteria.settling import to_asymptotes
from drivelab.criteria.steady_state import find_window
from drivelab.tables.windows import ASYMPTOTES

Floats = npt.NDArray[np.float64]
ALPHA = 1 - CONFIDENCE_PCT / 100
ROUNDS = 5  # rounds whose average is the value of a recording
NUMBER = np.arange(25.0)  # of the most rounds of a loop until steady state
LEVEL = np.ones(len(NUMBER))


def decay(constant: float, start: float = 3.0) -> Floats:
    return 1 + (start - 1) * np.exp(-NUMBER / constant)


@dataclass(frozen=True)
class Scenario:
    """A kind of study: two drives, cells, recordings, and standard deviations in percent."""

    name: str
    cells: int = 20
    recordings: int = 3
    shared_pct: float = 1.5  # between recordings, for all cells alike
    own_pct: float = 1.5  # between recordings, for each cell alone; itself lognormal over the cells with `unequal`
    rounds_pct: float = 1.0
    correlation: float = 0.3  # of successive rounds
    kinds: int = 2  # read shares of the cells, from writes to reads; as many cells of each
    shifts: tuple[float, ...] = ()  # how much of the effect of a recording each kind has; all of it without these
    unmoved: int = 0  # cells of each kind that have none of the effect of a recording
    noisy: int = 0  # cells of each kind that scatter NOISE times as much, such as percentiles of few I/Os
    unequal: float = 0.3
    heavy_tails: bool = False
    second: float = 1.0  # scatter of the second drive, in those of the first
    faster_pct: float = 0.0  # true difference of a share `differing` of the cells
    differing: float = 1.0
    blocks_pct: float = 0.0
    """Between runs, for both drives alike, such as a warming room; the order is then random within each run."""
    courses: tuple[Floats, Floats] | None = None
    """Rounds of both drives relative to their end, from a random one of those before the last 25, to the PTS rule."""
    binned: bool = False  # values are percentiles from a histogram, rounded to the middle of a bin
    disturbed: float = 0.0
    """Share of the recorded values during which others used a quarter to 60 % of the CPU time (`LOADS`)."""
    of: str = "ab"  # drives whose values are disturbed
    whole: bool = False  # load disturbs all cells of a recording or none
    effect: tuple[float, float] = (1.0, 1.0)
    """Range of the effect, in the largest: a load of 40 % slows a drive by at most 40 %. Negative: it gets faster."""


LOADS = (0.25, 0.6)
NOISE = 6.0

BY_GROUP = (
    Scenario("only writes shift by 3 %", shared_pct=3, own_pct=0.5, shifts=(1, 0)),
    Scenario("56 cells shift by write share, 3 %", cells=56, shared_pct=3, own_pct=0.5, kinds=7,
             shifts=(1, 0.9, 0.65, 0.5, 0.35, 0.05, 0)),
    Scenario("writes scatter fourfold", shared_pct=1, own_pct=1, shifts=(4, 1)),
    Scenario("half of the cells shift by 3 %", shared_pct=3, own_pct=1, unmoved=5),
    Scenario("one noisy cell", cells=10, kinds=1, noisy=1, shared_pct=0.5, own_pct=1),
    Scenario("half with few I/Os", noisy=5, shared_pct=0.5, own_pct=1),
)  # fmt: skip
"""Cells that do not share one effect, or one scatter."""

SCENARIOS = (
    Scenario("typical"),
    *(Scenario(f"{recordings} recordings", recordings=recordings) for recordings in (4, 5, 9)),
    *(replace(scenario, recordings=recordings, name=f"{scenario.name}, {recordings} recordings")
      for scenario in BY_GROUP for recordings in (3, 5, 9)),
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
    Scenario("decays, constants 3 and 8", courses=(decay(3), decay(8))),
    Scenario("decays, constants 2 and 2", courses=(decay(2), decay(2))),
    Scenario("decays, constants 10 and 20", courses=(decay(10), decay(20))),
    Scenario("+10 %, 3 % between recordings", shared_pct=0, own_pct=3, unequal=0, faster_pct=10),
    Scenario("the same, 5 recordings", shared_pct=0, own_pct=3, unequal=0, faster_pct=10, recordings=5),
    Scenario("+10 % in a quarter of the cells, 3 %", shared_pct=0, own_pct=3, faster_pct=10, differing=0.25),
    Scenario("+10 %, as a whole 3 %", shared_pct=3, own_pct=0.3, faster_pct=10),
    Scenario("+7 %, margin 5 %", faster_pct=7),
    Scenario("+10 %, runs differ by 3 %, random order", faster_pct=10, blocks_pct=3),
    Scenario("the same, 6 recordings", faster_pct=10, blocks_pct=3, recordings=6),
    Scenario("+10 %, decays, constants 2 and 2", faster_pct=10, courses=(decay(2), decay(2))),
    *(Scenario(f"load during {share:.0%} of the values of {drives}, {how}", disturbed=share, of=of, effect=effect)
      for share in (0.1, 0.25, 0.5) for of, drives in (("b", "one drive"), ("ab", "both"))
      for effect, how in (((1.0, 1.0), "full effect"), ((0.0, 1.0), "some effect"), ((-1.0, 1.0), "either way"))),
    Scenario("load during half of the recordings of one drive", disturbed=0.5, of="b", whole=True),
    Scenario("load during half of the recordings of both", disturbed=0.5, whole=True),
    Scenario("load during half of both, no effect, +100 % in all cells", disturbed=0.5, effect=(0, 0), faster_pct=100),
    Scenario("load during half of both, full effect, +100 % in all cells", disturbed=0.5, faster_pct=100),
)  # fmt: skip


def groups(scenario: Scenario) -> tuple[npt.NDArray[np.int_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return the number of the kind of each cell, whether it is noisy, and whether recordings move it."""
    of_kind = max(scenario.cells // scenario.kinds, 1)
    places = np.arange(scenario.cells)
    in_kind = places % of_kind
    kinds = np.minimum(places // of_kind, scenario.kinds - 1)
    return kinds, in_kind < scenario.noisy, in_kind >= scenario.unmoved


def recorded(
    scenario: Scenario, truth: Floats, scale: float, course: Floats | None, blocks: Floats, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return logarithms of a drive's recorded values, (cells, recordings), and of possible ends / value, with 2 before.

    A value is the average of its rounds; `blocks` is what shifts a run. The latter are NaN for a loop without an end.
    """
    count = ROUNDS if course is None else len(NUMBER)
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
    if course is None:
        logs = np.log(values.mean(axis=0))
        if scenario.binned:  # of 1 / 64 of a power of two, as fio's
            octave = np.floor(logs / math.log(2)) * math.log(2)
            logs = octave + np.log((np.floor(64 * (np.exp(logs - octave) - 1)) + 0.5) / 64 + 1)
        return logs, np.zeros((2, *shape))
    logs, reached = np.empty(shape), np.empty(scenario.recordings, dtype=bool)
    criterion = {"window": ROUNDS, "data_excursion": 0.2, "slope_excursion": 0.1}
    for run in range(scenario.recordings):
        values[:, :, run] *= course[random.integers(len(course) - count + 1) :][:count, None]
        tracked = {str(cell): values[:, cell, run].tolist() for cell in range(min(3, scenario.cells))}
        window = find_window(tracked, criterion)
        logs[:, run] = np.log(values[window.first_round - 1 : window.last_round, :, run].mean(axis=0))
        values[window.last_round :, :, run] = np.nan
        reached[run] = window.reached
    alike = [np.repeat(of_cell, scenario.recordings) for of_cell in (np.arange(scenario.cells), kinds)]
    ends = to_asymptotes(values.reshape(count, -1).T, ROUNDS, alike).reshape(2, *shape)
    return logs, np.where(reached, ends, np.nan)


Sides = tuple[tuple[Floats, Floats], tuple[Floats, Floats]]
"""What `recorded` returns, of both drives."""


def simulated(scenario: Scenario, random: np.random.Generator, recordings: int) -> tuple[Sides, Floats]:
    """Return the recordings of both drives, and the true logarithms of their ratios."""
    scenario = replace(scenario, recordings=recordings)
    differs = np.arange(scenario.cells) < scenario.differing * scenario.cells
    truth = np.where(differs, math.log1p(scenario.faster_pct / 100), 0.0)
    blocks = random.normal(0, scenario.blocks_pct / 100, recordings)
    first, second = scenario.courses or (None, None)
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
         "kind": "speed", "pattern": "random", "read_share_pct": int(kinds[cell]),
         "verdict": "steady" if np.isfinite(ends[:, cell]).all() else "not steady",
         **({"verdict": "tainted", "taint_reason": "load: others used CPU time", "disturbance_pct": shifts[drive][cell]}
            if drive in shifts and shifts[drive][cell] else {}),
         **dict(zip(ASYMPTOTES, 100 * np.expm1(ends[:, cell].mean(axis=1)), strict=True)),
         "statistic": "window average", "scope": "recordings",
         "recordings": [f"{drive}/m/0-run{run}" for run in range(1, recordings + 1)],
         "samples": np.exp(values[:recordings]), "value": float(np.exp(values[:recordings].mean()))}
        for drive, (logs, ends) in zip("ab", sides, strict=True)
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


def judge(scenario: Scenario, studies: int, seed: int) -> list[float]:
    """Return the columns of the table over many studies of a scenario; shares of nothing are NaN.

    Shares of verdicts and of calls are 0 for a study without. A group of cells, for the lowest and the highest
    coverage, has one kind, and is noisy or not, moved or not.
    """
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
        found = ((low <= truth) & (truth <= high), [(beside & (called | same)).sum() / max((called | same).sum(), 1)],
                 [wrong.any()], [wrong.sum() / max(called.sum(), 1)], same[np.abs(truth) > margin], better[truth > 0],
                 [100 * np.expm1((high - low) / 2).mean()])  # fmt: skip
        for column, values in zip(columns, found, strict=True):
            column += list(map(float, values))
    by_group = pd.Series(covered / studies).groupby([kinds, noisy, moved]).mean()
    coverage, *others = (float(np.mean(column)) if column else math.nan for column in columns)
    return [coverage, by_group.min(), by_group.max(), *others]


def lines(studies: int) -> Iterator[str]:
    """Yield the lines of the table in Markdown, in percent."""
    yield "|studies|coverage|lowest|highest|verdicts beside|a false call|false calls|false same|power|half-width|"
    yield f"{10 * '|---'}|"
    for number, scenario in enumerate(SCENARIOS):
        result = judge(scenario, studies, seed=number)
        shares = ["" if math.isnan(share) else f"{100 * share:.1f}" for share in result[:-1]]
        yield f"|{scenario.name}|{'|'.join(shares)}|{result[-1]:.1f}|"


COURSES = {
    **{f"{constant}": (LEVEL, decay(constant)) for constant in (2, 4, 10, 20, 40)},
    **{f"{constant}, from 1.3": (LEVEL, decay(constant, 1.3)) for constant in (2, 10, 20, 40)},
    **{f"{one} and {other}": (decay(one), decay(other)) for one, other in ((2, 2), (3, 8), (6, 20), (20, 40))},
    **{f"power -{power}": (LEVEL, 1 + 2 * (NUMBER + 1) ** -power) for power in (0.5, 1)},
    **{f"plateau {above:.0%}": (
        LEVEL, 1 + (2 - above) * np.exp(-NUMBER / 1.5) + above / (1 + np.exp(NUMBER - 20))) for above in (0.15,)},
    **{f"dips every {period}": (
        LEVEL, np.where(np.arange(len(NUMBER) + period - 1) % period, 1, 0.7) / (1 - 0.3 / period))
        for period in (3, 6, 8, 12)},
}  # fmt: skip
"""Rounds of two drives of the same end, or mean, the first one steady: time constants, from three times the end."""
_SIX = Scenario("", cells=6, kinds=1, shared_pct=0.5, own_pct=0.5, rounds_pct=2, correlation=0)
SETTLING = (
    *(replace(_SIX, name=name, courses=courses) for name, courses in COURSES.items()),
    *(replace(_SIX, name=f"{name}, 1 cell", courses=COURSES[name], cells=1)
      for name in ("40", "20, from 1.3", "40, from 1.3")),
    *(replace(_SIX, name=f"steady, +{faster} %, rounds scatter by {noise} % and correlate by {correlation}",
              courses=(LEVEL, LEVEL), faster_pct=faster, rounds_pct=noise, correlation=correlation)
      for faster in (0, 20) for noise, correlation in ((1, 0), (2, 0), (5, 0), (2, 0.3))),
)  # fmt: skip


def settling(scenario: Scenario, studies: int, seed: int) -> Floats:
    """Return shares of studies with a verdict beyond the margin by the windows alone, with one for the possible ends,
    with any difference for these, and of the windows' verdicts that the ends weaken."""
    random, counts = np.random.default_rng(seed), np.zeros(5)
    for _ in range(studies):
        summary = summary_of(scenario, simulated(scenario, random, scenario.recordings)[0], scenario.recordings)
        settled = summary.assign(**dict.fromkeys(ASYMPTOTES, 0.0))
        alone, now = (deltas_table(of, "a")["verdict"] for of in (settled, summary))
        beyond = [verdicts.isin((FASTER_BEYOND, SLOWER_BEYOND)).any() for verdicts in (alone, now)]
        weaker = (alone != now)[alone != CANNOT_TELL]
        counts += [*beyond, now.isin((*BETTER, *WORSE)).any(), weaker.sum(), len(weaker)]
    return np.append(counts[:3] / studies, counts[3] / max(counts[4], 1))


def settling_lines(studies: int) -> Iterator[str]:
    """Yield the lines of the table of drives that may not have settled, for 3 and 5 recordings, in percent."""
    yield "|drives|windows alone|beyond|different|weaker|\n|---|---|---|---|---|"
    for number, scenario in enumerate(SETTLING):
        few, more = (settling(replace(scenario, recordings=count), studies, number) for count in (3, 5))
        shares = "|".join(f"{100 * of_few:.0f}, {100 * of_more:.0f}" for of_few, of_more in zip(few, more, strict=True))
        yield f"|{scenario.name}|{shares}|"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for line in settling_lines(count) if sys.argv[2:] == ["settling"] else lines(count):
        print(line, flush=True)
