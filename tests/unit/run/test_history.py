"""The next cell by the journal, and when an interrupted measurement may resume."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.run.history import LoopHistory
from drivelab.run.measure import BLIND_S, foreign_bytes, other_versions

CELLS = [
    {"pattern": "random", "read_share": share, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1}
    for share in (100, 0)
]
STEADY = {
    "window": 5, "max_rounds": 25, "data_excursion": 0.2, "slope_excursion": 0.1,
    "track": [{"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "metric": "iops"}],
}  # fmt: skip
AGREEMENT = {"threshold": 0.05, "metric": "iops"}


def line(cell: int, iops: float) -> dict[str, Any]:
    return {"event": "cell", "step": 0, "cell": cell, "metrics": {"iops": iops}}


def journal(values: list[float]) -> list[dict[str, Any]]:
    """Return the journal of rounds with two cells; the second is tracked."""
    return [line(cell, iops) for value in values for cell, iops in enumerate((1.0, value))]


def history(lines: list[dict[str, Any]], cells: int = 2, **fields: Any) -> LoopHistory:
    return LoopHistory(CELLS[:cells], {"until": STEADY, **fields}).follow(lines, 0)


def carried_out(
    values: Any, gaps: set[int], cells: int = 2, **fields: Any
) -> tuple[list[tuple[int, int]], LoopHistory]:
    """Return rounds and cells in the order of a loop that is interrupted before the cells numbered `gaps`.

    `values` gives IOPS by round and cell; the history is rebuilt from the journal after each interruption.
    """
    lines: list[dict[str, Any]] = []
    progress = history(lines, cells, **fields)
    places: list[tuple[int, int]] = []
    while (place := progress.following()) is not None:
        if len(places) in gaps:
            lines.append({"event": "gap"})
            progress = history(lines, cells, **fields)
            assert progress.following() == place, "an interruption must not change the next cell"
        lines.append(line(place[1], values(*place)))
        progress.add(place[1], {"iops": values(*place)})
        places.append(place)
    return places, progress


def test_five_even_rounds_are_steady_four_are_not() -> None:
    assert history(journal([100, 101, 99, 100, 100])).outcome() == {"rounds": 5, "steady": True}
    assert history(journal([100, 101, 99, 100])).following() == (5, 0)
    assert history(journal([200, 101, 99, 100, 100])).following() == (6, 0)
    assert history(journal([200, 101, 99, 100, 100, 100])).following() is None


def test_a_loop_that_is_never_steady_ends_at_max_rounds() -> None:
    places, progress = carried_out(lambda round_number, cell: 100.0 * round_number, set())
    assert progress.outcome() == {"rounds": 25, "steady": False}
    assert len(places) == 50


@given(st.sets(st.integers(0, 20), max_size=3))
def test_the_window_lies_wholly_after_the_last_gap(gaps: set[int]) -> None:
    """All rounds are equal: five whole rounds follow the last interruption of a loop that was not steady."""
    expected = 10
    for gap in sorted(gaps):
        if gap < expected:
            expected = 2 * (-(-gap // 2) + 5)
    places, progress = carried_out(lambda *place: 100.0, gaps)
    assert len(places) == expected
    assert progress.outcome()["steady"]


def test_an_interruption_after_the_last_round_has_no_effect() -> None:
    """An example is a pause after the last cell."""
    assert history([*journal([100.0] * 5), {"event": "gap"}]).following() is None


def test_an_unfinished_round_does_not_count() -> None:
    assert history(journal([100.0] * 5)[:-1]).following() == (5, 1)


def test_other_steps_are_not_mixed_in() -> None:
    lines = [{**entry, "step": 1} for entry in journal([100.0] * 5)]
    assert history(lines).following() == (1, 0)


def test_cold_rounds_come_first_and_are_in_no_window() -> None:
    places, progress = carried_out(lambda *place: 100.0, set(), cold_rounds=2)
    assert progress.outcome() == {"rounds": 5, "cold_rounds": 2, "steady": True}
    assert places[-1] == (7, 1)
    assert [progress.is_cold(number) for number in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize(("excess", "rounds", "agreed"), [(0, 3, True), (20, 5, True), (30, 7, True), (50, 7, False)])
def test_rounds_until_every_cell_agrees(excess: float, rounds: int, agreed: bool) -> None:
    """Only the second cell's first value differs from 100: standard error excess / n, mean 100 + excess / n."""

    def value(round_number: int, cell: int) -> float:
        return 100.0 + (excess if cell and round_number == 2 else 0.0)

    places, progress = carried_out(value, set(), until=AGREEMENT, cold_rounds=1)
    assert progress.outcome() == {"rounds": rounds, "cold_rounds": 1, "agreed": agreed}
    assert len(places) == 2 * (rounds + 1)


def test_cold_rounds_do_not_count_for_agreement() -> None:
    _, progress = carried_out(lambda number, cell: 1.0 if number == 1 else 100.0, set(), until=AGREEMENT, cold_rounds=1)
    assert progress.outcome()["rounds"] == 3
    _, progress = carried_out(lambda number, cell: 1.0 if number == 1 else 100.0, set(), until=AGREEMENT)
    assert progress.outcome() == {"rounds": 7, "agreed": False}


