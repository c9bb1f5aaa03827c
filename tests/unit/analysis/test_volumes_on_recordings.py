"""Measure the credits of volumes on the virtual clock; the model gives the truth."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_models import findings, recorded

from drivelab.analysis.values.summary import summary_table
from drivelab.collect.collect import collect
from drivelab.tables.windows import windows_table

VOLUMES = [
    {"base_iops": 200, "burst_iops": 2000, "bucket_ios": 9000, "io_kib": 256},
    {"base_iops": 1000, "burst_iops": 3000, "bucket_ios": 16000, "io_kib": 256},
    {"base_iops": 400, "burst_iops": 4000, "bucket_ios": 9000, "io_kib": 16},
]


@pytest.mark.parametrize("limits", VOLUMES)
def test_the_credits_of_a_volume_are_measured(project: Path, limits: dict[str, float]) -> None:
    place = recorded("protocol: volume-burst, scale: demo", credits=limits)
    burst, base, bucket, refill = findings(place, "volume credits")
    assert (burst["value"], base["value"]) == pytest.approx((limits["burst_iops"], limits["base_iops"]), rel=0.02)
    assert bucket["value"] == pytest.approx(limits["bucket_ios"], rel=0.02)
    assert refill["value"] == pytest.approx(limits["base_iops"], rel=0.05)
    assert "the base rate; all of them" in refill["words"]
    seconds = limits["bucket_ios"] / (limits["burst_iops"] - limits["base_iops"])
    assert f"for {seconds:.0f} s" in burst["words"]
    assert [row["unit"] for row in (burst, base, bucket, refill)] == ["IOPS", "IOPS", "I/Os", "IOPS"]
    tables = collect(place, reduced=True)
    cells = tables["cells"]
    values = summary_table(cells, windows_table(cells, {}), tables["replays"], tables["replay_passes"])
    assert set(values["verdict"]) <= {"in a changing phase", "steady"}, "the rate falls by design"


def test_the_credits_of_a_volume_that_counts_bytes_are_measured(project: Path) -> None:
    limits = {"base_iops": 10, "burst_iops": 60, "bucket_ios": 400, "io_kib": 1024}
    sequential = "{pattern: sequential, block_size: 1MiB, queue_depth: 4}"
    changes = f"set: {{soak: {sequential}, repeat: {{soak: {sequential}}}}}"
    place = recorded(f"protocol: volume-burst, scale: demo, {changes}", credits=limits)
    rows = findings(place, "volume credits")
    assert [row["value"] for row in rows] == pytest.approx([60, 10, 400, 10], rel=0.05)
    assert [row["unit"] for row in rows] == ["MiB/s", "MiB/s", "MiB", "MiB/s"]


def test_a_drive_without_credits_has_none(project: Path) -> None:
    (row,) = findings(recorded("protocol: volume-burst, scale: demo"), "volume credits")
    assert (row["found"], row["words"]) == (
        False,
        "the rate does not fall in 20 s: no credits, or too few or too many for this load",
    )


def test_heat_is_no_credit(project: Path) -> None:
    """The drive throttles after some seconds and cools in idle time by an exponential law."""
    throttle = {"ambient_c": 30, "limit_c": 70, "resume_c": 35, "heat_c_per_mib": 0.05, "cooling_s": 30, "slowdown": 4}
    place = recorded("protocol: volume-burst, scale: demo, set: {repeat: {over: {time: [4s, 12s, 40s]}}}",
                     throttle=throttle)  # fmt: skip
    rows = findings(place, "volume credits")
    assert [row["found"] for row in rows] == [False]
    assert "look for heat" in rows[0]["words"]


@pytest.mark.parametrize("protocol", ["slc-cache", "slc-cache-random"])
def test_a_write_cache_is_no_credit(project: Path, protocol: str) -> None:
    place = recorded(f"protocol: {protocol}, scale: demo, set: {{for_each: {{range: [75%]}}}}")
    assert findings(place, "volume credits") == []
    assert "credits" not in findings(place, "write cache")[0]["words"]


def test_writes_with_credits_look_like_a_write_cache(project: Path) -> None:
    writes = "{read_share: 0}"
    place = recorded(f"protocol: volume-burst, scale: demo, set: {{soak: {writes}, repeat: {{soak: {writes}}}}}",
                     credits=VOLUMES[0], program_us=100)  # fmt: skip
    assert findings(place, "volume credits")[3]["words"].endswith(
        "a write cache that empties at this rate looks the same"
    )
    assert findings(place, "write cache")[0]["words"].endswith("credits of a cloud volume look the same")
