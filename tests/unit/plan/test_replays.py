"""The replay step: every key of the grammar, its form in a plan, and invalid replays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from drivelab.core.errors import UserError
from drivelab.plan.grammar import load, resolve
from drivelab.plan.replay_choice import DEPENDENCIES, METHODS, MOST_IN_FLIGHT, TIMINGS, ReplayChoice

RULE = {"relative_standard_error": {"threshold": "5%", "metric": "access_time_us"}}


def replay(folder: Path, settings: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    body = {
        "name": "again",
        "title": "t",
        "source": "s",
        "condition": {"purge": "none"},
        "measure": [{"replay": {"timing": "original", "cold_runs": 1, "until": RULE, **fields}}],
        "description": "d",
        "sources": {"condition": "s", "replay": "s"},
    }
    path = folder / "again.yaml"
    path.write_text(yaml.safe_dump(body, sort_keys=False))
    (measurement,) = resolve(load(path), "client", None, {"replay": settings} if settings else {}, "test")
    step: dict[str, Any] = measurement.steps["measure"][0]["replay"]
    return step


def test_defaults_are_the_most_faithful_replay(tmp_path: Path) -> None:
    assert replay(tmp_path) == {
        "choice": {"timing": {"mode": "original"}, "mapping": {"method": "auto"}, "dependencies": "none"},
        "engine": "native",
        "prefill": "none",
        "watched": "cold",
        "on_error": "stop",
        "depth_limit": MOST_IN_FLIGHT,
        "cold_runs": 1,
        "until": {"threshold": 0.05, "metric": "access_time_us"},
    }


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        ("original", "original"),
        ("asap", "as soon as possible at the trace's depth"),
        ({"asap": 32}, "as soon as possible at depth 32"),
        ({"scaled": 0.5}, "scaled by 0.5"),
        ({"scaled": 2}, "scaled by 2"),
        ({"idle-capped": "100ms"}, "idle capped at 100 ms"),
    ],
)
def test_timings(tmp_path: Path, timing: Any, words: str) -> None:
    assert ReplayChoice.from_mapping(replay(tmp_path, timing=timing)["choice"]).words() == words


def test_every_other_option_is_resolved(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "prefill": "footprint",
        "on_error": "go-on",
        "depth_limit": 64,
        "issued": ["nvme", "polled"],
        "cold_runs": 0,
    }
    step = replay(tmp_path, **fields, mapping="compact", dependencies="trace", until={"passes": 3})
    assert {key: step[key] for key in fields} == fields
    assert step["until"] == {"passes": 3}
    choice = ReplayChoice.from_mapping(step["choice"])
    assert (choice.mapping.method, choice.dependencies) == ("compact", "trace")


def test_the_schema_lists_the_choices_of_the_replay() -> None:
    from drivelab.plan.places import ROOT
    from drivelab.plan.yaml_file import load_yaml

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
