"""Repeats over values, and over points from an earlier loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_protocols import loop, soak, steps

from drivelab.core.errors import UserError

SWEEP = {"pattern": "random", "read_share": [0, 40], "block_size": "4KiB", "threads": [4, 1], "queue_depth": [8, 1]}
READS = {"pattern": "random", "read_share": 100, "block_size": "4KiB"}
DEMAND = {"threads": "each", "queue_depth": "each"}


def repeat(over: dict[str, Any], *inner: dict[str, Any]) -> dict[str, Any]:
    return {"repeat": {"phase": "phase", "over": over, "steps": list(inner)}}


def points(**other: Any) -> dict[str, Any]:
    return {"point": ["max", "mid", "min"], "of": {"read_share": 40}, "response_time": "5ms", **other}


@pytest.mark.parametrize(
    ("key", "values", "field", "expected"),
    [
        ("read_share", [100, 0], "read_share", [100, 0]),
        ("block_size", ["8KiB", "4KiB"], "block_size_bytes", [8192, 4096]),
        ("queue_depth", [1, 32], "queue_depth", [1, 32]),
        ("threads", [4, 1], "threads", [4, 1]),
        ("workload", ["b", "a"], "title", ["bee", "ay"]),
        ("alignment_offset", ["1KiB", "512B"], "alignment_offset_bytes", [1024, 512]),
    ],
)
def test_steps_are_repeated_over_any_key(
    tmp_path: Path, key: str, values: list[Any], field: str, expected: list[Any]
) -> None:
    workloads = {"a": {"title": "ay"}, "b": {"title": "bee"}}
    repeated_steps = steps(tmp_path, [repeat({key: values}, soak(**{key: "each"}), loop([{**SWEEP, key: "each"}]))],
                           workloads=workloads)  # fmt: skip
    assert [step["cell"][field] for step in repeated_steps[::2]] == expected
    assert all(
        cell[field] == value
        for step, value in zip(repeated_steps[1::2], expected, strict=True)
        for cell in step["cells"]
    )
    assert [step["phase_value"] for step in repeated_steps[::2]] == [str(value) for value in values]
    assert [step["phase_pass"] for step in repeated_steps] == [1, 1, 2, 2]


def test_times_reach_idle_soaks_and_pauses(tmp_path: Path) -> None:
    written = soak(slice="1s", until={"time": "each"})
    repeated = repeat({"time": ["5s", "10s"]}, {"idle": {"time": "each"}}, written, loop(SWEEP, pause="each"))
    repeated_steps = steps(tmp_path, [repeated])
    assert [step["time_s"] for step in repeated_steps[::3]] == [5.0, 10.0]
    assert [step["until"]["time_s"] for step in repeated_steps[1::3]] == [5.0, 10.0]
    assert [step["pause_s"] for step in repeated_steps[2::3]] == [5.0, 10.0]
    assert [step["phase_value"] for step in repeated_steps[::3]] == ["5s", "10s"]


def test_a_repeat_overrides_for_each(tmp_path: Path) -> None:
    measure = [soak(block_size="each"), repeat({"block_size": ["8KiB"]}, soak(block_size="each"))]
    repeated_steps = steps(tmp_path, measure, for_each={"block_size": ["4KiB"]})
    assert [step["cell"]["block_size_bytes"] for step in repeated_steps] == [4096, 8192]


def test_points_come_from_the_nearest_loop_before(tmp_path: Path) -> None:
    """Threads and depth stay open; a step with its own values is not at a point."""
    inner = [soak(**DEMAND), loop({**SWEEP, **DEMAND}), soak()]
    resolved_steps = steps(
        tmp_path, [loop([{**SWEEP, "runtime": "5s"}]), soak(), loop(SWEEP), repeat(points(), *inner)]
    )
    assert len(resolved_steps) == 3 + 9
    for number, name in enumerate(("max", "mid", "min")):
        at_point, swept, beside = resolved_steps[3 + 3 * number : 6 + 3 * number]
        point = {"name": name, "step": 2, "of": {"read_share": 40}, "response_time_us": 5000.0}
        assert at_point["point"] == swept["point"] == point
        assert "point" not in beside
        assert not {"threads", "queue_depth"} & {*at_point["cell"]}
        assert len(swept["cells"]) == 2
        assert all(not {"threads", "queue_depth"} & {*cell} for cell in swept["cells"])
        assert (at_point["phase_value"], at_point["phase_pass"]) == (name, number + 1)


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        ([repeat(points(), soak(**DEMAND))], r"measure\[0\]\.repeat\.over\.point': no earlier loop provides points"),
        ([repeat(points(), soak(**DEMAND)), loop(SWEEP)], r"no earlier loop provides points"),
        ([loop(SWEEP), repeat(points(of={"read_share": 7}), soak(**DEMAND))],
         r"measure\[1\]\.repeat\.over\.of': read share 7 matches no cell of the loop before"),
        ([loop(SWEEP), repeat(points(of={"block_size": "4KiB"}), soak(**DEMAND))],
         r"over\.of': block size 4KiB matches several cells of the loop before \(RND 4KiB 0/100 T4Q8, RND 4KiB 40"),
        ([loop(SWEEP), repeat(points(), loop({**SWEEP, **DEMAND})), repeat(points(), soak(**DEMAND))],
         r"measure\[2\].*the loop before uses a point itself"),
        ([loop({"streams": "individual", "most": 9}), repeat(points(), soak(**DEMAND))], "trace's streams"),
        ([loop(SWEEP), repeat({"point": ["max"]}, soak(**DEMAND))], r"repeat\.over'.*which also needs 'of'"),
        ([loop(SWEEP), repeat(points(point=["max", "best"]), soak(**DEMAND))], "'best' is not one of max, mid, min"),
        ([repeat({"time": ["1s"], "threads": [1]}, soak())], r"measure\[0\]\.repeat\.over': needs values of exactly"),
        ([repeat({"threads": [1]}, soak(**DEMAND))], r"soak\.queue_depth': is 'each', but"),
        ([repeat({"threads": [1, 1]}, soak(threads="each"))], "contains a duplicate entry"),
        ([soak(slice="each")], "slice"),
        ([loop(SWEEP), repeat(points(), soak(beside={**READS, **DEMAND}))], r"soak\.beside': a point applies only"),
    ],
)  # fmt: skip
def test_invalid_repeats_are_refused(tmp_path: Path, measure: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        steps(tmp_path, measure)
