"""Detect characteristics of drives: two modes, bathtub, alignment, knee, recovery."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import protocol_frames
import pytest
from detector_tables import rounds_table, soak_tables
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.analysis.detectors import DETECTORS, findings_table
from drivelab.analysis.detectors.bathtub import bathtub_index
from drivelab.analysis.detectors.bimodality import modes, two_levels
from drivelab.analysis.detectors.knee import find_knee
from drivelab.tables.labels import cell_labels


def of(detector: str, tables: dict[str, pd.DataFrame]) -> list[dict[str, Any]]:
    result = findings_table(tables, {detector: DETECTORS[detector]})
    return [dict(row) for row in result.to_dict("records")]


def frame_tables(cells: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Add missing columns to frames of the figures' tests."""
    more = {"unsound": None, "block_size_max_bytes": None, "alignment_offset_bytes": 0, "range_bytes": None,
            "range_start": 0.0, "range_share": 1.0,
            "segments": None, "rate_iops": None, "entropy": None, "steal_pct": None,
            "load_pct": None, "waited_pct": None}  # fmt: skip
    whole = cells.assign(**{name: value for name, value in more.items() if name not in cells})
    return {"cells": whole.assign(cell_label=cell_labels(whole))}


def histogram(*bells: tuple[float, int], spread: float = 0.1) -> pd.DataFrame:
    random = np.random.default_rng(1)
    parts = [near_us * 1000 * np.exp(random.normal(0, spread, ios)) for near_us, ios in bells]
    values, counts = np.unique(np.concatenate(parts).astype(int), return_counts=True)
    return pd.DataFrame({"latency_ns": values, "count": counts})


def test_two_bells_are_two_modes_at_their_peaks() -> None:
    result = modes(histogram((100, 6000), (1000, 4000)))
    assert result is not None
    assert result.valley < 0.1
    assert (result.low_us, result.high_us) == pytest.approx((100, 1000), rel=0.1)
    assert result.high_share == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.5, 1.0])
def test_one_bell_is_one_mode(spread: float) -> None:
    result = modes(histogram((100, 10_000), spread=spread))
    assert result is None or result.valley > 0.5


def test_a_rare_tail_or_few_ios_are_no_mode() -> None:
    result = modes(histogram((100, 9800), (5000, 200)))
    assert result is None or result.valley > 0.5
    assert modes(histogram((100, 60), (1000, 60))) is None


def test_the_modes_of_a_throttling_drive_are_its_two_speeds() -> None:
    hot = {"ambient_c": 30, "limit_c": 70, "resume_c": 60, "heat_c_per_mib": 0.3, "cooling_s": 40, "slowdown": 3}
    (row,) = of("bimodality", soak_tables(60, throttle=hot))
    assert row["found"]
    assert "near 2.0 ms" in row["words"]  # four outstanding at 500 us each
    (plain,) = of("bimodality", soak_tables(60))
    assert not plain["found"]


def test_two_levels_of_an_alternating_rate_and_of_a_cliff() -> None:
    flips = two_levels(np.tile([2000.0, 2000, 2000, 1000], 20))
    assert (flips.low, flips.high, flips.changes) == pytest.approx((1000, 2000, 39))
    assert flips.separation == float("inf")
    assert two_levels(np.array([2000.0] * 20 + [1000.0] * 20)).changes == 1
    assert two_levels(np.random.default_rng(1).normal(1000, 50, 500)).separation < 3.5


def test_the_bathtub_index_follows_its_formula() -> None:
    mixes = pd.DataFrame({"read_share_pct": [100, 65, 35, 0], "iops": [10_000.0, 3000, 4000, 6000]})
    result = bathtub_index(mixes)
    assert result is not None
    line = 6000 + 0.65 * 4000
    assert result.read_share_pct == 65
    assert result.index_pct == pytest.approx(100 * (1 - 3000 / line))
    assert result.below_sharing_pct == pytest.approx(100 * (1 - 3000 * (0.65 / 10_000 + 0.35 / 6000)))
    assert result.below_both


@settings(max_examples=50, deadline=None)
@given(st.floats(10, 1e6), st.floats(10, 1e6), st.integers(1, 99))
def test_a_drive_that_shares_its_time_has_no_bathtub(reads: float, writes: float, share: int) -> None:
    mixed = 1 / (share / 100 / reads + (1 - share / 100) / writes)
    result = bathtub_index(pd.DataFrame({"read_share_pct": [100, share, 0], "iops": [reads, mixed, writes]}))
    assert result is not None
    assert result.index_pct >= -1e-6
    assert result.below_sharing_pct == pytest.approx(0, abs=1e-6)


