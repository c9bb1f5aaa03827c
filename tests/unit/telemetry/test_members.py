"""Sensors of several disks as those of one subject."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_trees import Tree

from drivelab.telemetry.sampler import Source
from drivelab.telemetry.sources import array_source, combined, of_subject


def test_counters_add_up_and_wear_is_that_of_the_worst() -> None:
    assert of_subject([
        {"smart_bytes_written": 10.0, "percentage_used_pct": 3.0, "available_spare_pct": 100.0, "thermal_1_s": 2.0},
        {"smart_bytes_written": 30.0, "percentage_used_pct": 9.0, "available_spare_pct": 98.0},
    ]) == {
        "smart_bytes_written": 40.0, "percentage_used_pct": 9.0, "available_spare_pct": 98.0, "thermal_1_s": 2.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("members", "temperature_c", "limit_c"),
    [
        ([(50.0, 85.0), (48.0, 55.0)], 48.0, 55.0),  # the cooler disk is nearer to its limit
        ([(50.0, 85.0), (60.0, 85.0)], 60.0, 85.0),
        ([(50.0, None), (60.0, None)], 60.0, None),
        ([(70.0, None), (50.0, 85.0)], 50.0, 85.0),
    ],
)
def test_the_temperature_is_that_of_the_disk_nearest_to_its_limit(
    members: list[tuple[float, float | None]], temperature_c: float, limit_c: float | None
) -> None:
    readings = [
        {"temperature_c": at, **({} if limit is None else {"temperature_limit_c": limit})} for at, limit in members
    ]
    expected = {"temperature_c": temperature_c, **({} if limit_c is None else {"temperature_limit_c": limit_c})}
    assert of_subject(readings) == expected


def test_an_array_is_compared_with_the_wanted_state(tmp_path: Path) -> None:
    tree = Tree(tmp_path, {"sdz": 1, "sdy": 1})
    name = tree.composed("md", "sdz1", "sdy1")
    (tree.directory(name) / "md/degraded").write_text("1\n")
    for wanted, other in (("clean", 1.0), ("degraded", 0.0)):
        source = array_source(name, wanted, tree.sys)
        assert source is not None
        assert source.read() == {"array_missing": 1.0, "array_other": other}
        assert source.prompt, "a cell ends between two readings of a second"
    assert array_source("sdz", "clean", tree.sys) is None


def test_each_reading_names_the_members() -> None:
    def source(name: str, field: str, value: float) -> Source:
        return Source(name, lambda: {field: value}, period_s=7.0)

    sources = combined({
        "S1": [source("temperature", "temperature_c", 40.0), source("smart", "media_errors", 1.0)],
        "S2": [source("temperature", "temperature_c", 50.0)],
    })  # fmt: skip
    assert [(each.name, each.period_s) for each in sources] == [("temperature", 7.0), ("smart", 7.0)]
    assert sources[0].read() == {"S1/temperature_c": 40.0, "S2/temperature_c": 50.0, "temperature_c": 50.0}
    assert sources[1].read() == {"S1/media_errors": 1.0, "media_errors": 1.0}
