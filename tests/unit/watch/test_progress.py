from __future__ import annotations

from typing import Any

import pytest
from watched import CELLS, UNTIL

from drivelab.criteria.steady_state import determine
from drivelab.watch.recording_progress import loop_progress


def subject(**fields: Any) -> dict[str, Any]:
    return {"measure": [{"loop": {"cells": CELLS, "until": UNTIL, **fields}}]}


def line(number: int, cell: int, iops: float) -> dict[str, Any]:
    return {"event": "cell", "step": 0, "round": number, "cell": cell, "metrics": {"iops": iops}}


def rounds(values: list[float]) -> list[dict[str, Any]]:
    return [line(number, cell, value) for number, value in enumerate(values, 1) for cell in (0, 1)]


def progress_of(journal: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    progress = loop_progress(subject(**fields), journal)
    assert progress is not None
    return progress


def test_before_the_first_cell_there_is_no_progress() -> None:
    assert loop_progress(subject(), [{"event": "measure"}]) is None
    assert loop_progress({"measure": [{"soak": {}}]}, [{"event": "soak", "step": 0}]) is None


def test_progress_within_a_loop() -> None:
    progress = progress_of([*rounds([100, 110]), line(3, 0, 105)])
    assert (progress["round"], progress["rounds"]) == (3, 25)
    assert not progress["fixed"]
    assert progress["ended"] is None


@pytest.mark.parametrize("last", [105.0, 150.0])
def test_a_variable_is_steady_as_determined_at_the_end(last: float) -> None:
    values = [500.0, 100.0, 110.0, 120.0, 100.0, last]
    state = determine(values, window=5, data_excursion=0.2, slope_excursion=0.1)
    assert progress_of(rounds(values))["steady"] == [state.steady] == [last == 105.0]


def test_a_window_lies_wholly_after_an_interruption() -> None:
    journal = [*rounds([100, 100, 100]), line(4, 0, 100), {"event": "gap"}, line(4, 1, 100)]
    journal += [line(number, cell, 100) for number in (5, 6, 7) for cell in (0, 1)]
    assert progress_of(journal)["steady"] == [False]
    journal += [line(number, cell, 100) for number in (8, 9) for cell in (0, 1)]
    assert progress_of(journal)["steady"] == [True]


def test_cold_rounds_are_marked_and_never_in_the_window() -> None:
    progress = progress_of([line(1, 0, 900)], cold_rounds=1)
    assert (progress["cold"], progress["round"], progress["rounds"]) == (True, 1, 1)
    progress = progress_of(rounds([900, 100, 100]), cold_rounds=1)
    assert (progress["cold"], progress["round"], progress["rounds"]) == (False, 3, 25)
    wide = {**UNTIL, "window": 3, "max_rounds": 25}
    assert progress_of(rounds([900, 100, 100]), cold_rounds=1, until=wide)["steady"] == [False], "two rounds count"
    assert progress_of(rounds([900, 100, 100, 100]), cold_rounds=1, until=wide)["steady"] == [True]


def test_an_ended_loop_shows_its_outcome() -> None:
    journal = [*rounds([100] * 5), {"event": "loop", "step": 0, "steady": True, "rounds": 5}]
    assert progress_of(journal)["ended"] == "steady state reached"


def test_a_fixed_number_of_rounds_has_no_variables() -> None:
    progress = progress_of(rounds([100]), until={"rounds": 3})
    assert (progress["fixed"], progress["rounds"], progress["steady"]) == (True, 3, [])
