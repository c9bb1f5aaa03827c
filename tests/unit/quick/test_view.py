"""What a quick look says of its values is unambiguous."""

from __future__ import annotations

import pytest

from drivelab.analysis.values.quick_look import LATENCY, SHOWN, Shown, Value
from drivelab.quick.history import changes
from drivelab.quick.view import change


@pytest.mark.parametrize(
    ("is_time", "values", "spread_pct", "text"),
    [
        (False, (100.0, 130.0), 5.0, "+30 %"),
        (True, (100.0, 80.0), 5.0, "+25 %"),  # a shorter time is better
        (True, (80.0, 100.0), 5.0, "\N{MINUS SIGN}20 %"),
        (False, (100.0, 130.0), 20.0, "(+30 %)"),  # the intervals meet
        (False, (100.0, 130.0), None, "(+30 %)"),
    ],
)
def test_a_positive_change_is_better_and_one_within_the_spread_is_marked(
    is_time: bool, values: tuple[float, float], spread_pct: float | None, text: str
) -> None:
    shown = next(shown for shown in SHOWN if (shown.metric == LATENCY) == is_time)
    basis, other = (Value(shown, value, spread_pct, ()) for value in values)
    assert change(basis, other) == text


@pytest.mark.parametrize(
    ("earlier", "last", "found"),
    [
        ([100.0], 70.0, "\N{MINUS SIGN}30 %"),  # 90 to 110, and 63 to 77
        ([100.0], 90.0, None),  # the intervals meet
        ([70.0, 100.0], 72.0, None),  # as an earlier look was
        ([40.0, 100.0], 70.0, None),  # between two that scatter more
        ([90.0, 100.0], 60.0, "\N{MINUS SIGN}40 %"),
    ],
)
def test_a_change_is_beyond_all_earlier_looks(earlier: list[float], last: float, found: str | None) -> None:
    first = SHOWN[0]
    looks: list[dict[Shown, Value]] = [{first: Value(first, value, 10.0, ())} for value in (*earlier, last)]
    assert changes(looks) == ([] if found is None else [f"{first.words} {found}"])
