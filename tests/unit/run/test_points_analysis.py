from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.run.points import NAMES, Candidate, choose

SURFACE = [
    Candidate(1, 1, 1000.0, 100.0),
    Candidate(1, 8, 5200.0, 900.0),
    Candidate(4, 8, 9000.0, 4999.0),
    Candidate(8, 8, 9900.0, 5000.0),
]
"""The last candidate has the most IOPS, but its latency is not below 5 ms."""


def test_max_mid_and_min_of_a_surface() -> None:
    assert [choose(name, SURFACE, 5000.0) for name in NAMES] == [SURFACE[2], SURFACE[1], SURFACE[0]]
    assert choose("max", SURFACE, 5000.1) == SURFACE[3], "a longer response time gives a higher max"
    assert choose("max", SURFACE[1:], 100.0) == SURFACE[1], "if none is fast enough, the fastest"


def test_of_equal_candidates_the_lower_demand_wins() -> None:
    alike = [Candidate(threads, depth, 1000.0, 100.0) for threads, depth in ((4, 1), (2, 2), (8, 8), (1, 4))]
    assert {choose(name, alike, 5000.0) for name in NAMES} == {alike[3]}


def test_an_unknown_point_is_refused() -> None:
    with pytest.raises(ValueError, match="use one of max, mid, min"):
        choose("best", SURFACE, 5000.0)
    with pytest.raises(ValueError, match="no candidates"):
        choose("max", [], 5000.0)


candidate = st.builds(Candidate, st.integers(1, 32), st.integers(1, 32), st.floats(1.0, 1e6), st.floats(10.0, 1e4))


@given(st.lists(candidate, min_size=1, max_size=12), st.floats(10.0, 1e4), st.randoms())
def test_the_choice_does_not_depend_on_the_order(found: list[Candidate], limit_us: float, random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for name in NAMES:
        assert choose(name, shuffled, limit_us) == choose(name, found, limit_us)
    most, least = choose("max", found, limit_us), choose("min", found, limit_us)
    assert all(cell.iops <= most.iops for cell in found if cell.mean_latency_us < limit_us)
    assert all(cell.outstanding >= least.outstanding for cell in found)
