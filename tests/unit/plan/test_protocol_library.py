"""Compare the PTS tests in config/protocols with facts of the standard, repeated here as data."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from drivelab.plan.grammar import Resolved, load, resolve
from drivelab.plan.places import ROOT

PROTOCOLS = ROOT / "config/protocols"
PTS = sorted(path.stem for path in PROTOCOLS.glob("pts-*.yaml"))
CLASSES = ("enterprise", "client")
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

Step = tuple[str, dict[str, Any]]


def variants(name: str, scale: str | None = None, drive_class: str = "enterprise") -> list[Resolved]:
    return resolve(load(PROTOCOLS / f"{name}.yaml"), drive_class, scale, {}, "test")


def steps(measurement: Resolved) -> list[Step]:
    return [item for step in measurement.steps["measure"] for item in step.items()]


def only(name: str, drive_class: str = "enterprise") -> list[Step]:
    (measurement,) = variants(name, drive_class=drive_class)
    return steps(measurement)


def fill(measurement: Resolved) -> dict[str, Any]:
    return dict(measurement.steps["condition"]["fill"])


def cells(measurement: Resolved) -> list[dict[str, Any]]:
    """Return the cells of all loops and soaks."""
    all_cells: list[dict[str, Any]] = []
    for kind, fields in steps(measurement):
        all_cells += fields["cells"] if kind == "loop" else [fields["cell"]] if kind == "soak" else []
    return all_cells


def tracked_cells(loop: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the loop's cells that a tracked variable selects."""
    return [
        cell
        for variable in loop["until"]["track"]
        for cell in loop["cells"]
        if all(cell.get(key) == value for key, value in variable.items() if key != "metric" and value is not None)
    ]


@pytest.mark.parametrize("name", PTS)
@pytest.mark.parametrize("drive_class", CLASSES)
def test_every_test_is_unaltered_at_full_length_and_altered_as_a_demo(name: str, drive_class: str) -> None:
    assert all(measurement.altered == () for measurement in variants(name, None, drive_class))
    assert all(measurement.altered for measurement in variants(name, "demo", drive_class))
    assert all(
        measurement.steps["condition"]["purge"] == "required" for measurement in variants(name, None, drive_class)
    )


@pytest.mark.parametrize("name", PTS)
def test_no_protocol_claims_to_be_the_standard(name: str) -> None:
    body = load(PROTOCOLS / f"{name}.yaml").body
    words = f"{body['title']} {body['source']} {body['description']}".lower()
    assert "complian" not in words
    assert "after" in body["title"]
    assert 2 <= body["description"].count(". ") + 1 <= 8


@pytest.mark.parametrize("name", PTS)
def test_a_demo_fits_a_virtual_drive(name: str) -> None:
    """The virtual drive has 64 MiB in blocks of 4 KiB."""
    for measurement in variants(name, "demo"):
        for cell in cells(measurement):
            sizes = [part["block_size_bytes"] for part in cell.get("block_sizes", [cell])]
            assert all(size % VIRTUAL_BLOCK_BYTES == 0 for size in sizes)
            assert cell.get("range_bytes", 0) <= VIRTUAL_CAPACITY_BYTES


@pytest.mark.parametrize("name", PTS)
def test_every_steady_state_rule_is_the_standards(name: str) -> None:
    rules = []
    for measurement in variants(name):
        for kind, fields in steps(measurement):
            if kind == "loop" and "track" in fields["until"]:
                rules.append(fields["until"])
                assert fields["until"]["max_rounds"] == 25
                assert len(tracked_cells(fields)) == len(fields["until"]["track"])
            if kind == "soak" and "steady_state" in fields["until"]:
                rules.append(fields["until"]["steady_state"])
    assert all({key: rule[key] for key in CRITERION} == CRITERION for rule in rules)
    assert rules or name in ("pts-write-saturation", "pts-cross-stimulus-recovery")