def test_order_cells_counts_rounds_per_cell() -> None:
    def value(number: int, cell: int) -> float:
        return 120.0 if (number, cell) == (1, 0) else 100.0

    places, progress = carried_out(value, set(), until=AGREEMENT, order="cells")
    rounds = [sum(cell == wanted for _, cell in places) for wanted in (0, 1)]
    assert rounds == [5, 3]
    assert places == [(number, 0) for number in range(1, 6)] + [(number, 1) for number in range(1, 4)]
    assert progress.outcome() == {"rounds": 5, "agreed": True}


def test_one_cell_without_agreement_decides_for_all() -> None:
    _, progress = carried_out(
        lambda number, cell: 100.0 + 90 * cell * (number % 2), set(), until=AGREEMENT, order="cells"
    )
    assert progress.outcome() == {"rounds": 7, "agreed": False}


@given(
    gaps=st.sets(st.integers(0, 40), max_size=4),
    until=st.sampled_from([{"rounds": 3}, AGREEMENT]),
    order=st.sampled_from(["rounds", "cells"]),
    cold=st.integers(0, 2),
    noise=st.lists(st.floats(50.0, 150.0), min_size=30, max_size=30),
)
def test_interruptions_do_not_affect_rules_without_a_window(
    gaps: set[int], until: dict[str, Any], order: str, cold: int, noise: list[float]
) -> None:
    def value(number: int, cell: int) -> float:
        return noise[3 * number + cell]

    fields: dict[str, Any] = {"until": until, "order": order, "cold_rounds": cold}
    places, progress = carried_out(value, gaps, **fields)
    undisturbed, outcome = carried_out(value, set(), **fields)
    assert places == undisturbed
    assert progress.outcome() == outcome.outcome()
    assert len(set(places)) == len(places), "no cell twice"
    for cell in (0, 1):
        numbers = [number for number, measured in places if measured == cell]
        assert numbers == list(range(1, len(numbers) + 1)), "none left out"


@given(gaps=st.sets(st.integers(0, 20), max_size=2))
def test_a_steady_cell_stays_steady_when_the_next_is_interrupted(gaps: set[int]) -> None:
    until = {**STEADY, "track": [{"pattern": "random", "metric": "iops"} | place for place in (
        {"read_share": 100, "block_size_bytes": 4096}, {"read_share": 0, "block_size_bytes": 4096})]}  # fmt: skip
    places, progress = carried_out(lambda *place: 100.0, gaps, until=until, order="cells")
    assert [cell for _, cell in places] == sorted(cell for _, cell in places)
    first = 5
    for gap in sorted(gaps):
        if gap < first:
            first = gap + 5
    assert sum(cell == 0 for _, cell in places) == first
    assert progress.outcome()["steady"]


@pytest.mark.parametrize("order", ["rounds", "cells"])
@pytest.mark.parametrize("cold_rounds", [0, 1])
def test_the_expected_cell_follows_unless_the_stop_rule_ends_the_loop(order: str, cold_rounds: int) -> None:
    loop = LoopHistory(CELLS, {"until": AGREEMENT, "order": order, "cold_rounds": cold_rounds})
    expectations: list[bool] = []
    while (place := loop.following()) is not None:
        expected = loop.expected_after(place)
        loop.add(place[1], {"iops": 100.0})
        expectations.append(expected == loop.following())
    assert expectations[-1] is False  # a further round was expected
    assert expectations.count(False) == (2 if order == "cells" else 1)
    assert len(expectations) == 2 * (3 + cold_rounds)


def test_nothing_is_expected_after_the_last_possible_cell() -> None:
    loop = LoopHistory(CELLS, {"until": {"rounds": 1}})
    assert loop.expected_after((1, 0)) == (1, 1)
    loop.add(0, {"iops": 1.0})
    assert loop.expected_after((1, 1)) is None


MIB = 2**20 // 512


def test_changed_versions_are_named(tmp_path: Path) -> None:
    now = {"fio": "3.33", "kernel": "6.1", "firmware": "A", "capacity_bytes": 10, "host": "bench"}
    assert other_versions(tmp_path, now) is None, "the first versions are unknown"
    (tmp_path / "host.json").write_text(json.dumps({"fio": "3.33", "kernel": "6.1", "host": "other"}))
    (tmp_path / "identity.json").write_text(json.dumps({"firmware": "A", "capacity_bytes": 10}))
    assert other_versions(tmp_path, now) is None
    assert other_versions(tmp_path, {**now, "kernel": "6.2"}) == "kernel was 6.1 and is now 6.2"
    assert other_versions(tmp_path, {**now, "fio": "3.36"}) == "fio was 3.33 and is now 3.36"
    assert other_versions(tmp_path, {**now, "firmware": "B"}) == "firmware was A and is now B"


@given(st.lists(st.integers(0, 100 * MIB), min_size=2, max_size=20), st.floats(0, 1))
def test_the_own_writes_of_a_killed_cell_are_never_foreign(steps: list[int], late: float) -> None:
    counts = list(itertools.accumulate(steps, initial=1000))
    samples = [{"at_s": 100.0 + second, "sectors_written": count} for second, count in enumerate(counts)]
    assert foreign_bytes(samples, 1000, counts[-1] + int(late * (BLIND_S - 1) * max(steps))) == 0
