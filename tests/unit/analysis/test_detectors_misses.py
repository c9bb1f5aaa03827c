"""Check the table of misses in docs/detectors.md, and effects that are just large enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import protocol_frames
import pytest
from detector_tables import course_tables, rounds_table

from drivelab.analysis.detectors import DETECTORS, findings_table
from drivelab.analysis.detectors.bimodality import MOST_VALLEY, modes
from drivelab.analysis.detectors.knee import find_knee

from .test_detectors_of_drives import frame_tables, histogram

SECOND = np.arange(300)
RECORDINGS = 40


def finds(detector: str, tables: dict[str, pd.DataFrame]) -> bool:
    return bool(findings_table(tables, {detector: DETECTORS[detector]})["found"].any())


def course(detector: str, iops: np.ndarray, **telemetry: Any) -> bool:
    return finds(detector, course_tables(iops, **telemetry))


def rounds(detector: str, *values: list[float]) -> bool:
    return finds(detector, {"cells": rounds_table({f"w{place}": rates for place, rates in enumerate(values)})})


def dipping(flags: np.ndarray, depth: float = 0.5, noise: float = 0.0, seed: int = 1) -> np.ndarray:
    scatter = np.exp(np.random.default_rng(seed).normal(0, noise, len(flags)))
    return np.where(flags, 1 - depth, 1.0) * 2000 * scatter


@pytest.mark.parametrize(
    ("slowed", "is_found"),
    [
        (np.where(SECOND < 150, 1.0, 0.88), True),
        (np.where(SECOND < 150, 1.0, 0.92), False),
        (np.clip(1 - (SECOND - 150) / 200, 0.5, 1), False),
    ],
)
def test_throttling_by_less_than_a_tenth_or_gradual_is_missed(slowed: np.ndarray, is_found: bool) -> None:
    heat = {"temperature_c": np.where(SECOND < 150, 50.0, 75.0), "temperature_limit_c": np.full(300, 70.0)}
    assert course("thermal throttling", 2000 * slowed, **heat) == is_found


def test_throttling_from_the_beginning_is_missed() -> None:
    heat = {"temperature_c": np.full(300, 75.0), "temperature_limit_c": np.full(300, 70.0)}
    assert not course("thermal throttling", np.full(300, 500.0), **heat)


@pytest.mark.parametrize(("seconds", "stolen_pct", "is_found"), [(3, 40, True), (2, 40, False), (15, 4, False),
                                                                 (20, 40, True), (150, 40, False)])  # fmt: skip
def test_short_long_or_light_disturbance_by_neighbours_is_missed(
    seconds: int, stolen_pct: float, is_found: bool
) -> None:
    theirs = np.isin(SECOND, range(100, 100 + seconds))
    rate = dipping(theirs, stolen_pct / 100, noise=0.01)
    assert course("neighbours", rate, steal_pct=np.where(theirs, stolen_pct, 0.0)) == is_found


@pytest.mark.parametrize(
    ("values", "outliers"),
    [
        ([100, 100.5, 99.5, 100.2, 99.8, 60, 60.5], 2),
        ([100, 60, 99.5, 100.2, 99.8, 140, 100.5], 2),
        ([100, 100.5, 99.5, 100.2, 60], 1),
        ([100, 100.5, 99.5, 60, 60.5], 0),
        ([100, 100.5, 99.5, 60], 0),
        ([100, 100.5, 99.5, 100.2, 99.8, 95.5], 0),
        ([100, 90, 81, 72, 66, 60, 54, 49, 44, 40, 36, 32], 0),
        ([100, 98, 96.1, 94, 92, 90.1, 88], 0),
    ],
)
def test_up_to_a_third_of_the_rounds_are_outliers(values: list[float], outliers: int) -> None:
    result = findings_table({"cells": rounds_table({"w": values})}, {"outlier runs": DETECTORS["outlier runs"]})
    assert result["found"].sum() == outliers


def test_the_scatter_of_other_cells_sets_the_threshold_for_outliers() -> None:
    alike = [[100.0, 101.0, 99.0, 100.5, 99.5]] * 8
    assert rounds("outlier runs", [100.0, 101.0, 99.0, 100.0, 85.0], *alike)
    wild = [[100.0, 110.0, 90.0, 105.0, 95.0]] * 8
    assert not rounds("outlier runs", [100.0, 101.0, 99.0, 100.0, 85.0], *wild)


@pytest.mark.parametrize(("scatter", "off", "least"), [(0.01, 0.15, 0.6), (0.02, 0.3, 0.6)])
def test_one_slow_round_in_nine_cells_of_five_rounds_is_mostly_found(scatter: float, off: float, least: float) -> None:
    random = np.random.default_rng(4)
    hits = 0
    for _ in range(RECORDINGS):
        values = 2000 * np.exp(random.normal(0, scatter, (9, 5)))
        values[3, 2] = 2000 * (1 - off)
        hits += rounds("outlier runs", *values.tolist())
    print(f"{100 * off:.0f} % off at {100 * scatter:.0f} % scatter: found in {hits} of {RECORDINGS}")
    assert hits >= least * RECORDINGS


@pytest.mark.parametrize(("seconds", "is_found"), [(2, False), (3, True), (28, True), (31, False)])
def test_slow_spells_of_two_seconds_or_more_than_thirty_are_missed(seconds: int, is_found: bool) -> None:
    assert course("outlier runs", dipping(np.isin(SECOND, range(100, 100 + seconds)))) == is_found


def test_a_drift_over_seven_rounds_or_back_again_is_missed() -> None:
    falls = list(np.linspace(2000, 1600, 8))
    assert rounds("drift", falls)
    assert not rounds("drift", falls[:7])
    assert not course("drift", 2000 - 2.0 * np.abs(SECOND - 150))
    assert not course("drift", np.linspace(2000, 1910, 300))


@pytest.mark.parametrize("seconds", [300, 299, 60])
def test_dips_every_other_second_are_found_from_first_to_last(seconds: int) -> None:
    flags = np.arange(seconds) % 2 == 1
    result = findings_table(course_tables(dipping(flags)), {"periodic dips": DETECTORS["periodic dips"]})
    (row,) = result.to_dict("records")
    assert (row["found"], row["value"], row["begin_s"]) == (True, 2, 1)
    assert row["end_s"] == np.flatnonzero(flags)[-1] + 1
    assert row["words"] == f"{seconds // 2} dips, one every 2 s, by 50 %"


@pytest.mark.parametrize(
    ("flags", "is_found"),
    [
        (SECOND % 10 < 5, True),
        (SECOND % 10 < 6, False),  # more than half of the time
        (SECOND % 60 == 30, False),  # five
        (np.isin(SECOND % 20, [5, 9]), False),  # two in a period
    ],
)
def test_dips_that_are_too_few_too_long_or_in_pairs_are_missed(flags: np.ndarray, is_found: bool) -> None:
    assert course("periodic dips", dipping(flags)) == is_found


@pytest.mark.parametrize(("absent", "least", "most"), [(0.0, 1.0, 1.0), (0.05, 0.4, 0.9), (0.25, 0.0, 0.05)])
def test_a_clock_that_skips_a_quarter_of_its_dips_is_missed(absent: float, least: float, most: float) -> None:
    random = np.random.default_rng(6)
    found = [
        course("periodic dips", dipping((SECOND % 10 == 5) & (random.random(300) >= absent))) for _ in range(RECORDINGS)
    ]
    print(f"{100 * absent:.0f} % of the dips absent: found in {sum(found)} of {RECORDINGS}")
    assert least <= np.mean(found) <= most


@pytest.mark.parametrize(("noise", "depth", "is_found"), [(0.02, 0.15, True), (0.02, 0.09, False), (0.1, 0.2, False)])
def test_dips_that_the_noise_covers_are_missed(noise: float, depth: float, is_found: bool) -> None:
    result = [course("periodic dips", dipping(SECOND % 10 == 5, depth, noise, seed)) for seed in range(5)]
    assert all(result) if is_found else not any(result)


def test_a_wave_has_no_dips() -> None:
    assert not course("periodic dips", 2000 * (1 + 0.3 * np.sin(2 * np.pi * SECOND / 10 + 0.3)))


@pytest.mark.parametrize(("high_us", "ios", "is_found"), [(300, 4000, True), (150, 4000, False), (1000, 200, False)])
def test_modes_less_than_a_factor_of_1_8_apart_or_of_few_ios_are_missed(high_us: int, ios: int, is_found: bool) -> None:
    result = modes(histogram((100, 6000), (high_us, ios)))
    assert (result is not None and result.valley <= MOST_VALLEY) == is_found


def test_two_levels_with_three_changes_are_missed() -> None:
    assert course("bimodality", dipping(SECOND % 100 < 50))
    assert not course("bimodality", dipping((SECOND < 50) | (SECOND >= 200) & (SECOND < 250)))


@pytest.mark.parametrize(
    ("by_share", "mix"),
    [
        ({0: 5000.0, 50: 9500, 95: 20_000, 100: 100_000}, "95/5"),  # the deepest below the line shares the time
        ({0: 5000.0, 50: 9500, 95: 49_500, 100: 100_000}, None),
        ({0: 10_000.0, 50: 8900, 100: 10_000}, "50/50"),
        ({0: 10_000.0, 50: 9100, 100: 10_000}, None),
        ({0: 10_000.0, 50: 1000}, None),
    ],
)
def test_a_bathtub_is_any_mix_that_time_sharing_does_not_explain(by_share: dict[int, float], mix: str | None) -> None:
    parts = [rounds_table({f"RND 4KiB {share}/{100 - share}": [iops] * 5}, read_share_pct=share).assign(cell=place)
             for place, (share, iops) in enumerate(by_share.items())]  # fmt: skip
    result = findings_table({"cells": pd.concat(parts, ignore_index=True)}, {"bathtub": DETECTORS["bathtub"]})
    named = [row["cell_label"] for row in result.to_dict("records") if row["found"]]
    assert named == ([f"RND 4KiB {mix}"] if mix else [])
    if mix == "95/5":
        assert "79 % below the line" in result["words"].iloc[0]
        assert "61 % below what time sharing explains" in result["words"].iloc[0]
    elif mix is None and len(result) and len(by_share) == 4:
        assert "at most 82 % below the line, and at most 3 % below what time sharing" in result["words"].iloc[0]


@pytest.mark.parametrize("rounds", [1, 5])
@pytest.mark.parametrize(("unaligned", "is_found"), [(890.0, True), (910.0, False)])
def test_a_penalty_of_less_than_a_tenth_is_missed(rounds: int, unaligned: float, is_found: bool) -> None:
    pair = [rounds_table({f"w{offset}": [iops] * rounds}, alignment_offset_bytes=offset)
            for offset, iops in ((0, 1000.0), (512, unaligned))]  # fmt: skip
    assert finds("alignment", {"cells": pd.concat(pair, ignore_index=True)}) == is_found


@pytest.mark.parametrize(("penalty", "scatter", "least", "most"), [(0.3, 0.05, 0.95, 1), (0.15, 0.05, 0.4, 0.9),
                                                                   (0.2, 0.1, 0, 0.7), (0.5, 0.1, 0.9, 1)])  # fmt: skip
def test_a_penalty_that_scatter_explains_is_missed(penalty: float, scatter: float, least: float, most: float) -> None:
    random = np.random.default_rng(5)
    cells = pd.concat([rounds_table({f"w{offset}": [1.0] * 5}, alignment_offset_bytes=offset) for offset in (0, 512)],
                      ignore_index=True)  # fmt: skip
    usual = np.repeat([1000, 1000 * (1 - penalty)], 5)
    found = [
        finds("alignment", {"cells": cells.assign(iops=usual * np.exp(random.normal(0, scatter, 10)))})
        for _ in range(RECORDINGS)
    ]
    print(f"{100 * penalty:.0f} % at {100 * scatter:.0f} % scatter: found in {sum(found)} of {RECORDINGS}")
    assert least <= np.mean(found) <= most


@pytest.mark.parametrize(("ceiling", "scatter", "is_found"), [(1.3, 0, True), (1.2, 0, False), (1.3, 0.4, False),
                                                              (4.0, 0.2, True)])  # fmt: skip
def test_a_knee_with_a_small_rise_or_within_scatter_is_missed(ceiling: float, scatter: float, is_found: bool) -> None:
    rounds_of = 1 + scatter * np.array([-1, -0.5, 0, 0.5, 1])
    sweep = [
        rounds_table({f"w{depth}": list(1000 * min(depth, ceiling) * rounds_of)}).assign(queue_depth=depth)
        for depth in (1, 2, 4, 8, 16, 32)
    ]
    assert finds("queue-depth knee", {"cells": pd.concat(sweep, ignore_index=True)}) == is_found


def test_a_knee_of_three_depths_or_before_a_slow_rise_is_missed() -> None:
    assert find_knee(pd.DataFrame({"queue_depth": [1, 2, 4], "iops": [100.0, 200, 200]})) is None
    rises = find_knee(pd.DataFrame({"queue_depth": [1, 2, 4, 8, 16, 32], "iops": [100.0, 200, 400, 420, 440, 460]}))
    assert rises is not None
    assert (rises.depth, rises.gain_pct) == (4, pytest.approx(15))


def test_a_recovery_within_a_slice_or_bursts_by_less_than_a_tenth_are_missed() -> None:
    crossed = protocol_frames.crossed()
    assert finds("recovery", frame_tables(crossed))
    rates = ["iops", "bandwidth_mib_s"]
    crossed.loc[crossed["step"] == 2, rates] = crossed.loc[crossed["step"] == 0, rates].to_numpy()
    assert not finds("recovery", frame_tables(crossed))
    assert not finds("recovery", frame_tables(protocol_frames.idle((1,))))  # 5 % faster
