"""A look at a growing study: where it adds a run, where it ends, and what it says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rows import table

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.deltas.judging import UNSETTLED
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, FASTER, FASTER_BEYOND, NOT_COMPARED, SAME, WORSE
from drivelab.campaign.growth import look
from drivelab.plan.design import Growth

STUDY: Any = SimpleNamespace(
    measurements=[SimpleNamespace(name="m"), SimpleNamespace(name="n")], confidence_pct=95.0, margin_pct=5.0
)
GROWTH = Growth(3, 9)


def rows(ratio: float, scatter_pct: float, recordings: int = 3, measurement: str = "m") -> list[dict[str, Any]]:
    """Return a headline delta of one cell, with recordings that scatter evenly."""
    steps = np.linspace(-1, 1, recordings) * scatter_pct / 100
    sides = [
        {"drive": drive, "measurement": measurement, "cell_label": "RND 4KiB 0/100", "metric": "iops", "kind": "speed",
         "verdict": "steady", "statistic": "window average", "scope": "recordings", "value": value,
         "recordings": [f"{drive}/{measurement}/0-run{run}" for run in range(recordings)],
         "samples": (value * np.exp(steps)).tolist()}
        for drive, value in (("a", 100.0), ("b", 100.0 * ratio))
    ]  # fmt: skip
    deltas = deltas_table(table("summary", sides), "a", confidence_pct=GROWTH.confidence_pct(95))
    return list(deltas.to_dict("records"))  # type: ignore[arg-type]


def found(*headline: dict[str, Any], growth: Growth = GROWTH) -> tuple[dict[str, int] | None, str]:
    grown, sentences = look(STUDY, growth, headline)
    return (None if grown is None else dict(grown.added[-1])), sentences[0]


def test_what_is_decided_gets_no_run() -> None:
    for ratio in (1.3, 1.0, 0.7):
        runs, sentence = found(*rows(ratio, 0.2))
        assert runs is None
        assert sentence == "m after 3 runs: the only headline test is decided at the margin."


def test_only_the_measurement_that_needs_it_gets_a_run() -> None:
    runs, sentence = found(*rows(1.2, 4), *rows(1.3, 0.2, measurement="n"))
    assert runs == {"m": 4, "n": 3}
    assert sentence.startswith("m after 3 runs: the only headline test is undecided at the margin (b, random write 4")
    assert "Δ +" in sentence
    assert sentence.endswith("). Run 4 of at most 9 is added.")
    of_variant = rows(1.2, 4, measurement="n.t1")
    assert found(*of_variant)[0] == {"m": 3, "n": 4}


def test_what_the_most_runs_would_hardly_decide_gets_none() -> None:
    runs, sentence = found(*rows(1.05, 4))
    assert runs is None
    assert sentence.endswith("Even 9 runs would decide none of them with a probability of 10 %, so none is added.")


def test_the_last_run_ends_it() -> None:
    growth = GROWTH.grown({"m": 9, "n": 9}, ())
    runs, sentence = found(*rows(1.2, 4, 9), growth=growth)
    assert runs is None or sentence.endswith("decided at the margin.")
    runs, sentence = found({**rows(1.2, 4, 9)[0], "verdict": FASTER, "interval_low_pct": 1.0}, growth=growth)
    assert (runs, sentence.rpartition("). ")[2]) == (None, "That is the most.")


@pytest.mark.parametrize(
    "changed",
    [
        {"verdict": CANNOT_TELL, "p_adjusted": None, "doubts": ["b: not steady"]},
        {"verdict": CANNOT_TELL, "doubts": [UNSETTLED]},
        {"verdict": NOT_COMPARED, "p_adjusted": None, "doubts": ["kernel differs"]},
        {"verdict": FASTER, "interval_low_pct": 12.0, "interval_high_pct": 30.0},
    ],
)
def test_runs_are_not_added_for_what_they_do_not_settle(changed: dict[str, Any]) -> None:
    runs, sentence = found({**rows(1.2, 4)[0], **changed})
    assert runs is None
    assert sentence.endswith("More runs do not settle what stands against a verdict, so none is added.")


def test_a_lost_recording_is_made_up_for() -> None:
    assert found(*rows(1.3, 0.2, recordings=2))[0] == {"m": 4, "n": 3}


def test_a_look_counts_and_names_the_undecided() -> None:
    sentence = found(*rows(1.3, 0.2), *(rows(1.2, 4) * 5))[1]
    assert "5 of 6 headline tests are undecided" in sentence
    assert sentence.count("b, random write") == 3
    assert "; 2 more)" in sentence
    assert "1 of 2 headline tests is undecided" in found(*rows(1.3, 0.2), *rows(1.2, 4))[1]


def test_without_comparisons_nothing_is_added() -> None:
    assert found() == (None, "m after 3 runs: nothing is compared.")


def simulated(ratio: float, scatter_pct: float, seed: int) -> tuple[int, str]:
    """Return the runs of a growing study of two cells, and the last verdict on the first; recordings are normal."""
    random, growth = np.random.default_rng(seed), Growth(3, 7)
    logs = {"a": random.normal(0, scatter_pct / 100, (2, 7)), "b": random.normal(0, scatter_pct / 100, (2, 7))}
    logs["b"] += np.log(ratio)
    while True:
        runs = growth.runs("m")
        summary = table("summary", [
            {"drive": drive, "measurement": "m", "cell_label": f"RND {size}KiB 0/100", "metric": "iops",
             "kind": "speed", "verdict": "steady", "statistic": "window average", "scope": "recordings",
             "value": float(np.exp(values[:runs].mean())), "samples": np.exp(values[:runs]).tolist(),
             "recordings": [f"{drive}/m/0-run{run}" for run in range(1, runs + 1)]}
            for drive, of_cells in logs.items() for size, values in zip((4, 8), of_cells, strict=True)
        ])  # fmt: skip
        deltas = deltas_table(summary, "a", confidence_pct=growth.confidence_pct(95))
        grown, _ = look(STUDY, growth, deltas.to_dict("records"))  # type: ignore[arg-type]
        if grown is None:
            return runs, str(deltas["verdict"].iloc[0])
        growth = grown


def test_growing_studies_stop_early_when_they_can_and_err_seldom() -> None:
    """Of 50 seeds, one study of equal drives called a difference, and +15 % took 3.9 runs."""
    clear = [simulated(1.15, 2, seed) for seed in range(25)]
    assert all(verdict == FASTER_BEYOND for _, verdict in clear)
    assert np.mean([runs for runs, _ in clear]) < 5
    equal = [simulated(1.0, 2, seed) for seed in range(25)]
    assert sum(verdict in (*BETTER, *WORSE) for _, verdict in equal) <= 2
    assert sum(verdict == SAME for _, verdict in equal) >= 10
