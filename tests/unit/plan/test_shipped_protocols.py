"""The protocols in config/protocols: they resolve, and trace protocols match their text."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import jsonschema
import pytest

from drivelab.plan.grammar import load, resolve
from drivelab.plan.places import ROOT
from drivelab.plan.yaml_file import load_yaml

PROTOCOLS = ROOT / "config/protocols"
ALL = sorted(path.stem for path in PROTOCOLS.glob("*.yaml"))
OF_TRACES = [
    "rwsw-replay", "rwsw-streams", "trace-consistency", "trace-replay", "trace-replay-asap", "trace-set",
]  # fmt: skip


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("drive_class", ["enterprise", "client"])
def test_every_protocol_resolves_at_every_scale(name: str, drive_class: str) -> None:
    protocol = load(PROTOCOLS / f"{name}.yaml")
    assert all(measurement.altered == () for measurement in resolve(protocol, drive_class, None, {}, "test"))
    assert "demo" in protocol.body.get("scale", {}), "every protocol in config/protocols needs a scale demo for tests"
    for scale in protocol.body["scale"]:
        assert all(measurement.altered for measurement in resolve(protocol, drive_class, scale, {}, "test"))
    json.dumps([measurement.steps for measurement in resolve(protocol, drive_class, None, {}, "test")])


def test_schemas_are_schemas() -> None:
    """Their use does not check them."""
    for path in (ROOT / "workflow/schemas").glob("*.yaml"):
        jsonschema.Draft202012Validator.check_schema(load_yaml(path))


def steps(name: str, scale: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    (measurement,) = resolve(load(PROTOCOLS / f"{name}.yaml"), "enterprise", scale, {}, "test")
    return [item for step in measurement.steps["measure"] for item in step.items()]


@pytest.mark.parametrize("name", OF_TRACES)
@pytest.mark.parametrize("drive_class", ["enterprise", "client"])
def test_trace_protocols_resolve_at_every_scale(name: str, drive_class: str) -> None:
    protocol = load(PROTOCOLS / f"{name}.yaml")
    assert protocol.replays != protocol.takes_streams
    (full,) = resolve(protocol, drive_class, None, {}, "test")
    (demo,) = resolve(protocol, drive_class, "demo", {}, "test")
    assert full.altered == ()
    assert demo.altered
    assert demo.steps["condition"]["fill"]["capacity_multiple"] == 1


@pytest.mark.parametrize("name", OF_TRACES)
def test_imitations_have_style_in_their_title(name: str) -> None:
    body = load(PROTOCOLS / f"{name}.yaml").body
    label = "RWSW-style" if name.startswith("rwsw-") else "PCMark-10-style"
    assert (label in body["title"]) == (name.startswith("rwsw-") or name in ("trace-set", "trace-consistency"))
    if name.startswith("rwsw-"):
        assert "1.0.7" in body["source"]
    assert all(text.strip() for text in body["sources"].values())


def test_a_set_is_replayed_three_times_and_all_count() -> None:
    ((kind, fields),) = steps("trace-set")
    assert (kind, fields["cold_runs"], fields["until"]) == ("replay", 0, {"passes": 3})


def test_consistency_has_the_phases_of_its_model() -> None:
    resolved_steps = steps("trace-consistency")
    phases = {phase: list(group) for phase, group in groupby(resolved_steps, lambda step: step[1]["phase"])}
    assert list(phases) == ["degradation", "steady", "recovery"]
    for group in phases.values():
        assert [kind for kind, _ in group[1::2]] == ["replay"] * (len(group) // 2)
        assert [fields["phase_pass"] for _, fields in group[::2]] == list(range(1, len(group) // 2 + 1))
        assert all(
            fields["until"] == {"passes": 1} and fields["cold_runs"] == 0 for kind, fields in group if kind == "replay"
        )
    minutes = {phase: [fields.get("time_s", fields.get("until", {}).get("time_s")) / 60 for _, fields in group[::2]]
               for phase, group in phases.items()}  # fmt: skip
    assert minutes == {
        "degradation": [10, 15, 20, 25, 30, 35, 40, 45],
        "steady": [45] * 5,
        "recovery": [5] * 5,
    }
    cells = [fields["cell"] for kind, fields in resolved_steps if kind == "soak"]
    assert all((fields["block_size_bytes"], fields["block_size_max_bytes"]) == (4096, 1 << 20) for fields in cells)
    assert {kind for kind, fields in phases["recovery"]} == {"idle", "replay"}


def test_consistency_is_shortened_in_every_phase() -> None:
    resolved_steps = steps("trace-consistency", "demo")
    assert [fields.get("phase") for _, fields in resolved_steps] == 6 * ["degradation"] + 4 * ["steady"] + 4 * [
        "recovery"
    ]
    assert sum(fields.get("time_s", fields.get("until", {}).get("time_s", 0)) for _, fields in resolved_steps) < 25


def test_streams_run_to_steady_state() -> None:
    ((_, fields),) = steps("rwsw-streams")
    streams = fields["streams"]
    assert (streams["kind"], streams["most"]) == ("individual", 9)
    assert len(streams["threads"]) * len(streams["queue_depth"]) == 1
    assert (fields["until"]["window"], fields["until"]["max_rounds"]) == (5, 25)
    assert all(variable["streams"] == "all" and variable["metric"] == "iops" for variable in fields["until"]["track"])