@pytest.mark.parametrize(("name", "tracked"), [("pts-iops", 3), ("pts-iops-v1", 1)])
def test_iops_has_56_cells_mixes_outside_and_sizes_inside(name: str, tracked: int) -> None:
    ((_, loop),) = only(name)
    assert [(cell["read_share"], cell["block_size_bytes"]) for cell in loop["cells"]] == list(product(MIXES, SIZES))
    assert len(loop["cells"]) == 56
    assert {(cell["pattern"], cell["runtime_s"]) for cell in loop["cells"]} == {("random", 60.0)}
    tracked_fields = [(cell["read_share"], cell["block_size_bytes"]) for cell in tracked_cells(loop)]
    assert tracked_fields == [(0, 4 * KIB), (65, 64 * KIB), (100, 1024 * KIB)][:tracked]


@pytest.mark.parametrize(
    ("name", "sizes_kib"), [("pts-throughput", [1024, 128]), ("tkperf-throughput", [1024, 64, 8, 4, 0.5])]
)
def test_throughput_purges_for_every_block_size(name: str, sizes_kib: list[float]) -> None:
    """Version 2.0 fills in the size under test; TKperf does not fill."""
    measurements = variants(name)
    assert [cells(measurement)[0]["block_size_bytes"] for measurement in measurements] == [
        size * KIB for size in sizes_kib
    ]
    for measurement in measurements:
        read, write = cells(measurement)
        assert (read["read_share"], write["read_share"], write["pattern"]) == (100, 0, "sequential")
        if name == "tkperf-throughput":
            assert "fill" not in measurement.steps["condition"]
            continue
        wanted = {"pattern": "sequential", "block_size_bytes": write["block_size_bytes"], "capacity_multiple": 2}
        assert {key: fill(measurement)[key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("name", "sizes_kib"), [("pts-throughput-v09", [1024, 64, 8, 4, 0.5]), ("pts-throughput-v09-client", [1024])]
)
def test_the_throughput_of_v09_is_one_loop_after_one_fill(name: str, sizes_kib: list[float]) -> None:
    ((_, loop),) = only(name)
    sizes = [size * KIB for size in sizes_kib]
    assert [(cell["read_share"], cell["block_size_bytes"]) for cell in loop["cells"]] == list(product((100, 0), sizes))
    assert [cell["block_size_bytes"] for cell in tracked_cells(loop)] == [s for s in sizes if s in (1 << 20, 4096)]
    (measurement,) = variants(name)
    wanted = {"pattern": "sequential", "block_size_bytes": 128 * KIB, "capacity_multiple": 2}
    assert {key: fill(measurement)[key] for key in wanted} == wanted


def test_the_demonstration_of_stec_has_its_command_and_its_text() -> None:
    for name in ("sqlio-head-to-head", "sqlio-head-to-head-reads"):
        measurements = variants(name)
        assert [measurement.variant for measurement in measurements] == ["command-8k", "text-4k-unaligned"]
        soaks = [measurement.steps["measure"][0]["soak"]["cell"] for measurement in measurements]
        assert [(cell["block_size_bytes"], cell.get("alignment_offset_bytes", 0)) for cell in soaks] == [
            (8192, 0), (4096, 512),
        ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["pts-write-saturation", "pts-write-saturation-steady", "pts-write-saturation-mixes", "pts-idle-recovery",
     "pts-cross-stimulus-recovery", "pts-composite-block-workload", "pts-demand-intensity"],
)  # fmt: skip
def test_tests_of_fresh_drives_have_no_fill(name: str) -> None:
    assert all("fill" not in measurement.steps["condition"] for measurement in variants(name))


def test_write_saturation_until_steady_has_a_point_in_31_minutes() -> None:
    (_, first), (_, histogram) = only("pts-write-saturation-steady")
    assert first["until"]["capacity_multiple"] == 4
    assert first["until"]["steady_state"]["every_s"] == 31 * first["cell"]["slice_s"] == 31 * 60
    assert histogram["until"] == {"time_s": 20 * 60}


def test_write_saturation_has_the_workloads_of_the_standard() -> None:
    measurements = variants("pts-write-saturation-mixes")
    assert [measurement.variant for measurement in measurements] == ["oltp", "video-on-demand", "metadata", "composite"]
    seen = [cells(measurement)[0] for measurement in measurements]
    assert [(cell["pattern"], cell["block_size_bytes"], cell["read_share"]) for cell in seen[:3]] == [
        ("random", 8 * KIB, 65), ("sequential", 128 * KIB, 90), ("sequential", 512, 50),
    ]  # fmt: skip
    assert_composite(seen[3])
    assert seen[3]["read_share"] == 0
    for measurement in measurements:
        first, histogram = cells(measurement)
        assert {**first, "runtime_s": None} == {**histogram, "runtime_s": None}


def assert_composite(cell: dict[str, Any]) -> None:
    shares = {entry["block_size_bytes"]: entry["share"] for entry in cell["block_sizes"]}
    assert shares == pytest.approx({size: percent / 100 for size, percent in COMPOSITE_PERCENT.items()})
    assert sum(shares.values()) == pytest.approx(1)
    zones = [(zone["range_share"], zone["share"]) for zone in cell["zones"]]
    assert zones == [pytest.approx((span / 100, share / 100)) for span, share in ZONES_PERCENT]
    assert cell["alignment_bytes"] == 4 * KIB


def test_the_composite_sums_to_100_percent() -> None:
    """Check the reference data itself: 12 sizes, 3 zones."""
    assert (len(COMPOSITE_PERCENT), sum(COMPOSITE_PERCENT.values())) == (12, 100)
    assert [sum(column) for column in zip(*ZONES_PERCENT, strict=True)] == [100, 100]


def test_idle_recovery_pauses_360_times_for_each_of_five_lengths() -> None:
    (kind, before), *rest = only("pts-idle-recovery")
    assert kind == "soak"
    assert before["until"]["steady_state"]["every_s"] == 30 * 60
    bursts, baselines = rest[::2], rest[1::2]
    assert [fields["pause_s"] for _, fields in bursts] == [5, 10, 15, 25, 50]
    for kind, fields in bursts:
        assert (kind, fields["until"]) == ("loop", {"rounds": 360})
        ((cell,),) = (fields["cells"],)
        assert (cell["pattern"], cell["read_share"], cell["block_size_bytes"]) == ("random", 0, 4 * KIB)
        assert cell["runtime_s"] == 5
    assert [(kind, fields["until"]) for kind, fields in baselines] == [("soak", {"time_s": 30 * 60})] * 5
    assert [fields["phase_pass"] for _, fields in rest] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


@pytest.mark.parametrize("drive_class", CLASSES)
def test_cross_stimulus_recovery_is_8_6_8_hours_at_one_thread(drive_class: str) -> None:
    steps_of_test = [
        (fields["cell"], fields["until"]) for _, fields in only("pts-cross-stimulus-recovery", drive_class)
    ]
    assert [until for _, until in steps_of_test] == [{"time_s": 3600 * hours} for hours in (8, 6, 8)]
    assert [(cell["pattern"], cell["block_size_bytes"]) for cell, _ in steps_of_test] == [
        ("sequential", 1024 * KIB), ("random", 8 * KIB), ("sequential", 1024 * KIB),
    ]  # fmt: skip
    assert {(cell["read_share"], cell["threads"], cell["queue_depth"]) for cell, _ in steps_of_test} == {(0, 1, 32)}


@pytest.mark.parametrize(
    ("name", "read_share"), [("pts-composite-block-workload", 40), ("pts-demand-intensity", 65)]
)  # fmt: skip
def test_demand_is_swept_and_three_points_are_measured(name: str, read_share: int) -> None:
    (_, before), (_, loop), *points = only(name)
    assert (before["cell"]["read_share"], before["cell"]["threads"], before["cell"]["queue_depth"]) == (0, 32, 32)
    assert before["until"]["steady_state"]["every_s"] == 30 * 60
    assert before["until"]["time_s"] == 25 * 30 * 60
    pre_write, *sweep = loop["cells"]
    assert (pre_write["read_share"], pre_write["threads"], pre_write["queue_depth"]) == (0, 32, 32)
    assert pre_write["runtime_s"] == 5 * 60
    assert [(cell["threads"], cell["queue_depth"]) for cell in sweep] == list(product(DEMANDS, DEMANDS))
    assert len(sweep) == 49
    assert {(cell["read_share"], cell["runtime_s"]) for cell in sweep} == {(read_share, 60.0)}
    (tracked,) = tracked_cells(loop)
    assert (tracked["read_share"], tracked["threads"], tracked["queue_depth"]) == (read_share, 32, 32)
    assert [fields["point"]["name"] for _, fields in points] == ["max", "max", "mid", "mid", "min", "min"]
    for number, (kind, fields) in enumerate(points):
        point = fields["point"]
        assert (kind, point["step"], point["response_time_us"]) == ("soak", 1, 5000)
        assert point["of"]["read_share"] == read_share
        writes = number % 2 == 0
        assert fields["cell"]["read_share"] == (0 if writes else read_share)
        assert fields["until"] == {"time_s": 60.0 * (60 if writes else 10)}
        assert not {"threads", "queue_depth"} & {*fields["cell"]}


def test_the_composite_block_workload_is_composite_throughout() -> None:
    (measurement,) = variants("pts-composite-block-workload")
    for cell in cells(measurement):
        assert_composite(cell)


def test_demand_intensity_is_one_size_throughout() -> None:
    (measurement,) = variants("pts-demand-intensity")
    assert {(cell["pattern"], cell["block_size_bytes"]) for cell in cells(measurement)} == {("random", 8 * KIB)}


def test_the_active_range_shrinks_for_the_fill_and_the_cells() -> None:
    measurements = variants("pts-active-range")
    assert [cells(measurement)[0]["range_share"] for measurement in measurements] == [1.0, 0.75, 0.5, 0.25]
    assert [measurement.steps["class"]["active_range"] for measurement in measurements] == [1.0, 0.75, 0.5, 0.25]


def test_segments_are_one_and_2048_of_8_gib() -> None:
    measurements = variants("pts-active-range-segments", drive_class="client")
    assert [{cell["segments"] for cell in cells(measurement)} for measurement in measurements] == [{1}, {2048}]
    assert {cell["range_bytes"] for measurement in measurements for cell in cells(measurement)} == {8 << 30}
    assert {measurement.steps["class"]["active_range"] for measurement in measurements} == {1.0}


def test_the_demand_of_v09_is_swept_for_three_mixes() -> None:
    ((_, loop),) = only("pts-demand-intensity-v09")
    demands = [(cell["read_share"], cell["threads"], cell["queue_depth"]) for cell in loop["cells"]]
    assert demands == list(product([100, 65, 0], [4, 2, 1], [32, 16, 8, 4, 2, 1]))


def test_the_histogram_of_v09_takes_20_minutes_of_each_mix() -> None:
    _, *steps_of_test = only("pts-response-time-histogram")
    assert [(fields["cell"]["read_share"], fields["until"]) for _, fields in steps_of_test] == [
        (share, {"time_s": 20 * 60}) for share in (0, 65, 100)
    ]


def test_power_is_measured_under_load_and_at_rest() -> None:
    (_, loop), (kind, _) = only("pts-iops-per-watt")
    assert kind == "idle"
    assert {cell["pattern"] for cell in loop["cells"]} == {"random", "sequential"}


def test_the_figure_of_merit_covers_six_workloads() -> None:
    protocol = load(PROTOCOLS / "pts-figure-of-merit.yaml")
    assert protocol.body["analysis"] == {"figure_of_merit": "iops"}
    ((_, loop),) = only("pts-figure-of-merit")
    kinds = {(cell["pattern"], cell["read_share"], cell["block_size_bytes"]) for cell in loop["cells"]}
    assert len(kinds) == len(loop["cells"]) == 6


def test_analysis_is_not_in_the_plan() -> None:
    (measurement,) = variants("pts-figure-of-merit")
    assert "analysis" not in str(measurement.steps)
