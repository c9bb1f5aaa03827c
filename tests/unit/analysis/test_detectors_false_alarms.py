"""Count false alarms of detectors: none without noise, and at most their stated rate with noise."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from detector_tables import course_tables, rounds_table, soak_tables
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.analysis.detectors import DETECTORS, findings_table

RECORDINGS = 12
COMPARED = {
    "bathtub": ("read_share_pct", [0, 5, 35, 50, 65, 95, 100]),
    "alignment": ("alignment_offset_bytes", [0, 512]),
    "queue-depth knee": ("queue_depth", [1, 2, 4, 8, 16, 32, 64]),
}
"""Detectors that compare cells, with the column that differs and its values."""
MOST_ALARMS = 1
"""Most alarms of a detector in all recordings: at a rate of 2 %, more occur once in fifty runs."""


def telemetry(seconds: int, random: np.random.Generator | None = None) -> dict[str, np.ndarray]:
    """Return telemetry that does not affect the rate: a drive that gets too hot once, and occasional neighbours."""
    draw = np.zeros(seconds) if random is None else random.random(seconds)
    hot = np.where((np.arange(seconds) > seconds // 3) & (np.arange(seconds) < seconds // 2), 71.0, 50.0)
    return {"temperature_c": hot, "temperature_limit_c": np.full(seconds, 70.0),
            "steal_pct": np.where(draw > 0.9, 20.0, 0.0)}  # fmt: skip


@settings(max_examples=10, deadline=None)
@given(
    depth=st.integers(1, 16), command_us=st.sampled_from([300, 500, 1000]), read_share=st.sampled_from([100, 0]),
    seed=st.integers(0, 2**31),
)  # fmt: skip
def test_no_false_alarm_on_an_undisturbed_drive_without_noise(
    depth: int, command_us: int, read_share: int, seed: int
) -> None:
    cache = {"write_buffer": "4KiB", "program_us": 50, "copy_us": 20, "erase_us": 100}  # the controller is the ceiling
    tables = soak_tables(60, read_share=read_share, depth=depth, command_us=command_us, seed=seed, **cache)
    result = findings_table(tables)
    disturbances = result[~result["detector"].isin(["bimodality"])]  # writes that wait for an erase are bimodal
    assert not disturbances["found"].any(), disturbances.loc[disturbances["found"], "words"].tolist()


@pytest.mark.parametrize("rate", [1.0, 2000.0, 1e6])
def test_no_false_alarm_on_equal_values(rate: float) -> None:
    courses = findings_table(course_tables(np.full(120, rate), **telemetry(120)))
    rounds = findings_table({"cells": rounds_table({"a": [rate] * 9, "b": [2 * rate] * 9})})
    assert not courses["found"].any()
    assert not rounds["found"].any()


@pytest.mark.parametrize("noise", [0.02, 0.05])
def test_with_noise_a_detector_has_at_most_one_false_alarm_in_twelve_recordings(noise: float) -> None:
    """Normal scatter of logarithms; 300 seconds of a soak, and 12 rounds of 10 cells."""
    random = np.random.default_rng(20)
    alarms: Counter[str] = Counter()
    for _ in range(RECORDINGS):
        course = 2000 * np.exp(random.normal(0, noise, 300))
        rounds = {f"w{k}": list(2000 * np.exp(random.normal(0, noise, 12))) for k in range(10)}
        for tables in (course_tables(course, **telemetry(300, random)), {"cells": rounds_table(rounds)}):
            result = findings_table(tables)
            alarms.update(result.loc[result["found"], "detector"].unique())
    print(f"noise {100 * noise:.0f} %: false alarms in {RECORDINGS} recordings: {dict(alarms)}")
    assert all(number <= MOST_ALARMS for number in alarms.values()), alarms


def test_rounds_that_correlate_are_no_drift() -> None:
    """Without the correction, 8 of 10 such recordings drift: 12 rounds of 10 cells at a correlation of 0.9."""
    random, alarms = np.random.default_rng(20), 0
    for _ in range(RECORDINGS):
        steps = random.normal(0, 0.05, (10, 12))
        for number in range(1, 12):
            steps[:, number] = 0.9 * steps[:, number - 1] + np.sqrt(1 - 0.9**2) * steps[:, number]
        cells = rounds_table({f"w{place}": list(2000 * np.exp(course)) for place, course in enumerate(steps)})
        alarms += bool(findings_table({"cells": cells}, {"drift": DETECTORS["drift"]})["found"].any())
    assert alarms <= MOST_ALARMS


@pytest.mark.parametrize("detector", COMPARED)
def test_scatter_of_five_rounds_seldom_makes_cells_differ(detector: str) -> None:
    """Without standard errors, 25 and 9 of 100 recordings have bathtubs and penalties; without a least rise, 65 have
    knees."""
    noise, random = 0.1, np.random.default_rng(20)
    column, values = COMPARED[detector]
    cells = {"cells": pd.concat(
        [rounds_table({f"w{place}": [1.0] * 5}, **{"read_share_pct": 0, column: value}).assign(cell=place)
         for place, value in enumerate(values)], ignore_index=True
    )}  # fmt: skip
    alarms = 0
    for _ in range(100):
        cells["cells"]["iops"] = 2000 * np.exp(random.normal(0, noise, 5 * len(values)))
        result = findings_table(cells, {detector: DETECTORS[detector]})
        assert len(result)
        alarms += result["found"].any()
    print(f"{detector}, noise {100 * noise:.0f} %: false alarms in {alarms} of 100 recordings")
    assert alarms <= 3  # at a rate of one in a hundred, more occur once in fifty runs
