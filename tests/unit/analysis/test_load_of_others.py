"""Load of others widens the interval of a difference by the most that it may have changed the values."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import table

from drivelab.analysis.deltas.deltas import deltas_table
from drivelab.analysis.values.rows import disturbance_pct, gains
from drivelab.analysis.values.summary import pooled_disturbance_pct
from drivelab.analysis.verdict import (
    BETTER,
    CANNOT_TELL,
    FASTER_BEYOND,
    NOT_STEADY,
    RSE_TOO_HIGH,
    SAME,
    STEADY,
    TAINTED,
    WORSE,
)

LOAD = "load: others used 40 % of the host's CPU time"


def value(drive: str, samples: list[float], disturbance: float | None = None, **changed: Any) -> dict[str, Any]:
    doubt = {} if disturbance is None else {
        "verdict": TAINTED, "taint_reason": LOAD, "disturbance_pct": disturbance,
    }  # fmt: skip
    return {
        "drive": drive, "measurement": "pts-iops", "protocol": "pts-iops", "cell_label": "RND 4KiB 0/100",
        "metric": "iops", "kind": "speed", "unit": "IOPS", "value": statistics.geometric_mean(samples),
        "n": len(samples), "samples": samples, "scope": "recordings", "statistic": "window average",
        "verdict": STEADY, "clock": "wall",
        "recordings": [f"{drive}/pts-iops/0-run{run}" for run in range(1, len(samples) + 1)], **doubt, **changed,
    }  # fmt: skip


def judged(*values: dict[str, Any], **settings: Any) -> dict[str, Any]:
    (row,) = deltas_table(table("summary", list(values)), "a", **settings).to_dict("records")
    return {str(name): value for name, value in row.items()}


BASIS, TWICE = [99.0, 100.0, 101.0], [198.0, 200.0, 202.0]


def test_a_clear_difference_keeps_verdict_and_doubt() -> None:
    alone, loaded = judged(value("a", BASIS), value("b", TWICE)), judged(value("a", BASIS, 30.0), value("b", TWICE))
    assert (alone["verdict"], loaded["verdict"]) == (FASTER_BEYOND, FASTER_BEYOND)
    assert list(loaded["doubts"]) == [f"a: tainted ({LOAD})"]
    assert list(alone["doubts"]) == []
    ratio = math.log1p(loaded["delta_pct"] / 100)
    for end in ("low", "high"):
        half, wider = (abs(math.log1p(row[f"interval_{end}_pct"] / 100) - ratio) for row in (alone, loaded))
        assert wider == pytest.approx(half + math.log(1.3))


@pytest.mark.parametrize("sides", [(95.0, None), (None, 95.0), (95.0, 10.0)])
def test_a_difference_that_the_load_explains_has_no_verdict(sides: tuple[float | None, float | None]) -> None:
    result = judged(value("a", BASIS, sides[0]), value("b", TWICE, sides[1]))
    assert result["interval_low_pct"] < 5.0
    assert result["verdict"] == CANNOT_TELL
    assert f"tainted ({LOAD})" in "; ".join(result["doubts"])
    assert math.isnan(result["recordings_needed"] or math.nan), "more recordings do not help"


def test_between_zero_and_the_margin_load_leaves_no_verdict() -> None:
    """The interval lies above zero, but not beyond the margin."""
    faster = [108.0, 108.1, 107.9]
    steady = [100.0, 100.1, 99.9]
    assert judged(value("a", steady), value("b", faster))["verdict"] == FASTER_BEYOND
    assert judged(value("a", steady, 4.0), value("b", faster))["verdict"] == CANNOT_TELL
    assert judged(value("a", steady, 1.0), value("b", [100.2, 100.1, 100.0]))["verdict"] == SAME


def test_another_doubt_about_the_value_leaves_no_verdict() -> None:
    unknown = value("a", BASIS, 10.0, disturbance_pct=None)
    assert judged(unknown, value("b", TWICE))["verdict"] == CANNOT_TELL
    reduced = judged(value("a", BASIS, 10.0), value("b", TWICE, reduced=True))
    assert reduced["verdict"] == CANNOT_TELL
    assert math.isnan(reduced["disturbance_pct"])


def rows_of(loads: list[float], reasons: list[str | None], waited_pct: float = math.nan) -> pd.DataFrame:
    tainted = [reason is not None for reason in reasons]
    return pd.DataFrame({"load_pct": loads, "steal_pct": 0.0, "waited_pct": waited_pct, "tainted": tainted,
                         "taint_reason": reasons})  # fmt: skip


def test_only_tainted_rows_are_changed() -> None:
    assert gains(rows_of([20.0, 50.0], [None, LOAD])) == [1.0, 2.0]
    assert gains(rows_of([20.0, 50.0], [None, None])) is None
    assert gains(rows_of([20.0, 50.0], [None, "foreign: others wrote 4 KiB"])) is None
    assert gains(rows_of([20.0, math.nan], [None, LOAD])) is None, "a load of unknown size"
    assert gains(rows_of([20.0, 50.0], [None, LOAD], waited_pct=20.0)) == [1.0, 1.25], "no more than the waiting"
    assert gains(rows_of([20.0, 50.0], [None, LOAD], waited_pct=60.0)) == [1.0, 2.0], "no more than the load"
    assert gains(rows_of([20.0, 50.0], [None, LOAD], waited_pct=0.0)) == [1.0, 1.0]


def test_what_is_not_bounded_has_no_size() -> None:
    size = lambda metric, *verdicts: disturbance_pct(metric, verdicts, [1.5], [100.0], statistics.fmean)  # noqa: E731
    assert size("iops", STEADY, TAINTED) == pytest.approx(50)
    assert size("p99_latency_us", STEADY, TAINTED) is None
    assert size("iops", NOT_STEADY, TAINTED) is None


def test_repeats_that_do_not_agree_under_load_have_a_size() -> None:
    assert disturbance_pct("iops", [RSE_TOO_HIGH, TAINTED], [1.5], [100.0], statistics.fmean) == pytest.approx(50)


cell = st.tuples(st.floats(1, 1e6), st.floats(0, 0.9), st.floats(-1, 1))
"""A measured value, the share of the CPU time that others had, and the effect in the largest one, either way."""


@settings(max_examples=200)
@given(st.lists(cell, min_size=1, max_size=9), st.booleans())
def test_no_effect_of_the_load_exceeds_the_size(cells: list[tuple[float, float, float]], is_median: bool) -> None:
    statistic = statistics.median if is_median else statistics.fmean
    measured = [value for value, _, _ in cells]
    gained = [1 / (1 - share) for _, share, _ in cells]
    size = disturbance_pct("iops", [TAINTED], gained, measured, statistic)
    truth = statistic([value * gain**effect for (value, _, effect), gain in zip(cells, gained, strict=True)])
    assert size is not None
    assert abs(math.log(truth / statistic(measured))) <= math.log1p(size / 100) + 1e-9


def test_recordings_share_the_effect_of_one() -> None:
    of = lambda *sizes: [{"verdict": TAINTED if size else STEADY, "disturbance_pct": size} for size in sizes]  # noqa: E731
    assert pooled_disturbance_pct(of(None, 100.0)) == pytest.approx(100 * (math.sqrt(2) - 1))
    assert pooled_disturbance_pct(of(None, None)) is None
    assert pooled_disturbance_pct([*of(100.0), {"verdict": TAINTED, "disturbance_pct": math.nan}]) is None


def test_repeats_that_do_not_agree_beside_a_recording_under_load_count_as_its_effect() -> None:
    disagreeing = {"verdict": RSE_TOO_HIGH, "disturbance_pct": None}
    loaded = {"verdict": TAINTED, "disturbance_pct": 100.0}
    assert pooled_disturbance_pct([disagreeing, loaded]) == pytest.approx(100 * (math.sqrt(2) - 1))
    assert pooled_disturbance_pct([disagreeing, {**loaded, "disturbance_pct": 0.0}]) == 0  # the median is another one
    assert pooled_disturbance_pct([disagreeing, disagreeing]) is None
    assert pooled_disturbance_pct([disagreeing, loaded, {"verdict": NOT_STEADY, "disturbance_pct": None}]) is None


@pytest.mark.parametrize("drives", ["b", "ab"])
@pytest.mark.parametrize("effect", [(1.0, 1.0), (-1.0, 1.0)], ids=["slower", "either way"])
def test_load_makes_no_false_calls(drives: str, effect: tuple[float, float]) -> None:
    """Of 50 studies of equal drives, half of the values disturbed, a few may be called different."""
    random = np.random.default_rng(1)
    false = 0
    for _ in range(50):
        values = []
        for drive in "ab":
            for cell in range(4):
                logs = random.normal(math.log(100), 0.02, 3)
                shares = (random.random(3) < 0.5) * random.uniform(0.25, 0.6, 3) * (drive in drives)
                effects = random.uniform(*effect, 3)
                logs += np.sign(effects) * np.log1p(-shares * np.abs(effects))
                size = 100 * math.expm1(float(-np.log1p(-shares).mean()))
                values.append(value(drive, np.exp(logs).tolist(), size or None, cell_label=str(cell)))
        verdicts = deltas_table(table("summary", values), "a")["verdict"]
        false += bool(verdicts.isin([*BETTER, *WORSE]).any())
    assert false <= 4
