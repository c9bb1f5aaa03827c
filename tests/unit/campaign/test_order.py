"""The order of measurements, and looks at a growing study."""

from __future__ import annotations

from collections import Counter
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import table

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.deltas.judging import UNSETTLED
from drivelab.analysis.verdict import BETTER, CANNOT_TELL, FASTER, FASTER_BEYOND, NOT_COMPARED, SAME, WORSE
from drivelab.campaign.growth import look
from drivelab.plan.design import Growth
from drivelab.plan.hosts import positions
from drivelab.plan.plan import Plan


def plan(drive: str, measurement: str, run: int, host: str = "any", **subject: Any) -> Plan:
    serial = {"serial": drive.upper()}
    context = {"drive": drive, "measurement": measurement, "run": run, "results": "r"}
    return Plan(
        {"drive": serial, "protocol": measurement, **subject}, context | ({} if host == "any" else {"host": host})
    )


def study(drives: int, measurements: int, runs: int, hosts: int) -> list[Plan]:
    return [
        plan(f"d{d}", f"m{m}", run, f"h{d % hosts}")
        for m, d, run in product(range(measurements), range(drives), range(1, runs + 1))
    ]


sizes = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))


def by_host(plans: list[Plan], seed: int | None) -> dict[str, list[Plan]]:
    place = positions(plans, seed)
    hosts: dict[str, list[Plan]] = {}
    for planned in sorted(plans, key=lambda plan: place[plan.recording]):
        hosts.setdefault(str(planned.context.get("host", "any")), []).append(planned)
    return hosts


@given(sizes, st.integers(0, 10**9))
def test_positions_on_each_host_are_a_permutation_and_blocks_are_complete(
    size: tuple[int, int, int, int], seed: int
) -> None:
    plans = study(*size)
    place = positions(plans, seed)
    for of_host in by_host(plans, seed).values():
        assert [place[plan.recording] for plan in of_host] == list(range(len(of_host)))
        block = len(of_host) // size[2]
        for run in range(size[2]):
            chosen = of_host[run * block : (run + 1) * block]
            assert {plan.run for plan in chosen} == {run + 1}
            assert len({(plan.drive, plan.measurement) for plan in chosen}) == block


@given(sizes, st.integers(0, 10**9), st.randoms())
def test_the_same_seed_gives_the_same_order(size: tuple[int, int, int, int], seed: int, random: Any) -> None:
    plans = study(*size)
    mixed = list(plans)
    random.shuffle(mixed)
    assert positions(plans, seed) == positions(mixed, seed)


@given(sizes, st.integers(0, 10**9))
def test_a_new_drive_keeps_the_order_of_the_others(size: tuple[int, int, int, int], seed: int) -> None:
    plans = study(*size[:3], 1)
    before = [planned.recording for planned in by_host(plans, seed)["h0"]]
    after = by_host([*plans, *(plan("new", f"m{m}", 1, "h0") for m in range(size[1]))], seed)["h0"]
    assert [plan.recording for plan in after if plan.drive != "new"] == before


def test_without_a_seed_the_listed_order_is_kept() -> None:
    plans = study(3, 2, 3, 1)
    assert list(positions(plans, None).values()) == list(range(len(plans)))


def test_every_drive_comes_first_equally_often() -> None:
    """Over 4,000 seeds each of four drives is first about 1,000 times; the standard deviation is 27."""
    plans = study(4, 1, 1, 1)
    first = Counter(by_host(plans, seed)["h0"][0].drive for seed in range(4000))
    assert all(abs(count - 1000) < 5 * 27 for count in first.values()), first


def test_each_block_is_shuffled_separately() -> None:
    of_host = by_host(study(6, 1, 2, 1), 7)["h0"]
    assert [plan.drive for plan in of_host[:6]] != [plan.drive for plan in of_host[6:]]


def test_drives_measured_at_the_same_time_stay_together() -> None:
    both = {"simultaneous": ["D0", "D1"]}
    plans = [plan(f"d{d}", "together", 1, **both) for d in range(2)] + [plan(f"d{d}", "m", 1) for d in range(8)]
    for seed in range(30):
        place = positions(plans, seed)
        first, second = (place[plan.recording] for plan in plans[:2])
        assert abs(first - second) == 1


GROWING: Any = SimpleNamespace(
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
    grown, sentences = look(GROWING, growth, headline)
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
        grown, _ = look(GROWING, growth, deltas.to_dict("records"))  # type: ignore[arg-type]
        if grown is None:
            return runs, str(deltas["verdict"].iloc[0])
        growth = grown


def test_growing_studies_stop_early_when_they_can_and_err_seldom() -> None:
    clear = [simulated(1.15, 2, seed) for seed in range(12)]
    assert all(verdict == FASTER_BEYOND for _, verdict in clear)
    assert np.mean([runs for runs, _ in clear]) < 5
    equal = [simulated(1.0, 2, seed) for seed in range(12)]
    assert sum(verdict in (*BETTER, *WORSE) for _, verdict in equal) <= 1
    assert sum(verdict == SAME for _, verdict in equal) >= 5
