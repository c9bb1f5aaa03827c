"""The replay step: every key of the grammar, its form in a plan, in words and as JSON, and invalid replays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_protocols import protocol

from drivelab.core.errors import UserError
from drivelab.plan.grammar import load, resolve
from drivelab.plan.places import ROOT
from drivelab.plan.replay_choice import (
    DEPENDENCIES,
    METHODS,
    MOST_IN_FLIGHT,
    TIMINGS,
    MappingChoice,
    ReplayChoice,
    TimingChoice,
)
from drivelab.plan.yaml_file import load_yaml

RULE = {"relative_standard_error": {"threshold": "5%", "metric": "access_time_us"}}


def replay(folder: Path, settings: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    path = protocol(folder, [{"replay": {"timing": "original", "cold_runs": 1, "until": RULE, **fields}}])
    (measurement,) = resolve(load(path), "client", None, {"replay": settings} if settings else {}, "test")
    step: dict[str, Any] = measurement.steps["measure"][0]["replay"]
    return step


def test_defaults_are_the_most_faithful_replay(tmp_path: Path) -> None:
    choice = {"timing": {"mode": "original"}, "mapping": {"method": "auto"}, "dependencies": "none"}
    assert replay(tmp_path) == {
        "choice": choice,
        "engine": "native",
        "prefill": "none",
        "watched": "cold",
        "on_error": "stop",
        "depth_limit": MOST_IN_FLIGHT,
        "cold_runs": 1,
        "until": {"threshold": 0.05, "metric": "access_time_us"},
    }
    assert ReplayChoice().to_mapping() == choice
    assert ReplayChoice.from_mapping({}) == ReplayChoice()


IN_ORDER = ReplayChoice(TimingChoice("asap", depth=32), dependencies="trace")
CAPPED = ReplayChoice(TimingChoice("idle-capped", idle_cap_s=0.1), MappingChoice("compact"))
OF_PROCESSES = ReplayChoice(TimingChoice("scaled", factor=0.5), MappingChoice("compact", 4096, 1 << 20, 0), "process")


@pytest.mark.parametrize(
    ("fields", "choice", "words"),
    [
        ({"timing": "original"}, ReplayChoice(), "original"),
        ({"timing": "asap"}, ReplayChoice(TimingChoice("asap")), "as soon as possible at the trace's depth"),
        ({"timing": {"asap": 32}, "dependencies": "trace"}, IN_ORDER,
         "as soon as possible at depth 32, in order of the trace"),
        ({"timing": {"scaled": 2}}, ReplayChoice(TimingChoice("scaled", factor=2.0)), "scaled by 2"),
        ({"timing": {"idle-capped": "100ms"}, "mapping": "compact"}, CAPPED, "idle capped at 100 ms"),
        (None, OF_PROCESSES, "scaled by 0.5, in order of process"),
    ],
)  # fmt: skip
def test_a_choice_has_a_form_in_plans_and_in_words(
    tmp_path: Path, fields: dict[str, Any] | None, choice: ReplayChoice, words: str
) -> None:
    """The last one has no form in protocols."""
    if fields is not None:
        assert ReplayChoice.from_mapping(replay(tmp_path, **fields)["choice"]) == choice
    assert choice.words() == words
    assert ReplayChoice.from_mapping(json.loads(json.dumps(choice.to_mapping()))) == choice


def test_every_other_option_is_resolved(tmp_path: Path) -> None:
    fields = {
        "prefill": "footprint",
        "on_error": "go-on",
        "depth_limit": 64,
        "issued": ["nvme", "polled"],
        "cold_runs": 0,
    }
    step = replay(tmp_path, **fields, until={"passes": 3})
    assert {key: step[key] for key in fields} == fields
    assert step["until"] == {"passes": 3}


def test_the_schema_lists_the_choices_of_the_replay() -> None:
    defs = load_yaml(ROOT / "workflow/schemas/protocol.schema.yaml")["$defs"]
    of = defs["replay"]["properties"]
    assert sorted(of["mapping"]["enum"]) == sorted(METHODS)
    assert sorted(of["dependencies"]["enum"]) == sorted(DEPENDENCIES)
    timing = defs["timing"]
    assert {*timing["then"]["enum"], *timing["else"]["then"]["properties"]} == set(TIMINGS)
    assert of["depth_limit"]["maximum"] == timing["else"]["then"]["properties"]["asap"]["maximum"] == MOST_IN_FLIGHT


def test_a_study_may_choose_another_timing_and_rule(tmp_path: Path) -> None:
    """An alternative key replaces the old one; a field within the same key is merged."""
    step = replay(tmp_path, {"timing": {"scaled": 3}, "until": {"passes": 2}}, timing={"idle-capped": "1s"})
    assert (step["choice"]["timing"], step["until"]) == ({"mode": "scaled", "factor": 3.0}, {"passes": 2})
    step = replay(tmp_path, {"until": {"relative_standard_error": {"metric": "score"}}})
    assert step["until"] == {"threshold": 0.05, "metric": "score"}
    step = replay(tmp_path, {"until": RULE}, until={"passes": 2})
    assert step["until"] == {"threshold": 0.05, "metric": "access_time_us"}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"timing": "soon"}, r"replay\.timing': 'soon' is not one of original, asap"),
        ({"timing": {"scaled": 0}}, r"replay\.timing\.scaled"),
        ({"timing": {"scaled": 1, "asap": 1}}, "more than 1 keys"),
        ({"timing": {"asap": 5000}}, r"replay\.timing\.asap': 5000 is above 4096"),
        ({"timing": {"idle-capped": "100"}}, "idle-capped"),
        ({"timing": {"idle-capped": "0s"}}, "0s"),
        ({"timing": {"idel-capped": "1s"}}, "unknown key 'idel-capped'; did you mean 'idle-capped'"),
        ({"timing": 3}, "is not of type"),
        ({"dependencies": "process"}, "dependencies"),
        ({"mapping": "fold"}, "mapping"),
        ({"prefill": True}, "prefill"),
        ({"on_error": "retry"}, "on_error"),
        ({"depth_limit": 0}, "depth_limit"),
        ({"issued": ["quickly"]}, "issued"),
        ({"issued": []}, "issued"),
        ({"until": {"passes": 0}}, r"until\.passes"),
        ({"until": {}}, "is empty; give at least one key"),
        ({"until": {**RULE, "passes": 3}}, "more than 1 keys"),
        ({"until": {"relative_standard_error": {"threshold": "5%", "metric": "mean_latency_us"}}}, "access_time_us"),
    ],
)
def test_mistakes_are_reported_with_their_place(tmp_path: Path, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        replay(tmp_path, **fields)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"timing": {"mode": "x3"}}, "replay timing 'x3' is unknown; choose one of original, scaled"),
        ({"timing": {"mode": "scaled"}}, "'scaled' needs a factor; give it, or choose another timing"),
        ({"timing": {"mode": "scaled", "factor": 0}}, "needs a factor above 0, not"),
        ({"timing": {"mode": "scaled", "factor": float("nan")}}, "needs a factor above 0, not"),
        ({"timing": {"mode": "scaled", "factor": "fast"}}, "needs a factor above 0, not"),
        ({"timing": {"mode": "idle-capped", "idle_cap_s": -1}}, "needs an idle cap above 0, not -1"),
        ({"timing": {"mode": "original", "factor": 2}}, "does not use a factor; remove it, or choose 'scaled'"),
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
)  # fmt: skip
def test_invalid_choices_are_refused(body: dict[str, Any], problem: str) -> None:
    with pytest.raises(UserError) as refused:
        ReplayChoice.from_mapping(body)
    assert problem in str(refused.value)
