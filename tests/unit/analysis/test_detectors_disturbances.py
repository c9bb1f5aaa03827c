"""Detectors find disturbances where a virtual drive has them, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from detector_tables import course_tables, rounds_table, soak_tables
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.analysis.detectors import findings_table
from drivelab.analysis.detectors.dips import clock_of_dips
from drivelab.analysis.detectors.drift import trend
from drivelab.analysis.detectors.outliers import chances, modified_z
from drivelab.tables import io
from drivelab.tables.schemas import SCHEMAS

HOT = {"ambient_c": 30, "limit_c": 70, "resume_c": 60, "heat_c_per_mib": 0.3, "cooling_s": 40, "slowdown": 4}


def of(detector: str, tables: dict[str, pd.DataFrame]) -> list[dict[str, Any]]:
    result = findings_table(tables)
    return [dict(row) for row in result[result["detector"] == detector].to_dict("records")]


def only(detector: str, tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    (row,) = of(detector, tables)
    return row


def test_throttling_is_found_with_its_factor() -> None:
    row = only("thermal throttling", soak_tables(60, throttle=HOT))
    assert row["found"]
    assert row["value"] == pytest.approx(100 * (1 - 1 / HOT["slowdown"]), abs=2)
    assert "70 °C" in row["words"]
    # it warms by 2.3 °C a second at 2000 IOPS, and cools the faster the hotter it is
    rise_c_per_s, cooling_s = 2000 * 4096 / 2**20 * HOT["heat_c_per_mib"], HOT["cooling_s"]
    reached_s = -cooling_s * np.log(1 - 40 / (rise_c_per_s * cooling_s))
    assert row["begin_s"] == pytest.approx(reached_s, abs=2)


def test_a_cool_drive_does_not_throttle() -> None:
    row = only("thermal throttling", soak_tables(60, throttle={**HOT, "heat_c_per_mib": 0.05}))
    assert not row["found"]
    assert row["words"].startswith("never too hot")


def test_throttling_needs_both_heat_and_a_fall() -> None:
    seconds = np.arange(120)
    hot, cool = np.where(seconds < 60, 50.0, 75.0), np.full(120, 50.0)
    steady, falls = np.full(120, 2000.0), np.where(seconds < 60, 2000.0, 1000.0)
    limit = {"temperature_limit_c": np.full(120, 70.0)}
    assert not only("thermal throttling", course_tables(steady, temperature_c=hot, **limit))["found"]
    assert not only("thermal throttling", course_tables(falls, temperature_c=cool, **limit))["found"]
    assert only("thermal throttling", course_tables(falls, temperature_c=hot, **limit))["found"]


def test_the_counters_of_the_drive_show_throttling() -> None:
    seconds = np.arange(120)
    slowed = np.clip(seconds - 59, 0, 30).astype(int)  # rises from second 60 to 90
    iops = np.where((seconds >= 60) & (seconds < 90), 1200.0, 2000.0)
    row = only("thermal throttling", course_tables(iops, thermal_1_s=slowed))
    assert (row["found"], row["value"]) == (True, pytest.approx(40))
    assert "0 throttling events, 30 s in all" in row["words"]


def test_after_a_hang_there_is_no_rate_to_fall() -> None:
    seconds = np.arange(120)
    hung = np.where((seconds >= 50) & (seconds < 60), 0.0, 2000.0)
    limit = {"temperature_limit_c": np.full(120, 70.0)}
    once = np.where(seconds < 60, 50.0, 75.0)
    row = only("thermal throttling", course_tables(hung, temperature_c=once, **limit))
    assert not row["found"]
    assert np.isnan(row["value"])
    assert row["words"].startswith("too hot after a hang, so there is no earlier rate to compare with: at most 75 °C")
    again = np.where((seconds >= 60) & (seconds < 80) | (seconds >= 100), 75.0, 50.0)
    slowed = np.where(seconds >= 100, 500.0, hung)
    row = only("thermal throttling", course_tables(slowed, temperature_c=again, **limit))
    assert (row["found"], row["value"]) == (True, pytest.approx(75))
    assert row["words"].startswith("too hot 1 time, ")


def test_a_drive_without_temperature_has_no_row() -> None:
    assert of("thermal throttling", course_tables([2000.0] * 60)) == []


@pytest.mark.parametrize(("every_s", "for_s"), [(5, 0.6), (10, 0.4), (7.5, 0.9)])
def test_periodic_housekeeping_is_found_with_period_and_depth(every_s: float, for_s: float) -> None:
    row = only("periodic dips", soak_tables(120, housekeeping={"every_s": every_s, "for_s": for_s}))
    assert row["found"]
    assert row["value"] == pytest.approx(every_s, rel=0.1)
    if every_s == int(every_s):  # the pause lies within one second
        assert f"by {100 * for_s:.0f} %" in row["words"]


def test_random_dips_are_not_periodic() -> None:
    random = np.random.default_rng(7)
    iops = np.full(600, 2000.0)
    iops[random.choice(600, 30, replace=False)] = 1000
    row = only("periodic dips", course_tables(iops))
    assert not row["found"]


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 20), st.floats(0.15, 0.9))
def test_the_period_of_exact_dips_is_exact(period: int, depth: float) -> None:
    iops = np.full(10 * period + 5, 1000.0)
    iops[period::period] *= 1 - depth
    course = pd.DataFrame({"begin_s": np.arange(len(iops)) + 0.0, "end_s": np.arange(len(iops)) + 1.0, "iops": iops})
    result = clock_of_dips(course)
    assert result is not None
    assert (result.period_s, result.variation) == (period, 0)
    assert result.depth_pct == pytest.approx(100 * depth)


def test_stolen_time_that_slows_a_drive_is_found_with_its_share() -> None:
    row = only("neighbours", soak_tables(120, disturb={"every_s": 20, "for_s": 4, "stolen_pct": 40}))
    assert (row["found"], row["metric"]) == (True, "steal_pct")
    assert row["value"] == pytest.approx(40, abs=2)
    assert row["begin_s"] == pytest.approx(16, abs=1)


def test_stolen_time_without_a_fall_is_reported_as_harmless() -> None:
    stolen = np.where(np.arange(120) % 20 < 4, 40.0, 0.0)
    row = only("neighbours", course_tables([2000.0] * 120, steal_pct=stolen))
    assert not row["found"]
    assert "rates were not lower" in row["words"]


def test_values_of_cells_replace_missing_telemetry() -> None:
    rates = [1000.0] * 9 + [700.0] * 3
    cells = rounds_table({"RND 4KiB 100/0": rates})
    cells["steal_pct"] = [0.0] * 9 + [30.0] * 3
    row = only("neighbours", {"cells": cells})
    assert (row["found"], row["value"]) == (True, pytest.approx(30))


def test_an_outlier_among_rounds_is_named() -> None:
    values = [1000.0, 1002.0, 998.0, 800.0, 1001.0]
    row = only("outlier runs", {"cells": rounds_table({"RND 4KiB 100/0": values})})
    assert (row["found"], row["value"]) == (True, pytest.approx(-20))
    assert row["words"].startswith("round 4 is 20 % below")


def test_rounds_before_steady_state_are_not_outliers() -> None:
    values = [4000.0, 3000.0, 1000.0, 1001.0, 999.0, 1000.0, 1002.0]
    assert not only("outlier runs", {"cells": rounds_table({"w": values}, until="steady state")})["found"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(10, 1e6), min_size=5, max_size=20), st.floats(1e-3, 1e3))
def test_outliers_do_not_depend_on_the_unit(values: list[float], factor: float) -> None:
    plain, scaled = np.array(values), factor * np.array(values)
    if float(np.median(np.abs(plain - np.median(plain)))) > 1e-6 * float(np.median(plain)):
        assert modified_z(scaled) == pytest.approx(modified_z(plain), rel=1e-6, abs=1e-6)
        assert chances(scaled) == pytest.approx(chances(plain), rel=1e-3, abs=1e-9)


def test_the_modified_z_score_equals_that_of_its_source() -> None:
    """Iglewicz and Hoaglin: 0.6745 (x - median) / MAD; here the median is 3 and the MAD 1."""
    assert modified_z(np.array([1.0, 2.0, 3.0, 4.0, 23.0])).tolist() == pytest.approx(
        [-1.349, -0.6745, 0, 0.6745, 13.49]
    )


def test_the_chances_equal_those_of_their_source() -> None:
    """Rosner's 54 values (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.17.3): three are outliers at 5 %,
    although neither the farthest nor the two farthest alone are."""
    values = np.array([
        -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58, 1.65, 1.69, 1.70,
        1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10, 2.14, 2.15, 2.23, 2.24, 2.26, 2.35, 2.37, 2.40,
        2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59, 3.68, 4.30, 4.64, 5.34, 5.42, 6.01,
    ])  # fmt: skip
    assert values[chances(values) < 0.05].tolist() == [5.34, 5.42, 6.01]


def test_a_slow_spell_is_an_outlier_and_a_cliff_is_not() -> None:
    slow, cliff = np.full(120, 2000.0), np.full(120, 2000.0)
    slow[50:58] = 1000
    cliff[50:] = 1000
    row = only("outlier runs", course_tables(slow))
    assert (row["found"], row["begin_s"], row["end_s"], row["value"]) == (True, 50, 58, 8)
    assert "50 % slower" in row["words"]
    assert not only("outlier runs", course_tables(cliff))["found"]


def test_a_drift_is_found_with_its_size() -> None:
    random = np.random.default_rng(3)
    iops = np.linspace(2000, 1800, 300) * random.normal(1, 0.01, 300)
    row = only("drift", course_tables(iops))
    assert row["found"]
    assert row["value"] == pytest.approx(-10, abs=1.5)
    assert not only("drift", course_tables(np.linspace(2000, 1980, 300)))["found"]  # real, and too small to matter


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=30))
def test_reversing_time_reverses_a_drift(values: list[float]) -> None:
    there, back = trend(np.array(values)), trend(np.array(values[::-1]))
    assert (1 + there.drift_pct / 100) * (1 + back.drift_pct / 100) == pytest.approx(1, rel=1e-6)
    assert there.chance == pytest.approx(back.chance, abs=1e-9)


def test_a_drift_is_relative_to_the_first_value_and_above_minus_100_percent() -> None:
    assert trend(np.geomspace(1000, 100, 20)).drift_pct == pytest.approx(-90)
    assert trend(np.geomspace(1000, 3000, 20)).drift_pct == pytest.approx(200)
    hangs = np.geomspace(1000, 800, 20)
    hangs[[3, 11]] = 0
    assert trend(hangs).drift_pct == pytest.approx(-20, abs=2)
    assert -100 < trend(np.r_[np.full(10, 5000.0), np.zeros(10)]).drift_pct < -80
    assert trend(np.zeros(20)).drift_pct == 0
    row = only("drift", course_tables(np.r_[np.full(30, 5000.0), np.full(31, 50.0)]))
    assert (row["found"], row["value"] > -100) == (True, True)


def test_the_table_matches_its_schema(tmp_path: Path) -> None:
    result = findings_table(soak_tables(60, throttle=HOT))
    io.write(result, tmp_path / "findings.parquet", "findings")
    assert len(io.read(tmp_path / "findings.parquet", "findings")) == len(result) > 0


def test_without_data_there_are_no_rows() -> None:
    assert findings_table({"cells": SCHEMAS["cells"].empty_table().to_pandas()}).empty
    replays_only = {"cells": rounds_table({"w": [1.0]}).assign(kind="fill")}
    assert findings_table(replays_only).empty


def test_unsound_cells_are_excluded() -> None:
    cells = rounds_table({"w": [1000.0, 1001.0, 999.0, 1000.0, 1e9, 1002.0]})
    cells.loc[4, "unsound"] = "not a number: iops is not a finite number"
    assert not only("outlier runs", {"cells": cells})["found"]
