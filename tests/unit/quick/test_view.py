"""What a quick look prints is complete and unambiguous in 80 columns."""

from __future__ import annotations

import pytest

from drivelab.analysis.values.quick_look import LATENCY, SHOWN, Sustained, Value
from drivelab.quick.history import Look, show
from drivelab.quick.view import change, sustained_words
from drivelab.report.numbers import TIMES


def test_a_sustained_write_without_a_cliff_is_given_by_its_mean() -> None:
    """Where the rate rises from 10 to 30 MiB/s, the rate at the start is not that of the write."""
    ends_s, rates_mib_s = tuple(range(1, 11)), (10.0,) * 5 + (30.0,) * 5
    look = Sustained(ends_s, rates_mib_s, written_bytes=200 << 20, cliff_bytes=None)
    assert sustained_words(look, 1 << 30) == "Sustained write: 20 MiB/s, no cliff in 0.195 GiB (10 s)."
    assert "GiB, again and again over 128 MiB (10 s)" in sustained_words(look, 128 << 20)


@pytest.mark.parametrize(
    ("is_time", "values", "spread_pct", "text"),
    [
        (False, (100.0, 130.0), 5.0, "+30 %"),
        (True, (100.0, 80.0), 5.0, "+25 %"),  # a shorter time is better
        (True, (80.0, 100.0), 5.0, "\N{MINUS SIGN}20 %"),
        (True, (100.0, 10.0), 5.0, f"10 {TIMES}"),
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


def test_a_history_names_what_changed_by_more_than_the_spread(capsys: pytest.CaptureFixture[str]) -> None:
    """The first test falls from 100 ± 10 to 70 ± 7, the second to 90 ± 9; a look of another size does not count."""
    first, second = SHOWN[0], SHOWN[1]
    looks = [
        Look(
            "/a",
            "a",
            f"2026-11-2{day} 10:00",
            measurement,
            {shown: Value(shown, value, 10.0, ()) for shown, value in values},
        )
        for day, measurement, values in (
            (1, "quick", [(first, 100.0), (second, 100.0)]),
            (2, "quick-1gib", [(first, 500.0)]),
            (3, "quick", [(first, 70.0), (second, 90.0)]),
        )
    ]
    show(looks)
    text = " ".join(capsys.readouterr().out.split())
    assert "Changed since 2026-11-21 10:00 by more than the spread of the rounds: " in text
    assert f": {first.words} \N{MINUS SIGN}30 %. In the strips" in text
    assert text.endswith("The looks differ in time or size: quick, quick-1gib.")
    show([*looks, looks[-1]])
    assert "Nothing changed since 2026-11-23 10:00 by more than the spread" in " ".join(capsys.readouterr().out.split())
