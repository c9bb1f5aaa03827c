"""Unused values of `for_each` and repeats, and sources without a parameter, are refused with their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_protocols import CLASS, loop, protocol, resolved, soak, steps

from drivelab.core.errors import UserError
from drivelab.plan.grammar import load, resolve

SWEEP = {"pattern": "random", "read_share": [0, 40], "block_size": "4KiB", "threads": [4, 1], "queue_depth": [8, 1]}
PLAIN = {"pattern": "random", "read_share": 0, "block_size": "4KiB"}
BESIDE = {**PLAIN, "read_share": 100, "block_size": "each", "threads": 1, "queue_depth": 1}
POINTS = {"point": ["max", "min"], "of": {"read_share": 40}, "response_time": "5ms"}
DEMAND = {"threads": "each", "queue_depth": "each"}
IDLE = {"idle": {"time": "1s"}}
TAKES = {"workload": "w", "slice": "1s", "until": {"time": "5s"}}


def repeat(over: dict[str, Any], *inner: dict[str, Any]) -> dict[str, Any]:
    return {"repeat": {"phase": "phase", "over": over, "steps": list(inner)}}


@pytest.mark.parametrize(
    ("measure", "parts", "reason"),
    [
        ([repeat({"time": ["1s", "6s"]}, soak(), IDLE)], {}, r"measure\[0\]\.repeat\.over': has values of 'time'"),
        ([loop(SWEEP), repeat(POINTS, soak())], {},
         "has values of 'point' that no field uses; write 'threads: each' and 'queue_depth: each' where"),
        ([loop(SWEEP), repeat(POINTS, loop(SWEEP, **DEMAND))], {}, "has values of 'point'"),
        ([repeat({"block_size": ["4KiB"]}, soak())], {}, "'block_size: each' where they belong"),
        ([repeat({"workload": ["w"]}, {"soak": TAKES})], {"workloads": {"w": PLAIN}}, "has values of 'workload'"),
        ([repeat({"threads": [1, 2]}, soak(workload="w", threads=1))], {"workloads": {"w": {"threads": "each"}}},
         "has values of 'threads'"),
        ([repeat({"threads": [1, 2]}, soak())], {"workloads": {"w": {"threads": "each"}}}, "values of 'threads'"),
        ([soak()], {"for_each": {"block_size": ["4KiB", "8KiB"]}}, r"key 'for_each': has values of 'block_size'"),
        ([soak()], {"for_each": {"active_range": ["50%"]}}, r"key 'for_each': has values of 'active_range'"),
        ([soak()], {"for_each": {"block_size": ["4KiB"]}, "workloads": {"w": {"block_size": "each"}}}, "'for_each'"),
        ([repeat({"block_size": ["4KiB"]}, soak(block_size="each"))], {"for_each": {"block_size": ["8KiB"]}},
         r"key 'for_each': has values"),
    ],
)  # fmt: skip
def test_unused_values_are_refused(
    tmp_path: Path, measure: list[dict[str, Any]], parts: dict[str, Any], reason: str
) -> None:
    path = protocol(tmp_path, measure, **parts)
    with pytest.raises(UserError, match=reason) as refusal:
        load(path)
    key = "for_each:" if "for_each" in reason else "over:"
    (line,) = (number for number, text_line in enumerate(path.read_text().splitlines(), 1) if text_line.strip() == key)
    assert str(refusal.value).startswith(f"{path} line {line}: ")


@pytest.mark.parametrize(
    ("measure", "parts"),
    [
        ([repeat({"time": ["1s"]}, IDLE, soak(slice="1s", until={"time": "each"}))], {}),
        ([repeat({"time": ["1s"]}, loop(SWEEP, pause="each"))], {}),
        ([loop(SWEEP), repeat(POINTS, soak(), loop({**PLAIN, "read_share": [0, 40]}, **DEMAND))], {}),
        ([loop(SWEEP), repeat(POINTS, {"soak": {**TAKES, "queue_depth": "each"}})],
         {"workloads": {"w": {**PLAIN, "threads": "each"}}}),
        ([repeat({"block_size": ["4KiB"]}, {"soak": TAKES})], {"workloads": {"w": {**PLAIN, "block_size": "each"}}}),
        ([loop({"workload": ["v", "w"], "read_share": 0}, threads=1)],
         {"workloads": {"v": PLAIN, "w": {**PLAIN, "block_size": "each"}}, "for_each": {"block_size": ["8KiB"]}}),
        ([repeat({"workload": ["w"]}, soak(workload="each"))], {"workloads": {"w": PLAIN}}),
        ([repeat({"workload": ["v"]}, soak(workload="each"), soak(workload="each"))],
         {"workloads": {"v": PLAIN}}),
        ([soak(workload="each"), repeat({"time": ["1s"]}, {"idle": {"time": "each"}})],
         {"for_each": {"workload": ["w"]}, "workloads": {"w": {"title": "t"}}}),
        ([loop([PLAIN, {**PLAIN, "read_share": 0, "threads": 1, "beside": BESIDE}])],
         {"for_each": {"block_size": ["8KiB"]}}),
        ([soak()], {"for_each": {"active_range": ["50%", "60%"]}, "class_": {**CLASS, "active_range": "each"}}),
        ([soak()], {"for_each": {"block_size": ["8KiB"]}, "condition": {
            "purge": "none", "fill": [{"pattern": "random", "block_size": "each", "capacity_multiple": 1}]}}),
        ([loop(SWEEP), repeat({**POINTS, "of": {"read_share": "each"}}, soak(**DEMAND))],
         {"for_each": {"read_share": [0, 40]}}),
    ],
)  # fmt: skip
def test_used_values_are_accepted(tmp_path: Path, measure: list[dict[str, Any]], parts: dict[str, Any]) -> None:
    assert resolved(tmp_path, measure, **parts)


@pytest.mark.parametrize("inner", [soak(threads="each"), loop({**PLAIN, "read_share": [0, 40], "queue_depth": "each"})])
def test_a_point_for_only_one_field_is_refused(tmp_path: Path, inner: dict[str, Any]) -> None:
    """It is refused even next to a step that uses both fields."""
    (kind,) = inner
    reason = rf"measure\[1\]\.repeat\.steps\[1\]\.{kind}': takes only one of 'threads' and 'queue_depth' from a point"
    with pytest.raises(UserError, match=reason):
        steps(tmp_path, [loop(SWEEP), repeat(POINTS, soak(**DEMAND), inner)])


def test_a_scale_or_study_that_leaves_values_unused_is_named(tmp_path: Path) -> None:
    measure = [repeat({"time": ["5s", "10s"]}, soak(slice="1s", until={"time": "each"}))]
    fixed = {"repeat": {"soak": {"until": {"time": "3s"}}}}
    with pytest.raises(UserError, match=r"key 'scale\.demo.*has values of 'time' that no field uses"):
        resolved(tmp_path, measure, "demo", scale={"demo": fixed})
    with pytest.raises(UserError, match=r"key 'set.*has values of 'time' that no field uses"):
        resolve(load(protocol(tmp_path, measure)), "client", None, fixed, "test")


def with_source(folder: Path, source: str, measure: list[dict[str, Any]], **parts: Any) -> tuple[Path, int]:
    """Return a protocol with one more source, and the number of its line, which is the last."""
    path = protocol(folder, measure, **parts)
    path.write_text(path.read_text() + f"  {source}: s\n")
    return path, len(path.read_text().splitlines())


@pytest.mark.parametrize(
    "source", ["loop.runtme", "loop.cells.threads", "soak", "class.client.treads", "condition.rest", "repeat", "lo"]
)
def test_a_source_without_a_parameter_is_refused(tmp_path: Path, source: str) -> None:
    path, line = with_source(tmp_path, source, [loop(PLAIN)], scale={"demo": {"settle": "1s", "loop": {"pause": "1s"}}})
    with pytest.raises(UserError, match=f"key 'sources': '{source}' is not a parameter of this protocol") as refusal:
        load(path)
    assert str(refusal.value).startswith(f"{path} line {line}: ")


@pytest.mark.parametrize(
    "source",
    ["loop.runtime", "loop.until", "loop.cells.block_size", "loop.cells.access.range", "condition.fill.queue_depth",
     "class.client", "condition.settle", "condition.rest", "loop.pause", "workloads.w.threads"],
)  # fmt: skip
def test_sources_of_parameters_are_accepted(tmp_path: Path, source: str) -> None:
    """They may refer to entries of a list, and to parameters that only a scale has."""
    cells = [{**PLAIN, "access": [{"range": "100%", "share": "100%"}]}]
    fill = [{"pattern": "random", "block_size": "4KiB", "capacity_multiple": 1, "queue_depth": 32}]
    demo = {"loop": {"pause": "1s"}, "workloads": {"w": {"threads": 1}}}
    scale = {"long": {"settle": "1s", "rest": "1s"}, "demo": demo}
    load(with_source(tmp_path, source, [loop(cells)], condition={"purge": "none", "fill": fill}, scale=scale)[0])


def test_an_invalid_scale_is_not_reported_as_a_stale_source(tmp_path: Path) -> None:
    scale = {"demo": {"rest": "1s", "soak": {"slice": "1s"}}}
    path, _ = with_source(tmp_path, "condition.rest", [loop(PLAIN)], scale=scale)
    with pytest.raises(UserError, match=r"key 'scale\.demo\.soak': changes a step that the protocol does not have"):
        load(path)
