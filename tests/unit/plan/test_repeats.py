"""Repeated steps: expanded pass by pass, and shortened by kind."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from made_protocols import protocol, soak

from drivelab.core.errors import UserError
from drivelab.plan.grammar import Resolved, load, resolve

IDLE = {"idle": {"time": "1s"}}
WORSE = {
    "phase": "worse", "over": {"time": ["10s", "1min"]},
    "steps": [soak(slice="1s", until={"time": "each"}), {"idle": {"time": "2s"}}],
}  # fmt: skip
BETTER = {"phase": "better", "times": 3, "steps": [{"idle": {"time": "5min"}}]}
SCALE = {"demo": {"repeat": [{"over": {"time": ["1s"]}, "soak": {"slice": "100ms"}},
                             {"times": 1, "idle": {"time": "1s"}}]}}  # fmt: skip


def phases(
    folder: Path, scale: str | None = None, worse: Any = WORSE, better: Any = BETTER, **settings: Any
) -> Resolved:
    measure = deepcopy([IDLE, {"repeat": worse}, {"repeat": better}])
    (measurement,) = resolve(load(protocol(folder, measure, scale=SCALE)), "client", scale, settings, "test")
    return measurement


def brief(measurement: Resolved) -> list[tuple[Any, ...]]:
    return [
        (kind, fields.get("time_s", fields.get("until", {}).get("time_s")), *map(fields.get, ("phase", "phase_pass")))
        for step in measurement.steps["measure"]
        for kind, fields in step.items()
    ]


@pytest.mark.parametrize(
    ("scale", "settings", "expected"),
    [
        (None, {}, [*((kind, time_s, "worse", number) for number, soak_s in ((1, 10), (2, 60))
                      for kind, time_s in (("soak", soak_s), ("idle", 2))),
                    *(("idle", 300, "better", number) for number in (1, 2, 3))]),
        ("demo", {}, [("soak", 1, "worse", 1), ("idle", 2, "worse", 1), ("idle", 1, "better", 1)]),
        ("demo", {"repeat": [{"times": 4, "soak": {"until": {"time": "3s"}}}, {}]},
         [*((kind, time_s, "worse", number) for number in (1, 2, 3, 4) for kind, time_s in (("soak", 3), ("idle", 2))),
          ("idle", 1, "better", 1)]),
    ],
)  # fmt: skip
def test_passes_are_expanded_with_their_phase(
    tmp_path: Path, scale: str | None, settings: dict[str, Any], expected: list[tuple[Any, ...]]
) -> None:
    """In the last one, a number of times replaces values."""
    measurement = phases(tmp_path, scale, **settings)
    assert brief(measurement) == [("idle", 1, None, None), *expected]
    first, second, *_ = measurement.steps["measure"]
    assert first == {"idle": {"time_s": 1.0}}, "a step that is not repeated has no phase"
    assert second["soak"]["cell"]["slice_s"] == (0.1 if scale else 1)


def test_a_change_of_a_kind_does_not_reach_into_repeats(tmp_path: Path) -> None:
    idle = [row[1] for row in brief(phases(tmp_path, idle={"time": "9s"})) if row[0] == "idle"]
    assert idle[:2] == [9, 2]


def test_shortened_repeats_are_described(tmp_path: Path) -> None:
    assert phases(tmp_path, "demo").altered == (
        "repeat over time: 1s instead of 10s, 1min",
        "repeat soak slice: 100ms instead of 1s",
        "repeat idle time: 2s; 1s instead of 2s; 5min",
        "repeat times: 1 instead of 3",
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"worse": {"phase": "worse", "steps": [IDLE]}}, r"measure\[1\]\.repeat': needs either"),
        ({"better": {**BETTER, "over": {"time": ["1s"]}}}, r"measure\[2\]\.repeat': needs either 'times' or 'over'"),
        ({"better": {**BETTER, "times": 0}}, r"measure\[2\]\.repeat\.times': 0 is below 1"),
        ({"better": {**BETTER, "phase": "Better one"}}, r"repeat\.phase"),
        ({"better": {**BETTER, "steps": []}}, "is empty; give at least one entry"),
        ({"better": {**BETTER, "steps": [{"repeat": {}}]}}, "unknown key 'repeat'"),
        ({"better": {**BETTER, "stpes": []}}, "unknown key 'stpes'; did you mean 'steps'"),
        ({"repeat": {"soak": {"slice": "1s"}}},
         r"set\.repeat\.soak': changes a step that the repeat of phase 'better'"),
        ({"repeat": [{"idle": 3}, {}]}, r"set\.repeat\[0\]\.idle': must be a mapping of the fields"),
        ({"repeat": 3}, r"set\.repeat': must be a mapping of the fields"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_their_place(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        phases(tmp_path, **change)


def test_changing_a_missing_repeat_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"set\.repeat': changes a step that the protocol does not have"):
        resolve(load(protocol(tmp_path, [IDLE])), "client", None, {"repeat": {"times": 2}}, "test")
