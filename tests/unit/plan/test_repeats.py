"""Repeated steps: expanded pass by pass, and shortened by kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from drivelab.core.errors import UserError
from drivelab.plan.grammar import load, resolve

SOAK = {"pattern": "random", "read_share": 0, "block_size": "4KiB-64KiB", "slice": "1s", "until": {"time": "each"}}


def protocol(folder: Path, change: Callable[[dict[str, Any]], object] = lambda body: None) -> Path:
    body: dict[str, Any] = {
        "name": "phases",
        "title": "t",
        "source": "s",
        "condition": {"purge": "none"},
        "measure": [
            {"idle": {"time": "1s"}},
            {"repeat": {"phase": "worse", "over": {"time": ["10s", "1min"]},
                        "steps": [{"soak": dict(SOAK)}, {"idle": {"time": "2s"}}]}},
            {"repeat": {"phase": "better", "times": 3, "steps": [{"idle": {"time": "5min"}}]}},
        ],
        "scale": {"demo": {"repeat": [{"over": {"time": ["1s"]}, "soak": {"slice": "100ms"}},
                                      {"times": 1, "idle": {"time": "1s"}}]}},
        "description": "d",
        "sources": {"condition": "s", "idle": "s", "repeat": "s"},
    }  # fmt: skip
    change(body)
    path = folder / "phases.yaml"
    path.write_text(yaml.safe_dump(body, sort_keys=False))
    return path


def steps(path: Path, scale: str | None = None, **settings: Any) -> list[tuple[str, dict[str, Any]]]:
    (measurement,) = resolve(load(path), "client", scale, settings, "test")
    return [item for step in measurement.steps["measure"] for item in step.items()]


def brief(resolved_steps: list[tuple[str, dict[str, Any]]]) -> list[tuple[Any, ...]]:
    return [
        (
            kind,
            fields.get("time_s", fields.get("until", {}).get("time_s")),
            fields.get("phase"),
            fields.get("phase_pass"),
        )
        for kind, fields in resolved_steps
    ]


def test_passes_are_expanded_with_their_phase(tmp_path: Path) -> None:
    assert brief(steps(protocol(tmp_path))) == [
        ("idle", 1.0, None, None),
        ("soak", 10.0, "worse", 1),
        ("idle", 2.0, "worse", 1),
        ("soak", 60.0, "worse", 2),
        ("idle", 2.0, "worse", 2),
        ("idle", 300.0, "better", 1),
        ("idle", 300.0, "better", 2),
        ("idle", 300.0, "better", 3),
    ]


def test_a_step_that_is_not_repeated_has_no_phase(tmp_path: Path) -> None:
    assert steps(protocol(tmp_path))[0] == ("idle", {"time_s": 1.0})


def test_a_scale_shortens_each_repeat(tmp_path: Path) -> None:
    resolved_steps = steps(protocol(tmp_path), "demo")
    assert brief(resolved_steps) == [
        ("idle", 1.0, None, None),
        ("soak", 1.0, "worse", 1),
        ("idle", 2.0, "worse", 1),
        ("idle", 1.0, "better", 1),
    ]
    assert resolved_steps[1][1]["cell"]["slice_s"] == 0.1


def test_a_scale_of_a_kind_does_not_reach_into_repeats(tmp_path: Path) -> None:
    assert [summary[1] for summary in brief(steps(protocol(tmp_path), idle={"time": "9s"})) if summary[0] == "idle"][
        :2
    ] == [9, 2]


def test_times_replaces_values(tmp_path: Path) -> None:
    fixed = {"times": 4, "soak": {"until": {"time": "3s"}}}
    summaries = brief(steps(protocol(tmp_path), repeat=[fixed, {}]))
    assert [summary for summary in summaries if summary[0] == "soak"] == [
        ("soak", 3.0, "worse", number) for number in (1, 2, 3, 4)
    ]


def test_shortened_repeats_are_described(tmp_path: Path) -> None:
    (measurement,) = resolve(load(protocol(tmp_path)), "client", "demo", {}, "test")
    assert measurement.altered == (
        "repeat over time: 1s instead of 10s, 1min",
        "repeat soak slice: 100ms instead of 1s",
        "repeat idle time: 2s; 1s instead of 2s; 5min",
        "repeat times: 1 instead of 3",
    )


def test_a_range_of_block_sizes_is_in_the_cell(tmp_path: Path) -> None:
    cell = steps(protocol(tmp_path))[1][1]["cell"]
    assert (cell["block_size_bytes"], cell["block_size_max_bytes"]) == (4096, 65536)


def repeat(number: int, **fields: Any) -> Callable[[dict[str, Any]], object]:
    def change(body: dict[str, Any]) -> None:
        body["measure"][number]["repeat"].update(fields)

    return change


def soak(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return repeat(1, steps=[{"soak": {**SOAK, **fields}}])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda body: body["measure"][0]["idle"].update(time="each"), r"idle\.time': is 'each', but"),
        (
            lambda body: body["measure"][1]["repeat"].pop("over"),
            r"measure\[1\]\.repeat': needs either",
        ),
        (repeat(2, over={"time": ["1s"]}), r"measure\[2\]\.repeat': needs either 'times' or 'over'"),
        (repeat(2, times=0), r"measure\[2\]\.repeat\.times': 0 is below 1"),
        (repeat(2, phase="Better one"), r"repeat\.phase"),
        (repeat(2, steps=[]), "is empty; give at least one entry"),
        (repeat(2, steps=[{"repeat": {}}]), "unknown key 'repeat'"),
        (repeat(2, stpes=[]), "unknown key 'stpes'; did you mean 'steps'"),
        (lambda body: body["sources"].pop("repeat"), r"no entry for 'repeat\.idle\.time'"),
        (soak(block_size="64KiB-4KiB"), "64KiB-4KiB is not a valid range"),
        (soak(block_size="4KiB-4KiB"), "4KiB-4KiB is not a valid range"),
        (soak(block_size="3KiB-64KiB"), "3KiB-64KiB is not a valid range"),
        (soak(block_size="4KiB-"), "block_size"),
    ],
)
def test_mistakes_are_reported_with_their_place(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    path = protocol(tmp_path, change)
    with pytest.raises(UserError, match=reason) as refusal:
        steps(path)
    assert "phases" in str(refusal.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"phase": "x"}, "'phase' of a repeat cannot be changed"),
        ([{}], "lists 1 changes for 2 steps"),
        (
            {"soak": {"slice": "1s"}},
            r"set\.repeat\.soak': changes a step that the repeat of phase 'better'",
        ),
        ([{"idle": 3}, {}], r"set\.repeat\[0\]\.idle': must be a mapping of the fields"),
        (3, r"set\.repeat': must be a mapping of the fields"),
    ],
)
def test_invalid_changes_are_refused(tmp_path: Path, change: Any, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        steps(protocol(tmp_path), repeat=change)


def test_changing_a_missing_repeat_is_refused(tmp_path: Path) -> None:
    path = protocol(
        tmp_path,
        lambda body: body.update(measure=body["measure"][:1], scale={}, sources={"condition": "s", "idle": "s"}),
    )
    with pytest.raises(UserError, match=r"set\.repeat': changes a step that the protocol does not have"):
        steps(path, repeat={"times": 2})
