"""A protocol shortened by its scale or changed by a study: merged and replaced fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_protocols import CLASS, STEADY, loop, protocol, resolved, soak, steps

from drivelab.core.errors import UserError
from drivelab.plan.grammar import Resolved, load, resolve

CELL = {"pattern": "random", "read_share": 0, "block_size": {"4KiB": "60%", "8KiB": "40%"}}
PASS = {"pattern": "random", "block_size": "4KiB"}


def scaled(folder: Path, change: dict[str, Any], measure: list[dict[str, Any]], **parts: Any) -> Resolved:
    return resolved(folder, measure, "demo", scale={"demo": change}, **parts)[0]


def step(folder: Path, change: dict[str, Any], measure: dict[str, Any], **parts: Any) -> dict[str, Any]:
    ((fields,),) = [
        list(planned_step.values()) for planned_step in scaled(folder, change, [measure], **parts).steps["measure"]
    ]
    return dict(fields)


def test_a_distribution_replaces_another(tmp_path: Path) -> None:
    resolved_step = step(tmp_path, {"soak": {"block_size": {"16KiB": "50%", "32KiB": "50%"}}}, soak(**CELL))
    assert [entry["block_size_bytes"] for entry in resolved_step["cell"]["block_sizes"]] == [16384, 32768]
    resolved_step = step(tmp_path, {"soak": {"block_size": "4KiB"}}, soak(**CELL))
    assert "block_sizes" not in resolved_step["cell"]


def test_zones_and_distributions_in_workloads_are_replaced(tmp_path: Path) -> None:
    workload = {**CELL, "access": [{"range": "50%", "share": "10%"}, {"range": "50%", "share": "90%"}]}
    change = {"workloads": {"w": {"access": {"zipf": 2}, "block_size": {"512B": "1%", "1KiB": "99%"}, "threads": 3}}}
    resolved_step = step(tmp_path, change, loop({"workload": ["w"]}), workloads={"w": workload})
    (cell,) = resolved_step["cells"]
    assert (cell["zipf"], cell["threads"], "zones" in cell) == (2.0, 3, False)
    assert [entry["block_size_bytes"] for entry in cell["block_sizes"]] == [512, 1024]


def test_a_grid_keeps_the_order_of_its_keys(tmp_path: Path) -> None:
    grid = {"pattern": "random", "read_share": [100, 0], "block_size": "4KiB", "queue_depth": [8, 1]}
    resolved_step = step(tmp_path, {"loop": {"cells": {"queue_depth": [4, 2], "read_share": [50, 0]}}}, loop(grid))
    assert [(c["read_share"], c["queue_depth"]) for c in resolved_step["cells"]] == [(50, 4), (50, 2), (0, 4), (0, 2)]


LOOP = loop(CELL)
UNTIL = {"relative_standard_error": {"threshold": "5%", "metric": "duration_s"}}
APPLICATION = {"application": {"cold_runs": 1, "until": UNTIL}}


@pytest.mark.parametrize(
    ("measure", "change", "expected"),
    [
        (LOOP, {"until": {"rounds": 2}}, {"until": {"rounds": 2}}),
        (loop(CELL, until={"steady_state": {**STEADY, "track": [{"read_share": 0, "metric": "iops"}]}}),
         {"until": {"rounds": 1}}, {"until": {"rounds": 1}}),
        (LOOP, {"until": {"relative_standard_error": {"threshold": "9%", "metric": "iops"}}},
         {"until": {"threshold": 0.09, "metric": "iops"}}),
        (loop(CELL, pause="5s"), {"duty_cycle": "50%"}, {"duty_cycle": 0.5, "pause_s": None}),
        (loop(CELL, duty_cycle="5%"), {"pause": "1s"}, {"pause_s": 1.0, "duty_cycle": None}),
        (loop(CELL, cold_rounds=2), {"cold_rounds": 0}, {"cold_rounds": None}),
        (APPLICATION, {"cold_runs": 0, "until": {"passes": 1}}, {"cold_runs": 0, "until": {"passes": 1}}),
        # Stop rules of a soak are merged.
        (soak(until={"capacity_multiple": 4}), {"slice": "1s", "until": {"time": "5s"}},
         {"until": {"capacity_multiple": 4, "time_s": 5.0}}),
    ],
)  # fmt: skip
def test_alternative_keys_replace_each_other(
    tmp_path: Path, measure: dict[str, Any], change: dict[str, Any], expected: dict[str, Any]
) -> None:
    (kind,) = measure
    resolved_step = step(tmp_path, {kind: change}, measure)
    assert {key: resolved_step.get(key) for key in expected} == expected


def test_conditions_are_shortened(tmp_path: Path) -> None:
    before = {"purge": "none", "rest": "10min", "scenario": "required", "settle": "30s",
              "fill": [{**PASS, "capacity_multiple": 2}, {**PASS, "raw_capacity_multiple": 3}]}  # fmt: skip

    def changed(**change: Any) -> dict[str, Any]:
        return dict(scaled(tmp_path, change, [soak()], condition=before).steps["condition"])

    assert changed(rest="1s", scenario="recorded", settle="2s").items() >= {"rest_s": 1.0, "settle_s": 2.0}.items()
    assert "scenario_required" not in changed(scenario="recorded")
    assert [one_pass.get("capacity_multiple") for one_pass in changed(fill={"capacity_multiple": 1})["fill"]] == [1, 1]
    each = changed(fill=[{}, {"raw_capacity_multiple": 1}])["fill"]
    assert [(one_pass.get("capacity_multiple"), one_pass.get("raw_capacity_multiple")) for one_pass in each] == [
        (2, None),
        (None, 1),
    ]


def test_a_fill_can_be_added(tmp_path: Path) -> None:
    fill = {**PASS, "capacity_multiple": 1}
    for wanted, count in ((fill, None), ([fill, fill], 2)):
        fill = scaled(tmp_path, {"fill": wanted}, [soak()]).steps["condition"]["fill"]
        assert (len(fill) if isinstance(fill, list) else None) == count


def test_other_values_and_other_keys_to_repeat_over(tmp_path: Path) -> None:
    measure = [{"repeat": {"phase": "p", "over": {"threads": [1, 2]}, "steps": [soak(threads="each")]}}]
    assert len(steps(tmp_path, measure, "demo", scale={"demo": {"repeat": {"over": {"threads": [4]}}}})) == 1
    change = {"repeat": {"over": {"queue_depth": [4, 5, 6]}, "soak": {"threads": 1, "queue_depth": "each"}}}
    repeated_steps = steps(tmp_path, measure, "demo", scale={"demo": change})
    assert [repeated_step["cell"]["queue_depth"] for repeated_step in repeated_steps] == [4, 5, 6]


def test_fewer_points_keep_their_selection(tmp_path: Path) -> None:
    sweep = {"pattern": "random", "read_share": [40], "block_size": "4KiB", "threads": [4, 1]}
    over = {"point": ["max", "mid", "min"], "of": {"read_share": 40}, "response_time": "5ms"}
    measure = [
        loop(sweep),
        {"repeat": {"phase": "p", "over": over, "steps": [soak(threads="each", queue_depth="each")]}},
    ]
    change = {"repeat": {"over": {"point": ["min"], "response_time": "50ms"}}}
    _, last_step = steps(tmp_path, measure, "demo", scale={"demo": change})
    assert last_step["point"] == {"name": "min", "step": 0, "of": {"read_share": 40}, "response_time_us": 50000.0}


def test_other_values_and_other_keys_for_each(tmp_path: Path) -> None:
    ranged = {**CLASS, "active_range": "each"}
    parts: dict[str, Any] = {"class_": ranged, "for_each": {"active_range": ["100%", "50%"]}}
    measurements = resolved(
        tmp_path, [soak()], "demo", scale={"demo": {"for_each": {"active_range": ["25%"]}}}, **parts
    )
    assert [measurement.variant for measurement in measurements] == ["25pct"]
    change = {
        "for_each": {"read_share": [0, 1]},
        "class": {"client": {"active_range": "10%"}},
        "soak": {"read_share": "each"},
    }
    measurements = resolved(tmp_path, [soak()], "demo", scale={"demo": change}, **parts)
    assert [measurement.variant for measurement in measurements] == ["0", "1"]


def test_the_study_overrides_the_scale(tmp_path: Path) -> None:
    path = protocol(tmp_path, [loop(CELL)], scale={"demo": {"loop": {"runtime": "1s", "cold_rounds": 1}}})
    (measurement,) = resolve(load(path), "client", "demo", {"loop": {"runtime": "2s"}}, "test")
    loop_step = measurement.steps["measure"][0]["loop"]
    assert (loop_step["cells"][0]["runtime_s"], loop_step["cold_rounds"]) == (2.0, 1)


def test_alterations_are_described(tmp_path: Path) -> None:
    change = {"workloads": {"w": {"block_size": {"1KiB": "50%", "2KiB": "50%"}}}, "rest": "1s",
              "loop": {"cells": [{"workload": "w", "read_share": [0, 5]}]}}  # fmt: skip
    parts: dict[str, Any] = {"workloads": {"w": CELL}, "condition": {"purge": "none", "rest": "10min"}}
    measurement = scaled(tmp_path, change, [loop([{"workload": "w", "block_size": {"4KiB": "100%"}}])], **parts)
    assert measurement.altered == (
        "workloads w block size 4KiB: none instead of 60%",
        "workloads w block size 8KiB: none instead of 40%",
        "condition rest: 1s instead of 10min",
        "loop cells: w (0, 5) instead of w (4KiB 100%)",
        "workloads w block size 1KiB: 50% instead of none",
        "workloads w block size 2KiB: 50% instead of none",
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"analysis": {"best_run": "x"}}, "unknown key 'analysis'|'analysis' cannot be changed"),
        ({"simultaneous": False}, "'simultaneous'"),
    ],
)
def test_invalid_changes_are_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    fill = [{**PASS, "capacity_multiple": 2}] * 2
    condition = {"purge": "none", "fill": fill}
    with pytest.raises(UserError, match=reason):
        scaled(tmp_path, change, [loop([{"workload": "w"}])], workloads={"w": CELL}, condition=condition)