def test_a_bathtub_needs_both_pure_workloads_and_a_mix() -> None:
    assert bathtub_index(pd.DataFrame({"read_share_pct": [100, 0], "iops": [1.0, 1.0]})) is None
    assert bathtub_index(pd.DataFrame({"read_share_pct": [100, 50], "iops": [1.0, 1.0]})) is None


def test_bathtub_of_a_recording() -> None:
    frames = {share: rounds_table({f"RND 4KiB {share}/{100 - share}": [iops] * 5}, read_share_pct=share)
              for share, iops in ((100, 10_000.0), (50, 2000.0), (0, 5000.0))}  # fmt: skip
    cells = pd.concat([frame.assign(cell=place) for place, frame in enumerate(frames.values())], ignore_index=True)
    (row,) = of("bathtub", {"cells": cells})
    assert (row["found"], row["cell_label"]) == (True, "RND 4KiB 50/50")
    assert row["value"] == pytest.approx(100 * (1 - 2000 / 7500))
    assert "slower than either alone" in row["words"]


@pytest.mark.parametrize(("unaligned", "is_found"), [(600.0, True), (980.0, False)])
def test_the_penalty_of_unaligned_io(unaligned: float, is_found: bool) -> None:
    aligned = rounds_table({"RND 4KiB 0/100": [1000.0] * 5})
    shifted = rounds_table({"RND 4KiB 0/100 at 512B": [unaligned] * 5}, alignment_offset_bytes=512).assign(cell=1)
    (row,) = of("alignment", {"cells": pd.concat([aligned, shifted], ignore_index=True)})
    assert row["found"] == is_found
    assert row["value"] == pytest.approx(100 * (1 - unaligned / 1000))
    assert of("alignment", {"cells": aligned}) == []


def test_the_knee_of_a_drive_that_serves_sixteen_at_once() -> None:
    """`sweep` is of such a drive: the knee is where threads times queue depth is 16."""
    rows = of("queue-depth knee", frame_tables(protocol_frames.sweep()))
    assert all(row["found"] for row in rows)
    assert [row["value"] for row in rows] == [16, 8, 4, 2]
    assert "the asymptotes cross at 16.0" in rows[0]["words"]


def test_a_sweep_that_rises_to_its_end_has_no_knee() -> None:
    depths = [1, 2, 4, 8, 16]
    result = find_knee(pd.DataFrame({"queue_depth": depths, "iops": [100.0 * depth for depth in depths]}))
    assert result is not None
    assert result.depth == 1  # nowhere above the diagonal
    assert result.gain_pct > 10
    (row,) = of("queue-depth knee", frame_tables(protocol_frames.sweep((1,), (1, 2, 4, 8))))
    assert not row["found"]
    assert find_knee(pd.DataFrame({"queue_depth": [1, 2, 4], "iops": [1.0, 2.0, 2.0]})) is None


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.floats(1, 1e5))
def test_the_knee_of_a_ceiling_is_where_it_is_reached(power: int, rate: float) -> None:
    depths = [2**n for n in range(9)]
    iops = [rate * min(depth, 2**power) for depth in depths]
    result = find_knee(pd.DataFrame({"queue_depth": depths, "iops": iops}))
    assert result is not None
    assert (result.depth, result.gain_pct) == (2**power, 0)
    assert result.saturation_depth == pytest.approx(2**power)


def test_recovery_after_a_stimulus_and_in_idle_time() -> None:
    (row,) = of("recovery", frame_tables(protocol_frames.crossed()))
    assert (row["found"], row["value"], row["unit"]) == (True, 11, "s")  # half of 20 slices, and the first good one
    (never,) = of("recovery", frame_tables(protocol_frames.crossed(recovers=False)))
    assert never["found"]
    assert "does not return to its settled rate" in never["words"]
    waits = of("recovery", frame_tables(protocol_frames.idle((5, 10, 50))))
    assert [row["value"] for row in waits] == pytest.approx([25, 50, 250])
    (calm,) = of("recovery", frame_tables(protocol_frames.idle((1,))))
    assert not calm["found"]
