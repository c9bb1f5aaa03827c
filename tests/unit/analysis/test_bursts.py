"""Measure the write cache of drives whose cache is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import protocol_frames as frames
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.analysis.detectors import DETECTORS, findings_table
from drivelab.analysis.values.bursts import bursts, find_fall, share_back
from drivelab.tables.labels import named


def labelled(cells: pd.DataFrame) -> pd.DataFrame:
    return named(cells.assign(unsound=None))


@settings(max_examples=100, deadline=None)
@given(
    cache=st.floats(2.5, 17.5), slow=st.floats(0.05, 0.75), scatter=st.floats(0, 0.02), seed=st.integers(0, 2**32 - 1)
)
def test_the_volume_at_the_higher_rate_is_the_cache(cache: float, slow: float, scatter: float, seed: int) -> None:
    """Twenty slices of a second at rate 1 until the cache is full, then at `slow`; the scatter is log-normal.

    The nearer both rates, the less the rate of a slice says of where in it the fall lies.
    """
    fast_s = np.clip(cache - np.arange(20), 0, 1)
    written = (fast_s + (1 - fast_s) * slow) * 1e6 * np.exp(scatter * np.random.default_rng(seed).standard_normal(20))
    fall = find_fall(written, np.ones(20))
    assert fall is not None
    assert fall.fast_bytes == pytest.approx(
        cache * 1e6, rel=0, abs=(0.02 + 0.01 * cache + scatter * (6 + 3 / (1 - slow))) * 1e6
    )


@settings(max_examples=100, deadline=None)
@given(scatter=st.floats(0, 0.1), seed=st.integers(0, 2**32 - 1))
def test_scatter_alone_is_no_fall(scatter: float, seed: int) -> None:
    written = 1e6 * np.exp(scatter * np.random.default_rng(seed).standard_normal(20))
    fall = find_fall(written, np.ones(20))
    assert fall is None or fall.slow_mib_s <= 0.8 * fall.fast_mib_s


def test_a_rise_and_few_slices_are_no_fall() -> None:
    assert find_fall(np.array([1.0, 1.0, 5.0, 5.0, 5.0]) * 1e6, np.ones(5)) is None
    assert find_fall(np.array([5.0, 5.0, 1.0]) * 1e6, np.ones(3)) is None


def test_bursts_find_their_share_of_the_cache() -> None:
    first, *others = bursts(labelled(frames.cached()))
    assert [burst.wait for burst in others] == ["1 min", "2 min", "3 min"]
    fall = find_fall(first.moved, first.seconds)
    assert fall is not None
    assert (fall.fast_mib_s, fall.slow_mib_s) == pytest.approx((frames.FAST_MIB_S, frames.SLOW_MIB_S))
    assert fall.fast_bytes == pytest.approx(frames.CACHE_BYTES)
    assert [share_back(burst, fall) for burst in others] == pytest.approx([0.0, 0.4, 1.0])


@settings(max_examples=50, deadline=None)
@given(share=st.floats(0, 1))
def test_any_share_is_found(share: float) -> None:
    first, burst = bursts(labelled(frames.cached((1.0, share))))
    fall = find_fall(first.moved, first.seconds)
    assert fall is not None
    assert share_back(burst, fall) == pytest.approx(share, abs=0.01)


def test_a_drive_without_a_fall_has_no_cache() -> None:
    first, _ = bursts(labelled(frames.cached((0.0, 0.0))))
    assert find_fall(first.moved, first.seconds) is None


def test_other_recordings_have_no_bursts() -> None:
    for cells in (frames.idle(), frames.crossed(), frames.states(), frames.turns()["cells"]):
        assert bursts(labelled(cells)) == []


def test_bursts_are_a_cache_only_of_writes_and_no_drift() -> None:
    def findings(cells: pd.DataFrame, detector: str) -> pd.DataFrame:
        return findings_table({"cells": labelled(cells)}, {detector: DETECTORS[detector]})

    assert findings(frames.cached(), "write cache")["found"].all()
    assert findings(frames.cached().assign(read_share_pct=100), "write cache").empty
    assert findings(frames.cached(), "drift").empty
