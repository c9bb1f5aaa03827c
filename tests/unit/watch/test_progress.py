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
    assert (progress["round"], progress["rounds"], progress["cell"], progress["cells"]) == (3, 25, 2, 2)
    assert progress["workload"] == "RND 4KiB 100/0 T2Q8"
    assert not progress["fixed"]
    assert progress["ended"] is None


def test_a_variable_shows_the_steady_state_determination() -> None:
    values = [500.0, 100.0, 110.0, 120.0, 100.0, 105.0]
    (variable,) = progress_of(rounds(values))["variables"]
    state = determine(values, window=5, data_excursion=0.2, slope_excursion=0.1)
    assert variable["name"] == "RND 4KiB 0/100 T2Q8"
    assert (variable["first_round"], variable["from_round"], variable["values"]) == (1, 2, values)
    assert variable["average"] == pytest.approx(state.average)
    assert variable["band"] == pytest.approx([0.9 * state.average, 1.1 * state.average])
    assert variable["line"] == pytest.approx([state.intercept + state.slope * n for n in (2, 6)])
    assert variable["data_pct"] == pytest.approx(100 * 20 / 107)
    assert variable["steady"] is state.steady is True


def test_a_window_lies_wholly_after_an_interruption() -> None:
    journal = [*rounds([100, 100, 100]), line(4, 0, 100), {"event": "gap"}, line(4, 1, 100)]
    journal += [line(number, cell, 100) for number in (5, 6, 7) for cell in (0, 1)]
    (variable,) = progress_of(journal)["variables"]
    assert variable["from_round"] == 5
    assert not variable["steady"]
    journal += [line(number, cell, 100) for number in (8, 9) for cell in (0, 1)]
    (variable,) = progress_of(journal)["variables"]
    assert variable["steady"]


def test_cold_rounds_are_marked_and_never_in_the_window() -> None:
    progress = progress_of([line(1, 0, 900)], cold_rounds=1)
    assert (progress["cold"], progress["round"], progress["rounds"]) == (True, 1, 1)
    progress = progress_of(rounds([900, 100, 100]), cold_rounds=1)
    assert (progress["cold"], progress["round"], progress["rounds"]) == (False, 3, 25)
    assert progress["variables"][0]["values"] == [100, 100]


def test_an_ended_loop_shows_its_outcome() -> None:
    journal = [*rounds([100] * 5), {"event": "loop", "step": 0, "steady": True, "rounds": 5}]
    assert progress_of(journal)["ended"] == "steady state reached"


def test_a_fixed_number_of_rounds_has_no_variables() -> None:
    progress = progress_of(rounds([100]), until={"rounds": 3})
    assert (progress["fixed"], progress["rounds"], progress["variables"]) == (True, 3, [])
