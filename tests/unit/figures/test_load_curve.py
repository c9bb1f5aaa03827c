"""The figure of a load draws the rates, intervals, limit and answer of the table."""

from __future__ import annotations

import math

import comparison_frames as frames
import pytest
from drawn import artists as drawn
from drawn import texts

from drivelab.figures.kinds.load_curve import load_curve


def test_a_single_load_has_its_percentiles_limit_and_answer() -> None:
    rates = frames.loads(("op7",))
    figure = load_curve(rates)
    (line,) = drawn(figure, "percentile")
    assert list(line.get_xdata()) == [1000, 2000, 4000, 8000, 9000]
    assert list(line.get_ydata()) == rates["response_us"].dropna().tolist()
    (limit,) = drawn(figure, "limit")
    assert limit.get_ydata()[0] == 700
    (band,) = drawn(figure, "answer")
    assert (band.get_x(), band.get_x() + band.get_width()) == (8000, 9000)
    assert len(drawn(figure, "median")) == 1
    assert not drawn(figure, "p99"), "it is the limited percentile"
    (share,) = drawn(figure, "delivered", 1)
    assert list(share.get_ydata()) == [100] * 6
    assert texts(figure, "note") == [
        "8,000 IOPS with p99 below 700 µs (between 8,000 and 9,000)",
        "not shown: 1 rate whose requests were not all served",
    ]


def test_undecided_rates_are_hollow_and_inside_the_answer() -> None:
    figure = load_curve(frames.loads(("op7",), undecided=True))
    (hollow,) = drawn(figure, "undecided")
    assert list(hollow.get_xdata()) == [9000]
    (band,) = drawn(figure, "answer")
    assert band.get_x() + band.get_width() == 10_000
    assert texts(figure, "note")[0] == "8,000 IOPS with p99 below 700 µs (between 8,000 and 10,000; 9,000 undecided)"


def test_each_drive_has_a_curve_and_an_answer() -> None:
    figure = load_curve(frames.loads(("op7", "op28")))
    assert [line.get_label() for line in drawn(figure, "percentile")] == ["op7", "op28"]
    assert len(drawn(figure, "answer")) == 2
    assert len(drawn(figure, "limit")) == 1
    assert texts(figure, "note")[1].startswith("op28: 16,000 IOPS")


def test_a_load_without_a_finite_percentile_is_drawn() -> None:
    rates = frames.loads(("op7",)).assign(response_us=math.nan, low_us=math.nan, high_us=math.nan, outcome="fails")
    figure = load_curve(rates.assign(p99_response_us=math.nan))
    assert texts(figure, "note")[0] == "no measured rate keeps p99 below 700 µs; 1,000 IOPS fail"
    assert not drawn(figure, "answer")


def test_uncounted_rates_are_refused() -> None:
    with pytest.raises(ValueError, match="no rate that counts"):
        load_curve(frames.loads(("op7",)).assign(counted=False))
