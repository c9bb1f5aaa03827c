import numpy as np
import pytest

from drivelab.criteria.settling import level_change, to_asymptote
from drivelab.criteria.steady_state import determine


def _decay(time_constant: float, rounds: int = 60) -> np.ndarray:
    return 100 * (1 + 2 * np.exp(-np.arange(rounds) / time_constant))


@pytest.mark.parametrize(("time_constant", "above_pct"), [(3, 8), (6, 17), (10, 33)])
def test_slow_decays_are_accepted_far_above_their_asymptote_and_the_fit_says_so(
    time_constant: float, above_pct: float
) -> None:
    decay = _decay(time_constant)
    rounds = next(count for count in range(5, 60) if determine(decay[:count].tolist()).steady)
    above = float(np.log(decay[rounds - 5 : rounds].mean() / 100))

    fitted = to_asymptote(decay[None, :rounds], 5)

    assert 100 * np.expm1(above) == pytest.approx(above_pct, abs=2)
    assert float(fitted[0]) == pytest.approx(-above, rel=0.1)


def test_steady_rounds_have_no_asymptote_but_their_average() -> None:
    rounds = np.exp(np.random.default_rng(0).normal(0, 0.03, (2000, 8)))

    false_alarms = np.mean(to_asymptote(rounds, 5) != 0)

    assert false_alarms < 0.03
    assert to_asymptote(np.full((1, 8), 7.0), 5) == 0
    assert to_asymptote(rounds[:3, :4], 4).tolist() == [0, 0, 0]


def test_a_rise_without_an_end_has_no_asymptote_below_zero() -> None:
    steep = np.array([[1000.0, 600, 300, 90, 20, 3]])

    assert np.isfinite(to_asymptote(steep, 5)).all()


def test_a_time_settles_as_its_rate_does() -> None:
    rates = _decay(3)[None, :13]

    assert to_asymptote(1 / rates, 5, of_times=True) == pytest.approx(-to_asymptote(rates, 5))


def test_a_change_of_level_within_the_window_is_found_with_its_round() -> None:
    noise = np.random.default_rng(1).normal(1, 0.005, 12)
    values = noise * np.r_[np.full(9, 100.0), np.full(3, 92.0)]

    position, change = level_change(values.tolist(), 5) or (0, 0.0)

    assert position == 9
    assert change == pytest.approx(np.log(0.92), abs=0.01)
    assert level_change(values[:9].tolist(), 5) is None
    assert level_change(values.tolist(), 2) is None, "before the window it is no matter"


def test_small_and_unsure_changes_of_level_do_not_count() -> None:
    random = np.random.default_rng(2)
    noise = random.normal(1, 0.005, 12)

    assert level_change((noise * np.r_[np.full(9, 100.0), np.full(3, 97.0)]).tolist(), 5) is None
    found = [level_change(random.normal(100, 10, 12).tolist(), 5) is not None for _ in range(200)]
    assert np.mean(found) < 0.05
    assert level_change([5.0] * 3, 5) is None
    assert level_change([5.0] * 6, 5) is None


def test_the_first_round_is_no_change_within_the_window() -> None:
    """The first round on a fresh drive is often half as fast again; it lies before the window."""
    assert level_change([90_000, 60_546, 60_013, 62_932, 61_774, 61_061], 5) is None
    inside = level_change([90_000, 71_546, 71_013, 62_932, 61_774, 61_061], 5)
    assert inside is not None
    assert inside[0] == 3
    assert inside[1] == pytest.approx(np.log(61_922.33 / 71_279.5), abs=1e-4)
