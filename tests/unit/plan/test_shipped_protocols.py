"""The protocols in config/protocols resolve at every scale and have the figures of their standards, repeated here.

The golden study pins the digests of all their plans: any other change of a protocol shows there.
"""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import jsonschema
import pytest

from drivelab.plan.grammar import Resolved, load, resolve
from drivelab.plan.places import ROOT
from drivelab.plan.replay_choice import DEPENDENCIES, METHODS, MOST_IN_FLIGHT, TIMINGS
from drivelab.plan.yaml_file import load_yaml

PROTOCOLS = ROOT / "config/protocols"
ALL = sorted(path.stem for path in PROTOCOLS.glob("*.yaml"))
PTS = [name for name in ALL if name.startswith("pts-")]
KIB = 1024
SIZES = [1024 * KIB, 128 * KIB, 64 * KIB, 32 * KIB, 16 * KIB, 8 * KIB, 4 * KIB, 512]
MIXES = [100, 95, 65, 50, 35, 5, 0]
DEMANDS = [32, 16, 8, 6, 4, 2, 1]
COMPOSITE_PERCENT = {
    512: 4, 1024: 1, 1536: 1, 2048: 1, 2560: 1, 3072: 1, 3584: 1,
    4 * KIB: 67, 8 * KIB: 10, 16 * KIB: 7, 32 * KIB: 3, 64 * KIB: 3,
}  # fmt: skip
ZONES_PERCENT = [(5, 50), (15, 30), (80, 20)]
"""Share of the range and share of the I/Os of each zone."""
CRITERION = {"window": 5, "data_excursion": 0.2, "slope_excursion": 0.1}
VIRTUAL_CAPACITY_BYTES = 64 << 20
VIRTUAL_BLOCK_BYTES = 4096


def variants(name: str, scale: str | None = None, drive_class: str = "enterprise") -> list[Resolved]:
    return resolve(load(PROTOCOLS / f"{name}.yaml"), drive_class, scale, {}, "test")


def steps(measurement: Resolved) -> list[tuple[str, dict[str, Any]]]:
    return [item for step in measurement.steps["measure"] for item in step.items()]


def cells(measurement: Resolved) -> list[dict[str, Any]]:
    """Return the cells of all loops and soaks."""
    all_cells: list[dict[str, Any]] = []
    for kind, fields in steps(measurement):
        all_cells += fields["cells"] if kind == "loop" else [fields["cell"]] if kind == "soak" else []
    return all_cells


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("drive_class", ["enterprise", "client"])
def test_every_protocol_resolves_at_every_scale(name: str, drive_class: str) -> None:
    protocol = load(PROTOCOLS / f"{name}.yaml")
    full = resolve(protocol, drive_class, None, {}, "test")
    assert all(measurement.altered == () for measurement in full)
    assert "demo" in protocol.body.get("scale", {}), "every protocol in config/protocols needs a scale demo for tests"
    for scale in protocol.body["scale"]:
        assert all(measurement.altered for measurement in resolve(protocol, drive_class, scale, {}, "test"))
    json.dumps([measurement.steps for measurement in full])
    assert all(text.strip() for text in protocol.body["sources"].values())
    assert name not in PTS or all(measurement.steps["condition"]["purge"] == "required" for measurement in full)


def test_schemas_are_schemas() -> None:
    """Their use does not check them."""
    for path in (ROOT / "workflow/schemas").glob("*.yaml"):
        jsonschema.Draft202012Validator.check_schema(load_yaml(path))


def test_no_protocol_claims_to_be_its_model() -> None:
    for name in PTS:
        body = load(PROTOCOLS / f"{name}.yaml").body
        assert "complian" not in f"{body['title']} {body['source']} {body['description']}".lower()
        assert "after" in body["title"]
    labels = {"rwsw-replay": "RWSW-style", "rwsw-streams": "RWSW-style", "trace-set": "PCMark-10-style",
              "trace-consistency": "PCMark-10-style", "trace-replay": "", "trace-replay-asap": ""}  # fmt: skip
    for name, label in labels.items():
        title = load(PROTOCOLS / f"{name}.yaml").body["title"]
        assert label in title
        assert ("-style" in title) == bool(label)


