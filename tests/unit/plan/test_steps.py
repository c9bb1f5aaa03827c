"""Steps and conditions: every form of the grammar, and its form in a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_protocols import CLASS, STEADY, loop, protocol, resolved, soak, steps

from drivelab.core.errors import UserError
from drivelab.plan.cell import fills, needs_over_provisioning, pause_s, rounds_at_least, rounds_at_most
from drivelab.plan.grammar import load

GRID = {"pattern": "random", "read_share": [100, 40, 0], "block_size": "4KiB", "threads": [4, 1], "queue_depth": [8, 1]}
PASS = {"pattern": "sequential", "block_size": "128KiB"}
FILL = {"pattern": "sequential", "block_size_bytes": 131072, "queue_depth": 32}
RULE = {"window": 5, "data_excursion": 0.2, "slope_excursion": 0.1}
RSE = {"relative_standard_error": {"threshold": "5%", "metric": "iops"}}


def test_a_loop_has_only_the_requested_fields(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, [loop(GRID, order="rounds", cold_rounds=0)])
    assert {*step} == {"cells", "until"}
    assert step["until"] == {"rounds": 5}


@pytest.mark.parametrize(
    ("fields", "becomes"),
    [
        ({"until": RSE}, {"until": {"threshold": 0.05, "metric": "iops"}}),
        ({"order": "cells"}, {"order": "cells"}),
        ({"cold_rounds": 1}, {"cold_rounds": 1}),
        ({"pause": "5s"}, {"pause_s": 5.0}),
        ({"duty_cycle": "25%"}, {"duty_cycle": 0.25}),
    ],
)
def test_options_of_a_loop_are_resolved(tmp_path: Path, fields: dict[str, Any], becomes: dict[str, Any]) -> None:
    (step,) = steps(tmp_path, [loop(GRID, **fields)])
    assert {key: step[key] for key in becomes} == becomes


@pytest.mark.parametrize(
    ("variable", "becomes"),
    [
        ({"read_share": 0, "threads": 4, "queue_depth": 8}, {"read_share": 0, "threads": 4, "queue_depth": 8}),
        ({"pattern": "random", "read_share": 40, "block_size": "4KiB", "threads": 1, "queue_depth": 1},
         {"pattern": "random", "read_share": 40, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1}),
    ],
)  # fmt: skip
def test_threads_and_depth_identify_tracked_cells(
    tmp_path: Path, variable: dict[str, Any], becomes: dict[str, Any]
) -> None:
    (step,) = steps(
        tmp_path, [loop(GRID, until={"steady_state": {**STEADY, "track": [{**variable, "metric": "iops"}]}})]
    )
    assert step["until"] == {**RULE, "max_rounds": 25, "track": [{**becomes, "metric": "iops"}]}


def test_an_offset_identifies_tracked_cells(tmp_path: Path) -> None:
    cells = {"pattern": "random", "read_share": 0, "block_size": "4KiB", "alignment_offset": ["0B", "512B"]}
    for offset, size in (("0B", 0), ("512B", 512)):
        track = [{"read_share": 0, "alignment_offset": offset, "metric": "iops"}]
        (step,) = steps(tmp_path, [loop(cells, until={"steady_state": {**STEADY, "track": track}})])
        assert step["until"]["track"] == [{"read_share": 0, "alignment_offset_bytes": size, "metric": "iops"}]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"pause": "5s", "duty_cycle": "25%"}, r"loop\.duty_cycle': both 'pause' and 'duty_cycle'"),
        ({"duty_cycle": "0%"}, r"loop\.duty_cycle': 0% is out of bounds"),
        ({"pause": "0s"}, r"loop\.pause': the duration '0s' is zero"),
        ({"until": {**RSE, "rounds": 5}}, "more than 1 keys"),
        ({"until": {"steady_state": {**STEADY, "max_rounds": 4, "track": []}}}, "is empty; give at least one entry"),
        ({"until": {"steady_state": {**STEADY, "track": [{"read_share": 0, "metric": "iops"}]}}},
         r"track\[0\]': tracks read share 0, which matches 4 cells of the loop \(RND 4KiB 0/100 T4Q8, RND 4KiB"),
        ({"order": "cells", "until": {"steady_state": {**STEADY, "track": [
            {"read_share": 0, "threads": 4, "queue_depth": 8, "metric": "iops"}]}}},
         r"loop\.order': steady_state needs whole rounds"),
    ],
)  # fmt: skip
def test_invalid_loops_are_refused(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        steps(tmp_path, [loop(GRID, **fields)])


def test_a_soak_has_several_stop_rules(tmp_path: Path) -> None:
    rule = {"every": "30min", "window": 5, "data_excursion": "20%", "slope_excursion": "10%", "metric": "iops"}
    until = {"capacity_multiple": 4, "time": "24h", "steady_state": rule}
    (step,) = steps(tmp_path, [soak(until=until)])
    steady = {"every_s": 1800.0, **RULE, "metric": "iops"}
    assert step["until"] == {"capacity_multiple": 4, "time_s": 86400.0, "steady_state": steady}
    del rule["every"]
    (step,) = steps(tmp_path, [soak(until={"time": "1h", "steady_state": rule})])
    assert step["until"] == {"time_s": 3600.0, "steady_state": {**steady, "every_s": 60.0}}
    with pytest.raises(UserError, match=r"soak\.until': a drive that never becomes steady would be written forever"):
        steps(tmp_path, [soak(until={"steady_state": rule})])
    beside = {"pattern": "random", "read_share": 100, "block_size": "4KiB", "threads": 1, "queue_depth": 1}
    with pytest.raises(UserError, match="cannot end by volume"):
        steps(tmp_path, [soak(read_share=0, beside=beside, until={"capacity_multiple": 1})])
    for every in ("90s", "30s"):
        with pytest.raises(UserError, match=r"soak\.until\.steady_state': its spans of \d+ s are not a multiple"):
            steps(tmp_path, [soak(until={"steady_state": {**rule, "every": every}})])


def test_a_soak_lasts_at_least_a_slice(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, [soak(slice="5s", until={"time": "5s"})])
    assert step["cell"]["slice_s"] == step["until"]["time_s"] == 5.0
    with pytest.raises(UserError, match=r"soak\.slice': a slice of 60 s is longer than the soak of 59 s; shorten it"):
        steps(tmp_path, [soak(until={"time": "59s", "capacity_multiple": 1})])


def test_an_application_is_repeated_until_it_agrees(tmp_path: Path) -> None:
    rule = {"relative_standard_error": {"threshold": "5%", "metric": "duration_s"}}
    path = protocol(tmp_path, [{"application": {"cold_runs": 1, "until": rule}}])
    assert load(path).applications
    (step,) = steps(tmp_path, [{"application": {"cold_runs": 1, "until": rule}}])
    assert step == {"cold_runs": 1, "until": {"threshold": 0.05, "metric": "duration_s"}}
    (step,) = steps(tmp_path, [{"application": {"cold_runs": 0, "until": {"passes": 3}}}])
    assert step == {"cold_runs": 0, "until": {"passes": 3}}


@pytest.mark.parametrize(
    ("fields", "becomes"),
    [
        ({}, {}),
        ({"scenario": "recorded"}, {}),
        ({"scenario": "required"}, {"scenario_required": True}),
        ({"settle": "30s", "rest": "10min"}, {"settle_s": 30.0, "rest_s": 600.0}),
        ({"fill": {**PASS, "capacity_multiple": 2}}, {"fill": {**FILL, "capacity_multiple": 2}}),
        ({"fill": [{**PASS, "capacity_multiple": 1, "range": "50%"}, {**PASS, "raw_capacity_multiple": 1.5}]},
         {"fill": [{**FILL, "capacity_multiple": 1, "range_share": 0.5}, {**FILL, "raw_capacity_multiple": 1.5}]}),
        ({"fill": {**PASS, "capacity_multiple": 1, "range": "0%"}}, {}),
    ],
)  # fmt: skip
def test_conditions(tmp_path: Path, fields: dict[str, Any], becomes: dict[str, Any]) -> None:
    (measurement,) = resolved(tmp_path, [soak()], condition={"purge": "required", **fields})
    assert measurement.steps["condition"] == {"purge": "required", **becomes}
    assert needs_over_provisioning(measurement.steps) == ("raw" in str(becomes))


@pytest.mark.parametrize(
    ("fill", "reason"),
    [
        (PASS, r"condition\.fill': needs either"),
        ([{**PASS, "capacity_multiple": 1}, {**PASS, "capacity_multiple": 1, "raw_capacity_multiple": 1}],
         r"condition\.fill\[1\]': needs either"),
        ({**PASS, "capacity_multiple": 1, "range": "101%"}, r"condition\.fill\.range': 101% is out of bounds"),
        ([], "is empty; give at least one entry"),
    ],
)  # fmt: skip
def test_invalid_passes_are_refused(tmp_path: Path, fill: Any, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        resolved(tmp_path, [soak()], condition={"purge": "none", "fill": fill})


@pytest.mark.parametrize(
    ("key", "values", "variants", "expected"),
    [
        ("block_size", ["8KiB", "4KiB"], ["8KiB", "4KiB"], [("block_size_bytes", 8192), ("block_size_bytes", 4096)]),
        ("active_range", ["50%", "8GiB"], ["50pct", "8GiB"], [("range_share", 0.5), ("range_bytes", 8 << 30)]),
        ("segments", [1, 2048], ["1", "2048"], [("segments", 1), ("segments", 2048)]),
        ("read_share", [0, 100], ["0", "100"], [("read_share", 0), ("read_share", 100)]),
        ("workload", ["b", "a"], ["b", "a"], [("title", "bee"), ("title", "ay")]),
    ],
)
def test_a_protocol_is_repeated_for_each_value_of_any_key(
    tmp_path: Path, key: str, values: list[Any], variants: list[str], expected: list[tuple[str, Any]]
) -> None:
    workloads = {"a": {"title": "ay"}, "b": {"title": "bee"}}
    measurements = resolved(tmp_path, [soak(**{key: "each"})], workloads=workloads, for_each={key: values})
    assert [measurement.variant for measurement in measurements] == variants
    for measurement, (name, value) in zip(measurements, expected, strict=True):
        assert measurement.steps["measure"][0]["soak"]["cell"][name] == value


def test_each_reaches_the_class_the_fill_and_the_workloads(tmp_path: Path) -> None:
    fill = {"pattern": "random", "block_size": "each", "capacity_multiple": 1}
    (measurement,) = resolved(
        tmp_path, [soak()], for_each={"block_size": ["8KiB"]}, condition={"purge": "none", "fill": fill}
    )
    assert measurement.steps["condition"]["fill"]["block_size_bytes"] == 8192
    ranged = {**CLASS, "active_range": "each"}
    (measurement,) = resolved(tmp_path, [soak()], for_each={"active_range": ["25%"]}, class_=ranged)
    assert (
        measurement.steps["class"]["active_range"]
        == measurement.steps["measure"][0]["soak"]["cell"]["range_share"]
        == 0.25
    )
    workloads = {"a": {"pattern": "random", "read_share": 0, "block_size": "each"}}
    measure = [{"soak": {"workload": "a", "slice": "1s", "until": {"time": "5s"}}}]
    (measurement,) = resolved(tmp_path, measure, for_each={"block_size": ["2KiB"]}, workloads=workloads)
    assert measurement.steps["measure"][0]["soak"]["cell"]["block_size_bytes"] == 2048


def test_simultaneous_and_analysis_are_not_in_the_steps(tmp_path: Path) -> None:
    parts: dict[str, Any] = {"simultaneous": True, "analysis": {"figure_of_merit": "iops", "best_run": "score"}}
    loaded = load(protocol(tmp_path, [soak()], **parts, description="asks\nthis"))
    assert (loaded.simultaneous, loaded.analysis, loaded.description) == (True, parts["analysis"], "asks this")
    (measurement,) = resolved(tmp_path, [soak()], **parts)
    assert {*measurement.steps} == {"class", "condition", "measure"}
    plain = load(protocol(tmp_path, [soak()]))
    assert (plain.simultaneous, plain.analysis, plain.description, plain.applications) == (False, {}, "d", False)


def test_every_new_parameter_has_a_source(tmp_path: Path) -> None:
    parts: dict[str, Any] = {
        "workloads": {"a": {"threads": 1}}, "simultaneous": True, "analysis": {"best_run": "score"},
        "condition": {"purge": "none", "rest": "1s"},
    }  # fmt: skip
    path = protocol(tmp_path, [{"application": {"cold_runs": 0, "until": {"passes": 1}}}], **parts)
    text = path.read_text()
    for source, missing in (("workloads", r"workloads\.a\.threads"), ("simultaneous", "simultaneous"),
                            ("analysis", r"analysis\.best_run"), ("condition", r"condition\.purge"),
                            ("application", r"application\.cold_runs")):  # fmt: skip
        path.write_text(text.replace(f"  {source}: s\n", ""))
        with pytest.raises(UserError, match=f"made.yaml line \\d+: key 'sources': has no entry for '{missing}'"):
            load(path)


def test_fields_left_out_of_a_plan_have_defaults() -> None:
    assert fills({"purge": "none"}) == []
    assert fills({"fill": FILL}) == [FILL]
    assert fills({"fill": [FILL, FILL]}) == [FILL, FILL]
    assert pause_s({}, 60) == 0
    assert pause_s({"pause_s": 5.0}, 60) == 5
    assert pause_s({"duty_cycle": 0.25}, 60) == pytest.approx(180)
    assert pause_s({"duty_cycle": 1.0}, 60) == 0


@pytest.mark.parametrize(
    ("until", "least", "most"),
    [
        ({"window": 5, "max_rounds": 25}, 5, 25),
        ({"rounds": 7}, 7, 7),
        ({"threshold": 0.05, "metric": "iops"}, 3, 7),
        ({"passes": 2}, 2, 2),
    ],
)
def test_rounds_of_each_rule(until: dict[str, Any], least: int, most: int) -> None:
    assert (rounds_at_least(until), rounds_at_most(until)) == (least, most)
