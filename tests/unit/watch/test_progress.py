from __future__ import annotations

from typing import Any

import pytest
from watched import CELLS, UNTIL

from drivelab.analysis.steady_state import determine
from drivelab.watch.progress import loop_progress


def subject(**fields: Any) -> dict[str, Any]:
    return {"measure": [{"loop": {"cells": CELLS, "until": UNTIL, **fields}}]}


def line(number: int, cell: int, iops: float) -> dict[str, Any]:
    return {"event": "cell", "step": 0, "round": number, "cell": cell, "metrics": {"iops": iops}}


def rounds(values: list[float]) -> list[dict[str, Any]]:
    return [line(number, cell, value) for number, value in enumerate(values, 1) for cell in (0, 1)]


def told(journal: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    found = loop_progress(subject(**fields), journal)
    assert found is not None
    return found


def test_before_the_first_cell_there_is_no_progress() -> None:
    assert loop_progress(subject(), [{"event": "measure"}]) is None
    assert loop_progress({"measure": [{"soak": {}}]}, [{"event": "soak", "step": 0}]) is None


def test_where_the_loop_is() -> None:
    found = told([*rounds([100, 110]), line(3, 0, 105)])
    assert (found["round"], found["rounds"], found["cell"], found["cells"]) == (3, 25, 2, 2)
    assert found["workload"] == "RND 4KiB 100/0 T2Q8"
    assert not found["fixed"]
    assert found["ended"] is None


def test_the_variable_is_told_as_the_determination_has_it() -> None:
    values = [500.0, 100.0, 110.0, 120.0, 100.0, 105.0]
    (variable,) = told(rounds(values))["variables"]
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
    (variable,) = told(journal)["variables"]
    assert variable["from_round"] == 5
    assert not variable["steady"]
    journal += [line(number, cell, 100) for number in (8, 9) for cell in (0, 1)]
    (variable,) = told(journal)["variables"]
    assert variable["steady"]


def test_cold_rounds_are_told_apart_and_in_no_window() -> None:
    found = told([line(1, 0, 900)], cold_rounds=1)
    assert (found["cold"], found["round"], found["rounds"]) == (True, 1, 1)
    found = told(rounds([900, 100, 100]), cold_rounds=1)
    assert (found["cold"], found["round"], found["rounds"]) == (False, 3, 25)
    assert found["variables"][0]["values"] == [100, 100]


def test_an_ended_loop_says_how_it_ended() -> None:
    journal = [*rounds([100] * 5), {"event": "loop", "step": 0, "steady": True, "rounds": 5}]
    assert told(journal)["ended"] == "steady state reached"


def test_a_fixed_number_of_rounds_has_no_variables() -> None:
    found = told(rounds([100]), until={"rounds": 3})
    assert (found["fixed"], found["rounds"], found["variables"]) == (True, 3, [])
