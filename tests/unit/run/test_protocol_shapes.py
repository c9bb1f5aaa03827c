"""The PTS tests show their effects at demo scale on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from drivelab.campaign.planning import Campaign
from drivelab.collect.collect import collect
from drivelab.run.condition import precondition, purge
from drivelab.run.measure import measure

Measured = Callable[[str], list[pd.DataFrame]]


@pytest.fixture
def measured(project: Path) -> Measured:
    """Return a function that gives table `cells` of each measurement of a protocol on a drive that does not vary."""

    def run(protocol: str) -> list[pd.DataFrame]:
        Path("config/mine.yaml").write_text(
            f"name: mine\nclock: virtual\ndrives: [op7-512e]\nmeasurements: [{{protocol: {protocol}, scale: demo}}]\n"
        )
        tables = []
        for planned in Campaign.load("config/mine.yaml").plans:
            purge(planned.plan, Path("purged.json"))
            precondition(planned.plan, Path("purged.json"), Path("conditioned.json"))
            measure(planned.plan, Path("conditioned.json"))
            tables.append(collect(planned.plan.recording_path, reduced=True)["cells"])
        return tables

    return run


def test_write_saturation_has_a_cliff_and_a_plateau(measured: Measured) -> None:
    (cells,) = measured("pts-write-saturation-steady")
    until_steady, histogram = (cells[cells["step"] == step]["iops"] for step in (0, 1))
    assert until_steady.iloc[0] > 4 * until_steady.iloc[-1]
    assert until_steady.iloc[1] < 0.6 * until_steady.iloc[0]
    assert histogram.mean() == pytest.approx(until_steady.iloc[-1], rel=0.1)


def test_a_drive_recovers_in_pauses_longer_than_its_idle_threshold(measured: Measured) -> None:
    """The threshold is 5 s; 5.3 s restore a part of the SLC cache, 8 s all of it."""
    (cells,) = measured("pts-idle-recovery")
    baseline = cells[cells["step"] == 0]["iops"].iloc[-1]
    bursts = cells[cells["pause_s"].notna() & (cells["round"] > 1)]  # the first comes before the first pause
    means = bursts.groupby("phase_value")["iops"].mean()
    assert means["3s"] == pytest.approx(baseline, rel=0.15)
    assert 3 * baseline < means["5.3s"] < means["8s"]


def test_sequential_writes_recover_from_random_ones(measured: Measured) -> None:
    (cells,) = measured("pts-cross-stimulus-recovery")
    before, between, after = (cells[cells["step"] == step]["bandwidth_mib_s"] for step in range(3))
    assert between.iloc[1:].max() < 0.5 * before.iloc[-10:].mean()
    assert after.iloc[0] < 0.75 * before.mean(), "it starts in the state after random writes"
    assert (after >= before.mean()).any(), "it recovers within its time"


def test_a_smaller_active_range_is_faster(measured: Measured) -> None:
    steady = [cells.groupby("round")["iops"].mean().iloc[-5:].mean() for cells in measured("pts-active-range")]
    assert steady == sorted(steady)
    assert steady[-1] > 2 * steady[0]


def test_the_points_are_measured_at_the_chosen_demand(measured: Measured) -> None:
    (cells,) = measured("pts-demand-intensity")
    sweep = cells[cells["step"] == 1]
    window = sweep[(sweep["round"] > sweep["round"].max() - 5) & (sweep["read_share_pct"] > 0)]
    table = window.groupby(["threads", "queue_depth"])[["iops", "mean_latency_us"]].mean()
    points = cells[cells["phase"] == "point"].groupby("phase_value")[["threads", "queue_depth"]].agg(["min", "max"])
    assert (points.xs("min", axis=1, level=1) == points.xs("max", axis=1, level=1)).all(axis=None)
    chosen = {name: tuple(row) for name, row in points.xs("min", axis=1, level=1).iterrows()}
    assert chosen["max"] == table[table["mean_latency_us"] < 5000]["iops"].idxmax()
    assert chosen["min"] == (1, 1)
