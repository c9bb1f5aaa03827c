"""Measure recovery with known truth: from a stimulus, and by idle time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from rows import loop, soak, table

from drivelab.analysis.values.recovery import (
    StimulusRecovery,
    cross_stimulus,
    idle_recovery,
    mean_level,
    stimulus_recovery,
)


def slices(values: list[float], **more: Any) -> pd.DataFrame:
    return table("cells", [row | {"bandwidth_mib_s": row["iops"]} for row in soak(values, **more)])


def three_parts(before: list[float], after: list[float]) -> pd.DataFrame:
    """Return the cells of a workload before and after another one; values are MiB/s."""
    parts = soak(before), soak([10.0] * 5, step=1, size=8192), soak(after, step=2)
    return table("cells", [row | {"bandwidth_mib_s": row["iops"]} for part in parts for row in part])


def test_recovery_is_the_first_slice_at_the_level() -> None:
    result = stimulus_recovery(slices([20.0, 99.0, 100.0, 99.0], runtime_s=60.0), 100.0)
    assert result == StimulusRecovery(slice_number=3, time_s=180.0, at_most=False)
    assert stimulus_recovery(slices([20.0, 99.9]), 100.0) is None


def test_left_out_slices_count_as_time_and_make_it_an_upper_limit() -> None:
    after = slices([20.0, 30.0, 40.0, 100.0, 100.0], runtime_s=60.0).drop([1, 2])
    result = stimulus_recovery(after, 100.0)
    assert result == StimulusRecovery(slice_number=4, time_s=240.0, at_most=True)


def test_the_level_before_is_a_time_average() -> None:
    assert mean_level(pd.concat([slices([100.0], runtime_s=3.0), slices([20.0])])) == 80.0
    with pytest.raises(ValueError, match="no slice before"):
        mean_level(slices([]))


def test_a_settled_rate_has_recovered_although_it_is_below_the_mean() -> None:
    """Slices have 21 or 22 I/Os of 1 MiB; the fresh start raises only the mean."""
    before = [57.0] + [21.0] * 39
    (result,) = cross_stimulus(three_parts(before, [7.0, 9.0, 16.0] + [21.0] * 10 + [22.0] + [21.0] * 10))
    assert result.recovery is not None
    assert result.recovery.slice_number == 14
    assert result.settled is not None
    assert result.settled.slice_number == 4
    assert result.usual == pytest.approx(0.9 * 21)


@pytest.mark.parametrize("scatter", [0.001, 0.02, 0.05])
def test_noise_alone_seldom_delays_recovery(scatter: float) -> None:
    rng, late, cells = np.random.default_rng(1), 0, three_parts([100.0] * 60, [100.0] * 60)
    ours = cells["step"] != 1
    for _ in range(200):
        cells.loc[ours, "bandwidth_mib_s"] = 100 * np.exp(rng.normal(0, scatter, 120))
        (result,) = cross_stimulus(cells)
        late += result.settled is None or result.settled.slice_number > 1
    assert late <= 4  # with the mean as level it would be half of them


def test_the_parts_of_a_cross_stimulus_test_are_found() -> None:
    def parts(*sizes: int) -> pd.DataFrame:
        rows = [soak([100.0, 100.0] if step != 2 else [50.0, 100.0], step=step, size=size)
                for step, size in enumerate(sizes)]  # fmt: skip
        return table("cells", [row for part in rows for row in part])

    (result,) = cross_stimulus(parts(1 << 20, 8192, 1 << 20).assign(bandwidth_mib_s=lambda rows: rows["iops"]))
    assert (result.workload, result.stimulus) == ("RND 1024KiB 0/100", "RND 8KiB 0/100")
    assert result.recovery is not None
    assert result.recovery.slice_number == 2
    assert cross_stimulus(parts(4096, 4096, 4096)) == []
    assert cross_stimulus(parts(4096, 8192)) == []


def test_idle_recovery_compares_bursts_with_the_step_before() -> None:
    rows = loop([900.0] * 4 + [100.0] * 5)
    for number, (wait_s, burst, after) in enumerate(((5.0, 150.0, 120.0), (10.0, 240.0, 110.0))):
        turn = {"phase": "wait", "phase_value": f"{wait_s:g}s", "phase_pass": number + 1}
        bursts = loop([7.0, burst - 10, burst + 10], step=1 + 2 * number, pause_s=wait_s, **turn)
        rows += [row | {"cold": row["round"] == 1, "idle_ms": 1000 * wait_s} for row in bursts]
        rows += soak([700.0] + [after] * 9, step=2 + 2 * number, **turn)
    result = idle_recovery(table("cells", rows))
    assert result["phase_value"].tolist() == ["5s", "10s"]
    assert result["wait_s"].tolist() == [5.0, 10.0]
    assert result["bursts"].tolist() == [2, 2]
    assert result["mean_iops"].tolist() == [150.0, 240.0]
    assert result[["first_iops", "last_iops"]].values.tolist() == [[140.0, 160.0], [230.0, 250.0]]
    assert result["baseline_iops"].tolist() == [100.0, 120.0]
    assert result["ratio"].tolist() == [1.5, 2.0]


def test_bursts_without_a_baseline_have_no_ratio() -> None:
    result = idle_recovery(table("cells", loop([1.0, 1.0], pause_s=5.0, idle_ms=5000.0)))
    assert result["ratio"].isna().tolist() == [True]
    assert idle_recovery(table("cells", soak([1.0]))).empty


def test_a_burst_without_idle_time_is_left_out() -> None:
    turn = {"phase": "wait", "phase_value": "5s", "phase_pass": 1}
    bursts = [row | {"idle_ms": None if row["round"] == 1 else 5000.0}
              for row in loop([100.0, 300.0, 310.0, 320.0], step=1, pause_s=5.0, **turn)]  # fmt: skip
    (result,) = idle_recovery(table("cells", soak([100.0] * 5) + bursts)).to_dict("records")
    assert (result["bursts"], result["mean_iops"], result["first_iops"], result["ratio"]) == (3, 310.0, 300.0, 3.1)
    alone = [row for row in bursts if row["round"] == 1]
    assert idle_recovery(table("cells", soak([100.0] * 5) + alone)).empty
