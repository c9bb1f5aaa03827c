"""Replay settings, as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import MappingChoice, ReplayChoice, TimingChoice

CHOICES = {
    "original": ReplayChoice(),
    "scaled by 0.5": ReplayChoice(TimingChoice("scaled", factor=0.5)),
    "as soon as possible at the trace's depth": ReplayChoice(TimingChoice("asap")),
    "as soon as possible at depth 32, in order of the trace": ReplayChoice(
        TimingChoice("asap", depth=32), dependencies="trace"
    ),
    "idle capped at 100 ms, in order of process": ReplayChoice(
        TimingChoice("idle-capped", idle_cap_s=0.1), MappingChoice("compact", 4096, 1 << 20, 0), "process"
    ),
}


@pytest.mark.parametrize("description", CHOICES)
def test_a_choice_has_a_description_and_survives_json(description: str) -> None:
    choice = CHOICES[description]
    assert choice.words() == description
    assert ReplayChoice.from_mapping(json.loads(json.dumps(choice.to_mapping()))) == choice


def test_defaults_are_not_stored() -> None:
    assert ReplayChoice().to_mapping() == {
        "timing": {"mode": "original"}, "mapping": {"method": "auto"}, "dependencies": "none"
    }  # fmt: skip
    assert ReplayChoice.from_mapping({}) == ReplayChoice()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"timing": {"mode": "x3"}}, "replay timing 'x3' is unknown; choose one of original, scaled"),
        ({"timing": {"mode": "scaled"}}, "'scaled' needs a factor; give it, or choose another timing"),
        ({"timing": {"mode": "scaled", "factor": 0}}, "needs a factor above 0, not"),
        ({"timing": {"mode": "scaled", "factor": float("nan")}}, "needs a factor above 0, not"),
        ({"timing": {"mode": "scaled", "factor": "fast"}}, "needs a factor above 0, not"),
        ({"timing": {"mode": "idle-capped", "idle_cap_s": -1}}, "needs an idle cap above 0, not -1"),
        (
            {"timing": {"mode": "original", "factor": 2}},
            "'original' does not use a factor; remove it, or choose 'scaled'",
        ),
        ({"timing": {"mode": "original", "depth": 2}}, "does not use a depth"),
        ({"timing": {"mode": "asap", "depth": 0}}, "depth is 0; give a whole number from 1 to 4096"),
        ({"timing": {"mode": "asap", "depth": 4097}}, "depth is 4097"),
        ({"timing": {"mode": "asap", "depth": True}}, "depth is True"),
        ({"timing": {"mode": ["asap"]}}, "is unknown"),
        ({"timing": "asap"}, "write a mapping with the keys"),
        ({"mapping": {"method": "fold"}}, "replay mapping 'fold' is unknown"),
        ({"mapping": {"range_start_bytes": -1}}, "range_start_bytes is -1"),
        ({"mapping": {"range_bytes": 0}}, "range_bytes is 0"),
        ({"mapping": {"gap_bytes": 1.5, "method": "compact"}}, "gap_bytes is 1.5"),
        ({"mapping": {"gap_bytes": 0}}, "'auto' does not use gap_bytes"),
        ({"mapping": {"ratio": 2}}, "replay mapping: key 'ratio' is unknown; the keys are method"),
        ({"dependencies": "thread"}, "replay dependencies 'thread' is unknown"),
        ({"speed": 2}, "key 'speed' is unknown"),
    ],
)
def test_invalid_choices_are_refused(body: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError) as refused:
        ReplayChoice.from_mapping(body)
    assert problem in str(refused.value)
