from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drivelab.protocol.history import loop_history, loop_is_steady

CELLS = [
    {"pattern": "random", "read_share": share, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1}
    for share in (100, 0)
]
CRITERION = {
    "window": 5, "max_rounds": 25, "data_excursion": 0.2, "slope_excursion": 0.1,
    "track": [{"pattern": "random", "read_share": 0, "block_size_bytes": 4096, "metric": "iops"}],
}  # fmt: skip


def journal(values: list[float], gap_before_cell: int | None = None) -> list[dict[str, Any]]:
    """Two cells a round; the second one is tracked. A gap before cell number `gap_before_cell`, from 0."""
    lines: list[dict[str, Any]] = []
    for number, value in enumerate(values):
        for index, iops in enumerate((1.0, value)):
            if gap_before_cell == 2 * number + index:
                lines.append({"event": "gap"})
            lines.append({"event": "cell", "step": 0, "metrics": {"iops": iops}})
    return lines


def steady(lines: list[dict[str, Any]]) -> bool:
    return loop_is_steady(loop_history(lines, 0, 2), CELLS, CRITERION)


def test_five_even_rounds_are_steady_four_are_not() -> None:
    assert steady(journal([100, 101, 99, 100, 100]))
    assert not steady(journal([100, 101, 99, 100]))
    assert not steady(journal([200, 101, 99, 100, 100]))
    assert steady(journal([200, 101, 99, 100, 100, 100]))


@given(st.integers(0, 13))
def test_the_window_lies_wholly_after_a_gap(gap: int) -> None:
    """7 rounds; the window of rounds 3 to 7 begins with cell number 4."""
    assert steady(journal([100.0] * 7, gap_before_cell=gap)) == (gap <= 4)


def test_an_unfinished_round_does_not_count() -> None:
    lines = journal([100.0] * 6)
    assert len(loop_history(lines[:-1], 0, 2).rounds[-1]) == 1
    assert steady(lines[:-1])
    assert not steady(lines[:9])


def test_other_steps_are_not_mixed_in() -> None:
    lines = journal([100.0] * 5)
    assert loop_history(lines, 1, 2).rounds == ()
