"""Figures of sweeps, repeats, idle time, turns and several drives show what the tables say."""

from __future__ import annotations

import comparison_frames
import numpy as np
import pandas as pd
import protocol_frames as frames
import pytest
from drawn import artists, legend, texts
from drawn import points as drawn

from drivelab.figures.kinds.cells import repeats
from drivelab.figures.kinds.demand import demand_intensity, depth_ramp
from drivelab.figures.kinds.mixes import bathtub
from drivelab.figures.kinds.seconds import strip_chart
from drivelab.figures.kinds.soaks import idle_recovery, stimulus
from drivelab.figures.kinds.steady_state import convergence


def test_cold_rounds_are_hollow_and_move_no_median() -> None:
    cells = frames.repeated(names=2, rounds=3, cold=1)
    figure = repeats(cells, frames.NO_WINDOWS)
    warm = cells[~cells["cold"]].groupby("cell")["iops"].median()
    assert [bar.get_width() for bar in artists(figure, "value", 0)] == pytest.approx(list(warm))
    (cold,) = drawn(figure, "cold")
    assert len(cold) == 2
    assert (cold[:, 0] < -25).all()
    (counted,) = drawn(figure, "counted")
    assert len(counted) == 6
    assert np.abs(counted[:, 0]).max() < 10


def test_of_an_even_number_of_rounds_the_latest_waits() -> None:
    figure = repeats(frames.repeated(names=1, rounds=4, cold=0), frames.NO_WINDOWS)
    assert len(drawn(figure, "counted")[0]) == 3


def test_workloads_have_panels_and_a_prewrite_has_none() -> None:
    cells = frames.sweep((1,), (1, 4, 16), reads=(100, 0))
    prewrite = frames.cell(5e3, 0, 8192, 32, 32, cell=99)
    figure = depth_ramp(pd.concat([cells, pd.DataFrame([prewrite])]), frames.NO_WINDOWS)
    assert [axes.get_title(loc="left") for axes in figure.axes[:2]] == ["RND 4KiB 100/0", "RND 4KiB 0/100"]


def test_rates_begin_at_0_unless_all_are_alike() -> None:
    cells = frames.sweep((1,), (1, 4, 16))
    for spread, label in ((0.1, "I/O rate (IOPS)"), (0.01, "I/O rate (IOPS), not from 0")):
        axes = demand_intensity(
            cells.assign(iops=1000 * (1 + spread * cells["queue_depth"] / 16)), frames.NO_WINDOWS
        ).axes[0]
        assert (axes.get_xlabel(), axes.get_xlim()[0] == 0) == (label, spread == 0.1)


def test_chosen_points_are_marked_where_they_are() -> None:
    cells = frames.with_points(frames.sweep())
    figure = demand_intensity(cells, frames.NO_WINDOWS)
    rings = {str(line.get_label()): np.round(line.get_xydata()[0]).tolist() for line in artists(figure, "chosen")}
    assert rings == {"MAX T4Q4": [160640.0, 100.0], "MID T2Q4": [80320.0, 100.0], "MIN T1Q1": [10040.0, 100.0]}
    assert set(rings) <= set(legend(figure))


def test_convergence_of_a_sweep_shows_the_most_threads() -> None:
    cells = frames.sweep((1, 4), (1, 2, 3, 4, 8, 12, 16)).assign(until="steady state")
    steady = pd.DataFrame([frames.window((1.0, 1.0, 1.0), 1, "RND 4KiB 100/0 T4Q16", reached=True)])
    figure = convergence(cells, steady)
    assert legend(figure)[:7] == [f"RND 4KiB 100/0 T4Q{depth}" for depth in (1, 2, 3, 4, 8, 12, "16 *")]


def test_bursts_have_their_places_in_time_between_the_baselines() -> None:
    cells = frames.idle((5, 50), 3)
    figure = idle_recovery(cells)
    lines = artists(figure, "line")
    five, fifty = (line.get_xydata() for line in lines if str(line.get_label()).startswith("bursts"))
    assert five[:, 1].tolist() == [2000, 2500, 2500]
    assert fifty[:, 1].tolist() == [2000, 7000, 7000]
    assert np.diff(five[:, 0]) * 60 == pytest.approx([6, 6], rel=1e-6)
    assert sum(str(line.get_label()).startswith("baseline") for line in lines) == 3
    assert texts(figure, "phase name") == ["5 s", "50 s"]


def test_recovery_is_marked_when_it_happened_else_denied() -> None:
    marks = drawn(stimulus(frames.crossed(slices=20)), "recovered")
    assert [mark[0][0] for mark in marks] == [pytest.approx(51)] * 2  # two parts of 20 s, 10 slow slices, a fast one
    never = stimulus(frames.crossed(recovers=False))
    assert drawn(never, "recovered") == []
    assert any("did not return to the mean before" in text for text in texts(never, "note"))


def test_drives_share_a_clock() -> None:
    figure = strip_chart(**frames.together(drives=2, seconds=5), together=True)
    first, second = drawn(figure, "line")
    assert first[:, 0] == pytest.approx(np.arange(1, 11))
    assert second[:, 0] == pytest.approx(np.arange(1, 11) + 0.1)


def test_virtual_clocks_are_aligned() -> None:
    tables = {name: frame.assign(clock="virtual") for name, frame in frames.together(2, 5).items()}
    figure = strip_chart(**tables, together=True)
    first, second = drawn(figure, "line")
    assert second[:, 0] == pytest.approx(first[:, 0])
    assert any("its own clock" in text for text in texts(figure, "note"))


def test_mixes_of_several_sizes_are_lines_of_one_chart() -> None:
    cells = comparison_frames.mixes(sizes=(4096, 65536, 512)).assign(**frames.key("op7"))
    figure = bathtub(cells, frames.NO_WINDOWS)
    numbers = "\N{MINUS SIGN}50 / \N{MINUS SIGN}24 % *"
    assert legend(figure)[:3] == [f"RND {size}: {numbers}" for size in ("512B", "4KiB", "64KiB")]
    assert len(figure.axes) == 1
    for line in drawn(figure, "line"):
        assert line[:, 0].tolist() == [0, 20, 60, 100]
        assert line[[0, 3], 1] == pytest.approx([2000.0, 10_000.0])
