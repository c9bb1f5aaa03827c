"""Cells of a protocol: every field, its form in a plan, combinations of lists, lists with shares, and labels."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_protocols import CLASS, STEADY, loop, protocol, resolved, soak, steps

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.plan.cell import Cell
from drivelab.plan.grammar import Resolved, load, resolve
from drivelab.plan.loop_cells import SWEPT, combinations
from drivelab.plan.value_types import MisfitError, block_sizes

PLAIN = {"pattern": "random", "read_share": 65, "block_size": "8KiB"}
PLAN = {"pattern": "random", "read_share": 65, "block_size_bytes": 8192, "threads": 2, "queue_depth": 16,
        "runtime_s": 60.0, "range_start": 0.0, "range_share": 0.75}  # fmt: skip


def cell(folder: Path, **fields: Any) -> dict[str, Any]:
    (resolved_cells,) = cells(folder, [{**PLAIN, **fields}])
    return resolved_cells


def cells(folder: Path, wanted: Any, **fields: Any) -> list[dict[str, Any]]:
    (step,) = steps(folder, [loop(wanted, **fields)])
    resolved_cells: list[dict[str, Any]] = step["cells"]
    return resolved_cells


def test_a_plain_cell_has_only_the_basic_fields(tmp_path: Path) -> None:
    assert cell(tmp_path) == PLAN
    assert cell(tmp_path, alignment_offset="0B", active_range="75%") == PLAN


@pytest.mark.parametrize(
    ("fields", "becomes"),
    [
        ({"title": "mail server"}, {"title": "mail server"}),
        ({"threads": 4, "queue_depth": 1}, {"threads": 4, "queue_depth": 1}),
        ({"block_size": "4KiB-16KiB"}, {"block_size_bytes": 4096, "block_size_max_bytes": 16384}),
        ({"block_size": {"8KiB": "25%", "512B": "75%"}},
         {"block_size_bytes": 512, "block_sizes": [{"block_size_bytes": 512, "share": 0.75},
                                                   {"block_size_bytes": 8192, "share": 0.25}]}),
        ({"block_size": {"8KiB": "100%"}}, {}),
        ({"active_range": "12.5%"}, {"range_share": 0.125}),
        ({"active_range": "1GiB"}, {"range_share": 1.0, "range_bytes": 1 << 30}),
        ({"segments": 2048}, {"segments": 2048}),
        ({"access": {"zipf": 1.2}}, {"zipf": 1.2}),
        ({"access": [{"range": "5%", "share": "50%"}, {"range": "95%", "share": "50%"}]},
         {"zones": [{"range_share": 0.05, "share": 0.5}, {"range_share": 0.95, "share": 0.5}]}),
        ({"align": "4KiB"}, {"alignment_bytes": 4096}),
        ({"alignment_offset": "512B"}, {"alignment_offset_bytes": 512}),
        ({"rate_iops": 500}, {"rate_iops": 500.0}),
        ({"entropy": "50%"}, {"entropy": 0.5}),
        ({"entropy": "0%"}, {"entropy": 0.0}),
        ({"queue_depth": 8, "registered": True, "batch": 8, "polled": True},
         {"queue_depth": 8, "registered": True, "batch": 8, "polled": True}),
        ({"reuse_buffers": True}, {"reuse_buffers": True}),
        ({"nvme": True}, {"nvme": True}),
        ({"active_range": "25%-100%"}, {"range_start": 0.25, "range_share": 0.75}),
        ({"beside": [{"pattern": "random", "read_share": 65, "block_size": "8KiB", "threads": 2, "queue_depth": 2},
                     {"title": "clean-up", "pattern": "sequential", "operation": "trim", "block_size": "1MiB",
                      "threads": 1, "queue_depth": 1, "rate_iops": 5}]},
         {"beside": [{"pattern": "random", "read_share": 65, "block_size_bytes": 8192, "threads": 2, "queue_depth": 2},
                     {"title": "clean-up", "pattern": "sequential", "operation": "trim", "block_size_bytes": 1 << 20,
                      "threads": 1, "queue_depth": 1, "rate_iops": 5.0, "read_share": 0}]}),
        ({"read_share": 0, "beside": {"pattern": "sequential", "read_share": 100, "block_size": "1MiB", "threads": 1,
                                      "queue_depth": 2}},
         {"read_share": 0, "beside": {"pattern": "sequential", "read_share": 100, "block_size_bytes": 1 << 20,
                                      "threads": 1, "queue_depth": 2}}),
        ({"runtime": "5s"}, {"runtime_s": 5.0}),
    ],
)  # fmt: skip
def test_every_field_is_resolved_in_the_plan(tmp_path: Path, fields: dict[str, Any], becomes: dict[str, Any]) -> None:
    resolved_cell = cell(tmp_path, **fields)
    assert resolved_cell == {**PLAN, **becomes}
    assert Cell(**resolved_cell).to_mapping() == resolved_cell
    assert Cell(**resolved_cell).label


def test_a_soak_takes_the_same_fields(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, [soak(block_size={"4KiB": "60%", "8KiB": "40%"}, alignment_offset="512B", threads=1)])
    assert step["cell"]["slice_s"] == 60.0
    assert "runtime_s" not in step["cell"]
    assert step["cell"]["alignment_offset_bytes"] == 512
    assert [entry["share"] for entry in step["cell"]["block_sizes"]] == [0.6, 0.4]


def test_a_workload_gives_defaults_for_a_cell(tmp_path: Path) -> None:
    """The cell overrides its workload, the workload the loop, the loop the class."""
    (step,) = steps(
        tmp_path,
        [loop({"workload": ["web", "log"], "read_share": [100, 90]}, threads=3, queue_depth=7, pattern="random")],
        workloads={
            "web": {"block_size": "4KiB", "read_share": 1, "queue_depth": 2, "title": "web"},
            "log": {"block_size": "1MiB", "pattern": "sequential"},
        },
    )
    brief = [(c.get("title"), c["pattern"], c["read_share"], c["threads"], c["queue_depth"]) for c in step["cells"]]
    assert brief == [
        ("web", "random", 100, 3, 2), ("web", "random", 90, 3, 2),
        (None, "sequential", 100, 3, 7), (None, "sequential", 90, 3, 7),
    ]  # fmt: skip


def test_entries_of_a_list_are_combined_each_by_itself(tmp_path: Path) -> None:
    resolved_cells = cells(
        tmp_path, [{**PLAIN, "threads": [4, 1], "queue_depth": [8, 2]}, {**PLAIN, "read_share": [100, 0]}]
    )
    assert [(c["threads"], c["queue_depth"], c["read_share"]) for c in resolved_cells] == [
        (4, 8, 65), (4, 2, 65), (1, 8, 65), (1, 2, 65), (2, 16, 100), (2, 16, 0),
    ]  # fmt: skip


def test_every_listed_field_may_be_a_list(tmp_path: Path) -> None:
    values: dict[str, list[Any]] = {
        "pattern": ["random", "sequential"], "read_share": [0, 100], "block_size": ["4KiB", "4KiB-8KiB"],
        "threads": [1, 2], "queue_depth": [1, 2], "segments": [1, 2], "align": ["4KiB", "8KiB"],
        "alignment_offset": ["0B", "512B"], "rate_iops": [1, 2.5], "entropy": ["0%", "50%"],
        "active_range": ["50%", "50%-100%"],
    }  # fmt: skip
    assert {*values, "workload"} == {*SWEPT}
    for key, both in values.items():
        assert len(cells(tmp_path, {**PLAIN, key: both})) == 2


@settings(deadline=None)
@given(st.lists(st.sampled_from(SWEPT), unique=True, min_size=1), st.data())
def test_combinations_are_the_product_in_the_order_of_the_keys(keys: list[str], data: st.DataObject) -> None:
    grid = {key: data.draw(st.lists(st.integers(), min_size=1, max_size=3, unique=True)) for key in keys}
    fixed = {"title": "t"}
    combined = list(combinations({**fixed, **grid}))
    assert combined == [
        {**fixed, **dict(zip(keys, combination, strict=True))} for combination in itertools.product(*grid.values())
    ]


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 64), st.integers(1, 50), min_size=2, max_size=8))
def test_distributions_keep_their_shares(weights: dict[int, int]) -> None:
    total = sum(weights.values())
    shares = {format_size(512 * size): 100 * weight / total for size, weight in weights.items()}
    resolved_sizes = block_sizes({size: f"{share:.9f}%" for size, share in shares.items()})
    sizes = [entry["block_size_bytes"] for entry in resolved_sizes["block_sizes"]]
    assert sizes == sorted(512 * size for size in weights)
    assert resolved_sizes["block_size_bytes"] == sizes[0]
    assert sum(entry["share"] for entry in resolved_sizes["block_sizes"]) == pytest.approx(1)
    for entry in resolved_sizes["block_sizes"]:
        assert entry["share"] == pytest.approx(weights[entry["block_size_bytes"] // 512] / total)
    with pytest.raises(MisfitError, match="add up to"):
        block_sizes({size: f"{share / 2:.9f}%" for size, share in shares.items()})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"workload": "web"}, r"workload': workload 'web' does not exist; 'workloads' has: none"),
        ({"block_size": {"4": "100%"}}, "'4' does not match"),
        ({"access": [{"range": "50%", "share": "50%"}, {"range": "50%", "share": "40%"}]}, "shares of the zones add"),
        ({"block_size": "4KiB-4KiB"}, "4KiB-4KiB is not a valid range"),
        ({"block_size": "3KiB-64KiB"}, "3KiB-64KiB is not a valid range"),
        ({"block_size": "4KiB-"}, "block_size"),
        ({"access": {"zipf": 0}}, "zipf"),
        ({"alignment_offset": "100B"}, r"cells\[0\]\.alignment_offset': 100B is not a multiple of 512 B"),
        ({"alignment_offset": ["512B", "513B"]}, r"alignment_offset': 513B is not a multiple"),
        ({"align": "8KiB", "pattern": "sequential", "block_size": "4KiB"}, r"cells\[0\]\.align': .* are adjacent"),
        ({"rate_iops": 10, "block_size": "4KiB-8KiB"}, "several block sizes give no fixed rate"),
        ({"active_range": "101%"}, "active range 101% is out of bounds"),
        ({"active_range": "50%-50%"}, "choose two ascending shares"),
        ({"entropy": "101%"}, r"entropy': 101% is out of bounds; choose a share from 0% up to 100%"),
        ({"rate_iops": 0}, "rate_iops"),
        ({"threads": "each"}, r"threads': is 'each', but"),
        ({"threads": "many"}, r"threads': 'many' is not 'each'"),
        ({"beside": {"pattern": "random", "block_size": "4KiB", "threads": 1, "queue_depth": 1}},
         "either a 'read_share' or 'operation: trim'"),
        ({"beside": [{"pattern": "random", "read_share": 0, "operation": "trim", "block_size": "4KiB", "threads": 1,
                      "queue_depth": 1}]}, "either a 'read_share' or 'operation: trim'"),
        ({"beside": {"read_share": 100}}, "'pattern' is missing"),
    ],
)  # fmt: skip
def test_invalid_cells_are_refused(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason) as refusal:
        cell(tmp_path, **fields)
    assert "key 'measure[0].loop.cells[0]" in str(refusal.value)


def test_cells_that_differ_only_in_runtime_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the loop has RND 8KiB 65/35 T2Q16 twice"):
        cells(tmp_path, [PLAIN, {**PLAIN, "runtime": "5s"}])
    with pytest.raises(UserError, match="give all cells one or the other"):
        cells(tmp_path, [{**PLAIN, "share": "5%"}, {**PLAIN, "read_share": 0, "runtime": "5s", "share": "5%"}])


def test_a_range_of_the_class_may_be_a_size(tmp_path: Path) -> None:
    (measurement,) = resolved(tmp_path, [soak()], class_={**CLASS, "active_range": "8GiB"})
    assert measurement.steps["class"] == {**CLASS, "active_range": 1.0, "range_bytes": 8 << 30, "name": "client"}
    assert measurement.steps["measure"][0]["soak"]["cell"]["range_bytes"] == 8 << 30
    (measurement,) = resolved(tmp_path, [soak(active_range="50%")], class_={**CLASS, "active_range": "8GiB"})
    cell = measurement.steps["measure"][0]["soak"]["cell"]
    assert (cell["range_share"], "range_bytes" in cell) == (0.5, False)


@pytest.mark.parametrize("name", ["each", "a b", "-a", "a_b"])
def test_names_of_workloads_become_parts_of_paths(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"key 'workloads': .* \(letters, digits and hyphens"):
        resolved(tmp_path, [soak()], workloads={name: {"threads": 1}})


def test_labels_and_the_largest_block() -> None:
    cell = Cell("random", 65, 4096, threads=4, queue_depth=32)
    wide = replace(cell, block_size_max_bytes=1 << 20)
    sequential = Cell("sequential", 100, 131072, threads=1, queue_depth=1)
    labels = ["RND 4KiB 65/35 T4Q32", "RND 4KiB-1024KiB 65/35 T4Q32", "SEQ 128KiB 100/0 T1Q1"]
    assert [shown.label for shown in (cell, wide, sequential)] == labels
    assert [shown.largest_block_bytes for shown in (cell, wide)] == [4096, 1 << 20]


LIST: list[dict[str, Any]] = [
    {"pattern": "random", "read_share": 0, "block_size": "4KiB", "queue_depth": 7, "share": "60%"},
    {"pattern": "sequential", "read_share": 0, "block_size": "4KiB", "share": "20%"},
    {"pattern": "random", "read_share": 100, "block_size": "4KiB", "threads": 3, "share": "0.01%"},
]


def test_shares_divide_the_round_and_the_smallest_gets_a_tenth_of_the_runtime(tmp_path: Path) -> None:
    listed = cells(tmp_path, LIST)
    places = [(c["pattern"], c["read_share"], c["queue_depth"], c["threads"]) for c in listed]
    assert places == [("random", 0, 7, 2), ("sequential", 0, 16, 2), ("random", 100, 16, 3)]
    assert [c["runtime_s"] for c in listed] == pytest.approx([134.983, 44.994, 6.0], abs=2e-3)
    (demo,) = steps(tmp_path, [loop(LIST)], "demo", scale={"demo": {"loop": {"runtime": "1s"}}})
    assert [c["runtime_s"] for c in demo["cells"]] == pytest.approx([2.25, 0.75, 0.1], abs=1e-3)
    equal = [{key: value for key, value in wanted.items() if key != "share"} for wanted in LIST]
    assert [c["runtime_s"] for c in cells(tmp_path, equal)] == [60.0] * 3


def test_a_study_may_replace_the_list_by_a_list_or_grid(tmp_path: Path) -> None:
    def changed(**change: Any) -> Resolved:
        return resolve(load(protocol(tmp_path, [loop(LIST)])), "client", None, {"loop": change}, "test")[0]

    one = changed(cells=LIST[:1])
    assert len(one.steps["measure"][0]["loop"]["cells"]) == 1
    assert one.altered[0].startswith("loop cells: random 0 4KiB 7 60% instead of random 0 4KiB 7 60%, sequential 0")
    grid = changed(pattern="random", cells={"read_share": [0], "block_size": ["8KiB", "4KiB"]})
    assert [c["block_size_bytes"] for c in grid.steps["measure"][0]["loop"]["cells"]] == [8192, 4096]


@pytest.mark.parametrize(
    ("wanted", "fields", "reason"),
    [
        (LIST, {"pattern": "random"}, "remove the loop's"),
        (LIST, {"until": {"steady_state": {**STEADY, "track": [{"pattern": "sequential", "read_share": 100,
                                                                "metric": "iops"}]}}}, "sequential access, read share"),
        ([{"read_share": 0, "block_size": "4KiB"}], {}, r"cells\[0\]': 'pattern' is missing"),
        ([], {}, "is empty; give at least one entry"),
        ({"read_share": [0], "block_size": ["4KiB"]}, {}, "'pattern' is missing"),
        ({"read_share": [0]}, {"pattern": "random"}, "'block_size' is missing"),
        ("all", {}, "is not of type"),
    ],
)  # fmt: skip
def test_invalid_lists_and_grids_are_refused(tmp_path: Path, wanted: Any, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        cells(tmp_path, wanted, **fields)
