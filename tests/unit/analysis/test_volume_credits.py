"""Find the credits of volumes whose credits are known, and none where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import protocol_frames as frames
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.analysis.detectors import DETECTORS, findings_table
from drivelab.analysis.values.bursts import Credits, bursts, credits_of
from drivelab.tables.labels import named

_MIB = 1 << 20


def labelled(cells: pd.DataFrame) -> pd.DataFrame:
    return named(cells.assign(unsound=None))


def credits_in(cells: pd.DataFrame) -> Credits | None:
    return credits_of(bursts(labelled(cells)))


def findings(cells: pd.DataFrame, detector: str = "volume credits") -> list[dict[str, Any]]:
    table = findings_table({"cells": labelled(cells)}, {detector: DETECTORS[detector]})
    return [dict(row) for row in table.to_dict("records")]


@settings(max_examples=30, deadline=None)
@given(base=st.floats(20, 700), lasts_s=st.floats(3, 80), scatter=st.floats(0, 0.02))
def test_rates_bucket_and_refill_are_found(base: float, lasts_s: float, scatter: float) -> None:
    bucket = lasts_s * (1000 - base)
    waits_s = tuple(max(round(part * bucket / base), 1) for part in (0.2, 0.5, 0.8))
    found = credits_in(frames.credited(base, 1000, bucket, waits_s=waits_s, scatter=scatter))
    assert found is not None
    io_mib = 16384 / _MIB
    assert found.fall.fast_mib_s == pytest.approx(1000 * io_mib, rel=0.03)
    assert found.fall.slow_mib_s == pytest.approx(base * io_mib, rel=0.03)
    assert found.bucket_bytes == pytest.approx(bucket * 16384, rel=0.04 + 3 * scatter, abs=1000 * 16384 / 4)
    assert found.is_plausible
    assert found.at_base_rate
    if min(waits_s) * base < 0.8 * bucket and min(waits_s) * base / (1000 - base) > 2:
        assert found.refill_bytes_s is not None


@settings(max_examples=30, deadline=None)
@given(factor=st.floats(2, 6))
def test_another_refill_rate_is_told_apart(factor: float) -> None:
    waits_s = (round(90 / factor), round(180 / factor), round(270 / factor))
    found = credits_in(frames.credited(refill=100 * factor, waits_s=waits_s))
    assert found is not None
    assert (found.is_plausible, found.at_base_rate, found.is_bucket) == (True, False, False)
    assert found.refill_bytes_s == pytest.approx(100 * factor * 16384, rel=0.05)


def test_each_value_has_a_row_with_its_unit() -> None:
    rows = findings(frames.credited())
    assert [(row["value"], row["unit"]) for row in rows] == [
        (pytest.approx(1000), "IOPS"), (pytest.approx(100), "IOPS"), (pytest.approx(45_000), "I/Os"),
        (pytest.approx(100), "IOPS"),
    ]  # fmt: skip
    assert [row["words"] for row in rows] == [
        "bursts at 1,000 IOPS for 50 s", "without credits, 100 IOPS remain",
        "the first burst used 45,000 I/Os of credit",
        "idle time brings back credits at 100 IOPS, the base rate; all of them take 7 min 30 s",
    ]  # fmt: skip


def test_another_refill_rate_is_said() -> None:
    assert (
        "at 250 IOPS, which is not the base rate"
        in findings(frames.credited(refill=250.0, waits_s=(20, 40, 80)))[3]["words"]
    )


def test_without_a_partial_refill_heat_is_not_excluded() -> None:
    rows = findings(frames.credited(waits_s=(600, 900)))
    assert rows[3]["value"] != rows[3]["value"]  # null
    assert rows[3]["words"].endswith("a drive that slows down as it gets hot looks the same")


@pytest.mark.parametrize("shares", [(1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.4, 1.0)])
def test_what_comes_back_otherwise_is_no_credit(shares: tuple[float, ...]) -> None:
    """A cache that is full or free again by its own rule; here it slows down reads, to be seen at all."""
    (row,) = findings(frames.cached(shares).assign(read_share_pct=100))
    assert (row["found"], "not as credits run out and come back" in row["words"]) == (False, True)


def test_a_write_cache_is_left_to_its_detector() -> None:
    assert findings(frames.cached()) == []
    (first, *_) = findings(frames.cached(), "write cache")
    assert "credits" not in first["words"]


def test_writes_with_credits_are_both() -> None:
    cells = frames.credited(read=0)
    assert findings(cells)[3]["words"].endswith("a write cache that empties at this rate looks the same")
    assert findings(cells, "write cache")[0]["words"].endswith("credits of a cloud volume look the same")


def test_reads_have_no_write_cache() -> None:
    assert findings(frames.credited(), "write cache") == []


@pytest.mark.parametrize("scatter", [0.02, 0.05, 0.1, 0.3])
def test_scatter_is_no_credit(scatter: float) -> None:
    """An unlimited volume; 100 recordings of five minutes."""
    rng, alarms = np.random.default_rng(7), 0
    quiet = frames.credited(999, 1000, 0, first_s=300)
    for _ in range(100):
        iops = 1000 * np.exp(scatter * rng.standard_normal(len(quiet)))
        noisy = quiet.assign(iops=iops, bandwidth_mib_s=iops * 16384 / _MIB)
        found = credits_in(noisy)
        alarms += found is not None and found.is_plausible
    assert alarms == 0


def test_a_rate_that_does_not_fall_is_said() -> None:
    (row,) = findings(frames.credited(999, 1000, 0))
    assert row["words"] == "the rate does not fall in 1 min 40 s: no credits, or too few or too many for this load"


def test_rates_that_come_and_go_are_no_credit() -> None:
    """Half of the time at each rate, in stretches of ten seconds, and at the lower one in the end."""
    cells = frames.credited(999, 1000, 0)
    slow = (cells["step"] == 0) & ((cells["round"] // 10 % 2 == 1) | (cells["round"] > 70))
    iops = cells["iops"].where(~slow, 300.0)
    (row,) = findings(cells.assign(iops=iops, bandwidth_mib_s=iops * 16384 / _MIB))
    assert not row["found"]


def test_other_recordings_have_no_credits() -> None:
    for cells in (frames.idle(), frames.crossed(), frames.states()):
        assert findings(cells) == []


def test_the_end_of_credits_is_no_drift() -> None:
    assert findings(frames.credited(), "drift") == []