def test_a_demo_fits_a_virtual_drive() -> None:
    for cell in (cell for name in PTS for measurement in variants(name, "demo") for cell in cells(measurement)):
        for part in cell.get("block_sizes", [cell]):
            assert part["block_size_bytes"] % VIRTUAL_BLOCK_BYTES == 0
        assert cell.get("range_bytes", 0) <= VIRTUAL_CAPACITY_BYTES


@pytest.mark.parametrize("name", PTS)
def test_every_steady_state_rule_is_the_standards(name: str) -> None:
    rules = []
    for kind, fields in (step for measurement in variants(name) for step in steps(measurement)):
        if kind == "loop" and "track" in fields["until"]:
            rules.append(fields["until"])
            assert fields["until"]["max_rounds"] == 25
        if kind == "soak" and "steady_state" in fields["until"]:
            rules.append(fields["until"]["steady_state"])
    assert all({key: rule[key] for key in CRITERION} == CRITERION for rule in rules)
    assert rules or name in ("pts-write-saturation", "pts-cross-stimulus-recovery")


def test_iops_has_56_cells_mixes_outside_and_sizes_inside() -> None:
    for name in ("pts-iops", "pts-iops-v1"):
        ((_, loop),) = steps(variants(name)[0])
        assert [(cell["read_share"], cell["block_size_bytes"]) for cell in loop["cells"]] == list(product(MIXES, SIZES))
        assert {(cell["pattern"], cell["runtime_s"]) for cell in loop["cells"]} == {("random", 60.0)}


def test_the_composite_block_workload_is_composite_throughout() -> None:
    """In 12 sizes that sum to 100 percent, and 3 zones."""
    (measurement,) = variants("pts-composite-block-workload")
    for cell in cells(measurement):
        shares = {entry["block_size_bytes"]: entry["share"] for entry in cell["block_sizes"]}
        assert shares == pytest.approx({size: percent / 100 for size, percent in COMPOSITE_PERCENT.items()})
        assert (len(shares), sum(shares.values())) == (12, pytest.approx(1))
        zones = [(zone["range_share"], zone["share"]) for zone in cell["zones"]]
        assert zones == [pytest.approx((span / 100, share / 100)) for span, share in ZONES_PERCENT]
        assert cell["alignment_bytes"] == 4 * KIB


@pytest.mark.parametrize(
    ("name", "read_share"), [("pts-composite-block-workload", 40), ("pts-demand-intensity", 65)]
)  # fmt: skip
def test_demand_is_swept_and_three_points_are_measured(name: str, read_share: int) -> None:
    (_, before), (_, loop), *points = steps(variants(name)[0])
    assert before["until"]["steady_state"]["every_s"] == 30 * 60
    pre_write, *sweep = loop["cells"]
    assert (pre_write["read_share"], pre_write["threads"], pre_write["queue_depth"]) == (0, 32, 32)
    assert [(cell["threads"], cell["queue_depth"]) for cell in sweep] == list(product(DEMANDS, DEMANDS))
    assert {(cell["read_share"], cell["runtime_s"]) for cell in sweep} == {(read_share, 60.0)}
    assert [fields["point"]["name"] for _, fields in points] == ["max", "max", "mid", "mid", "min", "min"]
    for number, (_, fields) in enumerate(points):
        assert (fields["point"]["step"], fields["point"]["response_time_us"]) == (1, 5000)
        assert fields["cell"]["read_share"] == (0 if number % 2 == 0 else read_share)
        assert fields["until"] == {"time_s": 60.0 * (60 if number % 2 == 0 else 10)}


def test_analysis_is_not_in_the_plan() -> None:
    assert load(PROTOCOLS / "pts-figure-of-merit.yaml").body["analysis"] == {"figure_of_merit": "iops"}
    (measurement,) = variants("pts-figure-of-merit")
    assert "analysis" not in str(measurement.steps)


def test_the_schema_lists_the_choices_of_the_replay() -> None:
    defs = load_yaml(ROOT / "workflow/schemas/protocol.schema.yaml")["$defs"]
    of = defs["replay"]["properties"]
    assert sorted(of["mapping"]["enum"]) == sorted(METHODS)
    assert sorted(of["dependencies"]["enum"]) == sorted(DEPENDENCIES)
    timing = defs["timing"]
    assert {*timing["then"]["enum"], *timing["else"]["then"]["properties"]} == set(TIMINGS)
    assert of["depth_limit"]["maximum"] == timing["else"]["then"]["properties"]["asap"]["maximum"] == MOST_IN_FLIGHT
