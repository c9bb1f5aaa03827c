"""Measure hard disks on the virtual clock; their mechanics give the truth."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_models import findings, recorded

from drivelab.collect.collect import collect

DISK = {"rpm": 6000, "track_seek_ms": 1, "full_seek_ms": 16, "outer_mib_s": 20, "inner_mib_s": 10}
"""A turn takes 10 ms; the platters are slow, so that seeks back to the start of a small range hardly count."""


def test_bandwidth_falls_from_the_outer_to_the_inner_zone(project: Path) -> None:
    place = recorded("protocol: hdd-zones, scale: demo", capacity="64MiB", disk=DISK)
    cells = collect(place, reduced=True)["cells"]
    assert cells["range_start"].nunique() == 10
    assert set(cells["read_share_pct"]) == {0, 100}
    positions = cells["range_start"] + cells["range_share"] / 2
    expected = (20**2 - positions * (20**2 - 10**2)) ** 0.5
    assert cells["bandwidth_mib_s"].tolist() == pytest.approx(expected.tolist(), rel=0.1)
    by_place = cells.groupby("range_start")["bandwidth_mib_s"].median()
    assert by_place.is_monotonic_decreasing
    assert by_place.iloc[-1] / by_place.iloc[0] == pytest.approx(
        (400 - 0.975 * 300) ** 0.5 / (400 - 0.025 * 300) ** 0.5, rel=0.05
    )


def test_seeks_by_depth_and_stroke(project: Path) -> None:
    """At depth 1 a read takes 8/15 of the range's seek, half a turn and its transfer."""
    place = recorded("protocol: hdd-seek, scale: demo, set: {loop: {runtime: 20s}}", capacity="64MiB", disk=DISK)
    cells = collect(place, reduced=True)["cells"]
    latency_us = cells.groupby(["range_share", "queue_depth"])["mean_latency_us"].median()
    transfer_us = 4096 / 2**20 / 15.8 * 1e6
    for share in (0.1, 1.0):
        expected_us = 1000 + 15_000 * 8 / 15 * share**0.5 + 5000 + transfer_us
        assert latency_us[share, 1] == pytest.approx(expected_us, rel=0.04)
    iops = cells.groupby(["range_share", "queue_depth"])["iops"].median().unstack()
    assert (iops.loc[0.1] > iops.loc[1.0]).all()
    assert (iops[32] > 2 * iops[1]).all()
    knees = {row["cell_label"]: row["value"] for row in findings(place, "queue-depth knee")}
    assert knees == {"full stroke T1Q32": 32, "short stroke, first 10 % T1Q32": 32}
