"""Deadlines and depths from the times of a trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row, made_up, table

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import MOST_IN_FLIGHT, ReplayChoice, TimingChoice
from drivelab.replay.survey import LONGEST_NS, Survey, survey
from drivelab.replay.timing import Clock, Depths
from drivelab.trace.statistics.batch import UNKNOWN


def surveyed(rows: list[Row]) -> Survey:
    return survey(table(rows).to_batches(), 512, None)


def deadlines(choice: TimingChoice, times: list[int], cut: int) -> tuple[list[int], Clock]:
    """Return deadlines of requests at `times`, the first `cut` in a separate batch."""
    clock = Clock(choice, surveyed([Row(time) for time in times]))
    parts = [clock.deadlines_ns(np.array(part, np.int64)) for part in (times[:cut], times[cut:])]
    return [int(deadline) for deadline in np.concatenate(parts)], clock


TIMES = [1000, 1000, 1300, 5000, 5001]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (TimingChoice(), [0, 0, 300, 4000, 4001]),
        (TimingChoice("scaled", factor=0.5), [0, 0, 150, 2000, 2000]),
        (TimingChoice("scaled", factor=3), [0, 0, 900, 12_000, 12_003]),
        (TimingChoice("idle-capped", idle_cap_s=1e-6), [0, 0, 300, 1300, 1301]),
        (TimingChoice("asap"), [0, 0, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("cut", [0, 1, 3])
def test_deadlines_of_each_timing(choice: TimingChoice, expected: list[int], cut: int) -> None:
    deadlines_ns, clock = deadlines(choice, TIMES, cut)
    assert deadlines_ns == expected
    assert clock.idle_removed_ns == (2700 if choice.idle_cap_s else 0)


@given(st.lists(st.integers(0, 10**13), min_size=1), st.floats(1e-9, 100), st.integers(0, 30))
def test_a_cap_only_shortens_gaps(gaps: list[int], cap_s: float, cut: int) -> None:
    times = np.cumsum(gaps).tolist()
    deadlines_ns, clock = deadlines(TimingChoice("idle-capped", idle_cap_s=cap_s), times, min(cut, len(times)))
    cap_ns = max(1, round(cap_s * 1e9))
    assert np.diff(deadlines_ns).tolist() == [min(gap, cap_ns) for gap in gaps[1:]]
    assert clock.idle_removed_ns == times[-1] - times[0] - deadlines_ns[-1]


def test_think_times_are_scaled_and_capped_like_gaps() -> None:
    totals = surveyed([Row(0, None, 5)])
    think = np.array([0, 40, 10**9])
    for choice, expected in (
        (TimingChoice(), [0, 40, 10**9]),
        (TimingChoice("scaled", factor=0.25), [0, 10, 250_000_000]),
        (TimingChoice("idle-capped", idle_cap_s=0.001), [0, 40, 1_000_000]),
        (TimingChoice("asap"), [0, 0, 0]),
    ):
        assert Clock(choice, totals).thinks_ns(think).tolist() == expected


def test_an_excessive_factor_is_refused() -> None:
    with pytest.raises(UserError, match="a factor of 1e\\+09 makes the replay longer than a century"):
        Clock(TimingChoice("scaled", factor=1e9), surveyed([Row(0), Row(LONGEST_NS // 10**9 + 1)]))


def depths(rows: list[Row], choice: TimingChoice, size: int, dependencies: str = "none") -> list[int]:
    counted = Depths(ReplayChoice(choice, dependencies=dependencies), surveyed(rows))
    queue = np.array([row.queue_ns for row in rows], np.int64)
    complete = np.array([UNKNOWN if row.complete_ns is None else row.complete_ns for row in rows], np.int64)
    parts = [counted.of(queue[at : at + size], complete[at : at + size]) for at in range(0, len(rows), size)]
    return [int(depth) for depth in np.concatenate(parts)]


@given(made_up(most=40), st.sampled_from([1, 2, 5, 100]))
def test_the_depth_of_the_trace_counts_requests_in_flight(rows: list[Row], size: int) -> None:
    if not any(row.complete_ns is not None for row in rows):
        return
    expected = [
        1
        + sum(
            earlier.complete_ns is not None and max(earlier.complete_ns, earlier.queue_ns + 1) > row.queue_ns
            for earlier in rows[:at]
        )
        for at, row in enumerate(rows)
    ]
    assert depths(rows, TimingChoice("asap"), size) == expected
    assert depths(rows, TimingChoice("scaled", factor=2), size, "trace") == expected


def test_depths_are_bounded_and_can_be_fixed() -> None:
    rows = [Row(index, None, 10**6) for index in range(MOST_IN_FLIGHT + 5)]
    assert depths(rows, TimingChoice("asap"), 10**4)[-6:] == [MOST_IN_FLIGHT] * 6
    assert set(depths(rows[:9], TimingChoice("asap", depth=7), 4)) == {7}
    assert set(depths(rows[:9], TimingChoice(), 4)) == {0}


def test_a_trace_without_completions_has_no_depth() -> None:
    with pytest.raises(UserError, match=r"no completions.* set --depth"):
        Depths(ReplayChoice(TimingChoice("asap")), surveyed([Row(0), Row(5)]))
    Depths(ReplayChoice(TimingChoice("asap", depth=1)), surveyed([Row(0), Row(5)]))
