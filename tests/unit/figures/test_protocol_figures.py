"""Figures of sweeps, repeats, idle time, turns and several drives show what the tables say."""

from __future__ import annotations

import comparison_frames
import numpy as np
import pandas as pd
import protocol_frames as frames
import pytest
from drawn import artists, legend, texts
from drawn import points as drawn

from drivelab.figures.base.sheets import render
from drivelab.figures.kinds.cells import repeats
from drivelab.figures.kinds.convergence import convergence
from drivelab.figures.kinds.demand import demand_intensity, demand_variation
from drivelab.figures.kinds.latency import latency_by_turn, nines
from drivelab.figures.kinds.mixes import mix_lines
from drivelab.figures.kinds.recovery import idle_recovery, stimulus
from drivelab.figures.kinds.seconds import head_to_head


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


def test_a_line_for_each_number_of_threads() -> None:
    figure = demand_variation(frames.sweep((1, 4), (1, 2, 16)), frames.NO_WINDOWS)
    one, four = drawn(figure, "line")
    assert one[:, 0].tolist() == four[:, 0].tolist() == [1, 2, 16]
    assert one[:, 1] == pytest.approx(np.array([1, 2, 16]) * 1.004e4)
    assert four[:, 1] == pytest.approx(np.array([4, 8, 16]) * 1.004e4)


def test_workloads_have_panels_and_a_prewrite_has_none() -> None:
    cells = frames.sweep((1,), (1, 4, 16), reads=(100, 0))
    prewrite = frames.cell(5e3, 0, 8192, 32, 32, cell=99)
    figure = demand_variation(pd.concat([cells, pd.DataFrame([prewrite])]), frames.NO_WINDOWS)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["RND 4KiB 100/0", "RND 4KiB 0/100"]


def test_rates_begin_at_0_unless_all_are_alike() -> None:
    cells = frames.sweep((1,), (1, 4, 16))
    for spread, label in ((0.1, "I/O rate (IOPS)"), (0.01, "I/O rate (IOPS), not from 0")):
        axes = demand_intensity(
            cells.assign(iops=1000 * (1 + spread * cells["queue_depth"] / 16)), frames.NO_WINDOWS
        ).axes[0]
        assert (axes.get_xlabel(), axes.get_xlim()[0] == 0) == (label, spread == 0.1)


def test_chosen_points_are_ringed_where_they_are() -> None:
    cells = frames.with_points(frames.sweep())
    figure = demand_intensity(cells, frames.NO_WINDOWS)
    rings = {tuple(np.round(place, 0)) for line in drawn(figure, "chosen") for place in line}
    assert rings == {(160640.0, 100.0), (80320.0, 100.0), (10040.0, 100.0)}
    assert sorted(texts(figure, "chosen name")) == ["MAX T4Q4", "MID T2Q4", "MIN T1Q1"]


def alike() -> pd.DataFrame:
    """Return a sweep of a drive that is busy from the start: all rates are close, in no order."""
    cells = frames.with_points(frames.sweep((1, 2, 4), (1, 2, 4)))
    outstanding = cells["threads"] * cells["queue_depth"]
    iops = 2200 + 60 * np.sin(3.0 * outstanding + cells["threads"])
    return cells.assign(iops=iops, mean_latency_us=outstanding / iops * 1e6)


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param(frames.with_points(frames.sweep()), id="4 by 6"),
        pytest.param(frames.with_points(frames.sweep((1, 2, 4), (1, 2, 4))), id="never waits"),
        pytest.param(frames.sweep((1,), (1, 4, 16), (100, 0)), id="two workloads"),
        pytest.param(alike(), id="rates alike"),
    ],
)
def test_names_of_points_cover_nothing(cells: pd.DataFrame) -> None:
    figure = render("demand_intensity", {"cells": cells, "steady_state": frames.NO_WINDOWS}, "op7, PTS")
    figure.draw_without_rendering()
    for axes in figure.axes:
        names = [text for text in axes.texts if text.get_gid() in ("name", "chosen name")]
        boxes = [text.get_window_extent() for text in names]
        assert not any(one.overlaps(two) for place, one in enumerate(boxes) for two in boxes[place + 1 :])
        for line in axes.get_lines():
            for x, y in axes.transData.transform(line.get_xydata()):
                assert not any(box.contains(x, y) for box in boxes), (x, y)
        assert names
        assert all(box.x0 >= axes.bbox.x0 and box.x1 <= axes.bbox.x1 for box in boxes)
        chosen = {text.get_text().split()[-1] for text in names if text.get_gid() == "chosen name"}
        assert not chosen & {text.get_text() for text in names if text.get_gid() == "name"}


def test_convergence_of_a_sweep_shows_the_most_threads() -> None:
    cells = frames.sweep((1, 4), (1, 2, 16)).assign(until="steady state")
    steady = pd.DataFrame([frames.window((1.0, 1.0, 1.0), 1, "RND 4KiB 100/0 T4Q16", reached=True)])
    figure = convergence(cells, steady)
    assert legend(figure)[:3] == ["T4Q1", "T4Q2", "T4Q16 *"]


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


def test_only_the_last_soak_of_a_turn_counts() -> None:
    figure = latency_by_turn(**frames.turns())
    assert all(line[:, 0].max() < 1e4 for line in drawn(figure, "line"))  # the preparing soaks take 50 ms
    assert [label.split(":")[0] for label in legend(figure)] == ["MAX (T4Q4)", "MID (T2Q4)", "MIN (T1Q1)"]


def test_nines_of_few_ios_are_hollow() -> None:
    few = nines(frames.bins(ios=3000))
    assert len(drawn(few, "unreliable")[0]) == 1  # 99.9 % of 3000; deeper quantiles have no I/O above them
    assert len(texts(few, "number")) == 4
    assert drawn(nines(frames.bins(ios=20_000_000)), "unreliable") == []


def test_drives_share_a_clock() -> None:
    figure = head_to_head(**frames.together(drives=2, seconds=5))
    first, second = drawn(figure, "line")
    assert first[:, 0] == pytest.approx(np.arange(1, 11))
    assert second[:, 0] == pytest.approx(np.arange(1, 11) + 0.1)


def test_virtual_clocks_are_aligned() -> None:
    tables = {name: frame.assign(clock="virtual") for name, frame in frames.together(2, 5).items()}
    figure = head_to_head(**tables)
    first, second = drawn(figure, "line")
    assert second[:, 0] == pytest.approx(first[:, 0])
    assert any("its own clock" in text for text in texts(figure, "note"))


def test_mixes_of_several_sizes_are_lines_of_one_chart() -> None:
    cells = comparison_frames.mixes(sizes=(4096, 65536, 512)).assign(**frames.key("op7"), alignment_offset_bytes=0)
    figure = mix_lines(cells, frames.NO_WINDOWS)
    assert legend(figure) == ["512B", "4KiB", "64KiB"]
    assert len(figure.axes) == 1
    for line in drawn(figure, "line"):
        assert line[:, 0].tolist() == [0, 20, 60, 100]
        assert line[[0, 3], 1] == pytest.approx([2000.0, 10_000.0])
    with pytest.raises(ValueError, match="no two loads"):
        mix_lines(cells[cells["block_size_bytes"] == 4096], frames.NO_WINDOWS)
